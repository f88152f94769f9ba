"""Arrays on disk: trees in Equinox's format, named arrays as npz. Nothing is ever unpickled.

The SHA-256 of a tree's arrays follows them in the file, where Equinox's own reader does not look. Named arrays have it
as one more array, `sha256`. Named arrays are read without JAX.
"""

import hashlib
import io
import math
import zipfile
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from beliefscope.store.files import Damaged, read_bytes, write_atomic

Tree = TypeVar("Tree")
_DIGEST = 64  # hexadecimal digits
_MOST = 2**28  # bytes of all arrays of a file: a few kilobytes of zip can claim to hold terabytes
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
    np.savez_compressed(buffer, allow_pickle=False, **arrays, sha256=np.array(_digest(arrays)))
    write_atomic(path, buffer.getvalue())


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    content = read_bytes(path, _MOST)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = _members(archive)
        digest = str(arrays.pop("sha256"))
    except Exception as error:  # whatever Python's readers raise on an npz file that was altered
        raise Damaged(path, f"it cannot be read ({type(error).__name__})") from error
    if digest != _digest(arrays):
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


def _members(archive: zipfile.ZipFile, most: int = _MOST) -> dict[str, np.ndarray]:
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


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
