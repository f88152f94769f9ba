"""The one place where files are written: beside their place, flushed to disk, then moved into it.

Whoever reads finds the old file or the new one, never a part. Tests inject their faults in `_write_some`.
"""

import os
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`; where that fails, the error names the file and what was there before is untouched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb", buffering=0) as file:
            rest = memoryview(content)
            while rest:
                rest = rest[_write_some(file.fileno(), rest) :]
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        _remove(beside)


def clear_unfinished(folder: Path) -> None:
    """Remove what processes that are no more had begun to write."""
    for unfinished in folder.rglob(".*.tmp"):
        if not _is_alive(unfinished.name.split(".")[-2]):
            _remove(unfinished)


def _is_alive(process: str) -> bool:
    return process.isdigit() and (os.getpid() == int(process) or Path("/proc", process).exists())


def _write_some(descriptor: int, content: memoryview) -> int:
    """How many bytes were written: the system may take fewer than it is given."""
    return os.write(descriptor, content)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a disk that cannot be written keeps its rubbish; the error that led here says why
        return
