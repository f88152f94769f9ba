"""How files are written and read: whole or not at all, and every record with the digest of its entries.

A file is written under a temporary name beside its path, flushed to disk, then renamed. A reader finds the old file or
the new one, never a part. Tests inject their faults in `_write_some`.
"""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

Record = dict[str, Any]
_MOST = 2**30  # bytes of a file of ours
_MOST_OF_RECORDS = 2**26
_MOST_ENTRIES = 2**22  # of a file of records: "[]," takes 3 bytes on disk and 64 in memory
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SECONDS = 2.0  # by which the kernel's two clocks, of files and of processes, may differ


class Damaged(ValueError):
    """A stored file cannot be read, or differs from what was written. `path` is the file."""

    def __init__(self, path: Path, why: str):
        super().__init__(
            f"{path} is damaged: {why}; repeat `beliefscope run`, which makes such a file again, "
            "or restore the file, or delete it and repeat the command that made it."
        )
        self.path = path
        self.why = why

    def __reduce__(self):
        return Damaged, (self.path, self.why)


def write_atomic(path: Path, content: bytes) -> None:
    """Write `content` to `path`. If that fails, the error names the file, and the old content is unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _remove(beside)  # an earlier process of this number may have left it, or anybody a pipe
        descriptor = os.open(beside, _NEW, 0o666)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[_write_some(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        _remove(beside)


def clear_unfinished(folder: Path) -> None:
    """Remove unfinished files of processes that no longer run."""
    for unfinished in folder.rglob(".*.tmp"):
        if not _is_being_written(unfinished):
            _remove(unfinished)


def read_bytes(path: Path, most: int = _MOST) -> bytes:
    """The content of a regular file of at most so many bytes; `Damaged` for whatever else has its name."""
    if not stat.S_ISREG(os.lstat(path).st_mode):  # a socket cannot even be opened
        raise Damaged(path, "it is not a regular file")
    # Something else may have taken its place since: a pipe would block for ever, a link lead elsewhere.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Damaged(path, "it is not a regular file")
        if found.st_size > most:
            raise Damaged(path, "it is larger than any file of its kind")
        return file.read()


def write_record(path: Path, record: Record) -> None:
    """One record, as a JSON file; its "sum" is the digest of all other entries."""
    write_atomic(path, (json.dumps(_sealed(record), indent=1, allow_nan=False) + "\n").encode())


def read_record(path: Path) -> Record:
    """The record without its sum."""
    return _opened(path, read_json(path))


def write_lines(path: Path, records: list[Record]) -> None:
    """Many records, a line each."""
    write_atomic(path, "".join(json.dumps(_sealed(record), allow_nan=False) + "\n" for record in records).encode())


def read_lines(path: Path) -> list[Record]:
    return [_opened(path, line) for line in read_json(path).splitlines()]


def read_json(path: Path) -> bytes:
    """The text of a file of JSON, if it is not too large to be parsed."""
    text = read_bytes(path, _MOST_OF_RECORDS)
    if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_ENTRIES:
        raise Damaged(path, "it has more entries than any file of its kind")
    return text


def _sealed(record: Record) -> Record:
    return {**record, "sum": _digest(record)}


def _digest(record: Record) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _opened(path: Path, text: bytes) -> Record:
    try:
        record = json.loads(text)
        fits = isinstance(record, dict) and record.pop("sum", None) == _digest(record)
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is not JSON ({error})") from error
    if not fits:
        raise Damaged(path, "its checksum does not match its content")
    return record


def _is_being_written(unfinished: Path) -> bool:
    """Is the process alive that began it? Numbers of processes come again: one that began later is another."""
    try:
        began = _began(unfinished.name.split(".")[-2])
        return began is not None and began <= unfinished.lstat().st_mtime + _SECONDS
    except OSError:  # it is gone
        return False


def _began(process: str) -> float | None:
    """When a process that is alive began, in seconds since 1970; None for one that is no more (Linux)."""
    try:
        ticks = int(Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[19])
        lines = Path("/proc/stat").read_text().splitlines()
    except (OSError, ValueError):
        return 0.0 if process == str(os.getpid()) else None  # elsewhere than on Linux only this one is known
    (booted,) = (int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def _write_some(descriptor: int, content: memoryview) -> int:
    """How many bytes were written: the system may take fewer than it is given."""
    return os.write(descriptor, content)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a disk that cannot be written keeps its rubbish; the error that led here says why
        return
