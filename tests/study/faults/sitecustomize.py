"""Makes writes fail in a process and in all it starts: this folder on PYTHONPATH, and FAULT="kind:number:file".

From the number-th write on whose target's name begins with `file`: ENOSPC, EROFS or EIO is raised, or the write is
`short` or comes with a `delay`. Only beliefscope's files are written as memoryviews. With `clock`, after so many looks
the clock jumps, an hour back and a day on by turns.
"""

import errno
import os
import time

_kind, _number, _file = os.environ.get("FAULT", "none:0:").split(":")
_write, _count = os.write, 0


def _faulty(descriptor, content):
    global _count
    target = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).lstrip(".")
    if not isinstance(content, memoryview) or not target.startswith(_file):
        return _write(descriptor, content)
    _count += 1
    if _count <= int(_number):
        return _write(descriptor, content)
    if _kind == "short":
        return _write(descriptor, content[: max(1, len(content) // 3)])
    if _kind == "delay":
        time.sleep(0.05)
        return _write(descriptor, content)
    number = getattr(errno, _kind)
    _write(descriptor, content[: len(content) // 2])
    raise OSError(number, os.strerror(number))


_time, _looks = time.time, 0


def _jumping():
    global _looks
    _looks += 1
    return _time() + (0 if _looks <= int(_number) else 86400 if _looks % 2 else -3600)


if _kind == "clock":
    time.time = _jumping
elif _kind != "none":
    os.write = _faulty
