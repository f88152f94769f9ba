"""How files are written and read: whole or not at all, with the digest of their content, by one process at a time.

A file is written under a temporary name beside its path, flushed to disk, then renamed. A reader finds the old file or
the new one, never a part. Tests inject their faults in `_write_some`. A record is JSON with the digest of its entries.

Arrays are trees in Equinox's format, or named arrays as npz, which are read without JAX. Nothing is ever unpickled. The
SHA-256 of a tree's arrays follows them in the file, where Equinox's own reader does not look. Named arrays have it as
one more array, `sha256`.

A lock is one on a file, which the kernel releases when its holder dies.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from beliefscope.store.layout import is_file

Record = dict[str, Any]
_MOST = 2**30  # bytes of a file of ours
_MOST_OF_RECORDS = 2**26
_MOST_ENTRIES = 2**21  # of a file of records: "[]," takes 3 bytes on disk and 64 in memory
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = re.compile(r"\..+\.([0-9]+)\.tmp")  # as `write_atomic` calls what it writes
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


def clear_unfinished(folders: Iterable[Path]) -> None:
    """Remove unfinished files of processes that no longer run, from these folders and not from folders in them.

    Another file may be called `.notes.tmp`: only names that `write_atomic` makes are looked at.
    """
    for folder in folders:
        for unfinished in folder.glob(".*.tmp"):
            named = _UNFINISHED.fullmatch(unfinished.name)
            if named and not _is_being_written(unfinished, process=named[1]):
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


def _is_being_written(unfinished: Path, *, process: str) -> bool:
    """Is the process alive that began it? Numbers of processes come again: one that began later is another."""
    try:
        began = _began(process)
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


Tree = TypeVar("Tree")
_DIGEST = 64  # hexadecimal digits
_MOST_ARRAYS = 2**28  # bytes of all arrays of a file: a few kilobytes of zip can claim to hold terabytes
_MOST_FOREIGN = 2**34  # the same of recorded episodes


def save_tree(path: Path, tree: object, *, of: str = "") -> None:
    """Store the arrays of a tree; `of` says whose they are, and enters the checksum."""
    import equinox as eqx
    import jax

    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, jax.device_get(tree))
    content = buffer.getvalue()
    write_atomic(path, content + _tree_digest(content, of))


def load_tree(path: Path, like: Tree, *, of: str = "") -> Tree:
    """The stored tree; `like` has its structure, shapes and types. Older files do not say whose they are."""
    import equinox as eqx

    stored = read_bytes(path)
    content, digest = stored[:-_DIGEST], stored[-_DIGEST:]
    if digest not in (_tree_digest(content, of), _tree_digest(content, "")):
        raise Damaged(path, "its checksum does not match its content")
    buffer = io.BytesIO(content)
    try:
        tree = eqx.tree_deserialise_leaves(buffer, like)
    except Exception as error:  # whatever the readers of NumPy and Equinox raise
        raise Damaged(
            path, f"it holds other arrays than its run's spec.json describes ({type(error).__name__})"
        ) from error
    if buffer.read(1):
        raise Damaged(path, "it holds more arrays than its run's spec.json describes")
    return tree


def _tree_digest(content: bytes, of: str) -> bytes:
    return hashlib.sha256(content + of.encode()).hexdigest().encode()


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Store named arrays, compressed."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays, sha256=np.array(_array_digest(arrays)))
    write_atomic(path, buffer.getvalue())


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    content = read_bytes(path, _MOST_ARRAYS)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = _members(archive)
        digest = str(arrays.pop("sha256"))
    except Exception as error:  # whatever Python's readers raise on an npz file that was altered
        raise Damaged(path, f"it cannot be read ({type(error).__name__})") from error
    if digest != _array_digest(arrays):
        raise Damaged(path, "its checksum does not match its content")
    return arrays


def read_foreign_arrays(path: Path) -> dict[str, np.ndarray]:
    """Named arrays that someone else wrote, without a checksum; nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _members(archive, most=_MOST_FOREIGN)
    except Exception as error:  # whatever Python's readers raise on a file that is none, or was altered
        raise ValueError(
            f"an .npz file holds arrays of numbers, at most {_MOST_FOREIGN // 2**30} GiB of them, but got "
            f"{str(path)!r} ({error}); write it by np.savez, without objects."
        ) from error


def _members(archive: zipfile.ZipFile, most: int = _MOST_ARRAYS) -> dict[str, np.ndarray]:
    members = archive.infolist()
    if sum(member.file_size for member in members) > most:
        raise ValueError("more arrays than any of our files has")
    found = {}
    for member in members:
        with archive.open(member) as file:
            found[member.filename.removesuffix(".npy")] = _read_array(file, member.file_size)
    return found


def _read_array(file: Any, size: int) -> np.ndarray:
    """The sizes in the header are compared with the member's before memory is allocated."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(file)]
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError("the array's size is not the one that its header claims")
    return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if fortran else "C")


def _array_digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Busy(ValueError):
    """Another process holds the lock."""

    def __init__(self, path: Path):
        super().__init__(
            f"one process at a time works on a piece, but another one holds {path}; wait for it, or stop it and repeat."
        )
        self.path = path

    def __reduce__(self):
        return Busy, (self.path,)


def make_once(held: Path, result: Path, make: Callable[[], None]) -> None:
    """Under the lock `held`, call `make`, which writes the file `result`, unless the file exists."""
    with lock(held):
        if not is_file(result):
            make()


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock, or raise `Busy`. The file is gone afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # while the lock is held, so that nobody else's file is removed
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between our opening and our locking it.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError as error:
            os.close(descriptor)
            raise Busy(path) from error
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
