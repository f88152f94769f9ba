"""Arrays on disk: trees in Equinox's format, named arrays as npz. Nothing is ever unpickled.

Behind the arrays of a tree stands their SHA-256, where Equinox's own reader does not look; named arrays have it among
them, as `sha256`.
"""

import hashlib
import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np

from beliefscope.storage.atomic import write_atomic
from beliefscope.storage.damaged import Damaged

Tree = TypeVar("Tree")
_DIGEST = 64  # hexadecimal digits
# What Python's readers raise on an npz file that was altered.
_UNREADABLE = (
    ValueError,
    LookupError,
    EOFError,
    RuntimeError,
    SyntaxError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)


def save_tree(path: Path, tree: object) -> None:
    """Store the arrays of a tree."""
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, jax.device_get(tree))
    content = buffer.getvalue()
    write_atomic(path, content + hashlib.sha256(content).hexdigest().encode())


def load_tree(path: Path, like: Tree) -> Tree:
    """The stored tree; `like` has its structure, shapes and types."""
    stored = path.read_bytes()
    content, digest = stored[:-_DIGEST], stored[-_DIGEST:]
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise Damaged(path, "its checksum does not fit its content")
    buffer = io.BytesIO(content)
    try:
        tree = eqx.tree_deserialise_leaves(buffer, like)
    except (RuntimeError, ValueError, EOFError) as error:
        raise Damaged(
            path, f"it holds other arrays than its run's spec.json describes ({type(error).__name__})"
        ) from error
    if buffer.read(1):
        raise Damaged(path, "it holds more arrays than its run's spec.json describes")
    return tree


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Store named arrays, compressed."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays, sha256=np.array(_digest(arrays)))
    write_atomic(path, buffer.getvalue())


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = dict(stored)
        digest = str(arrays.pop("sha256"))
    except _UNREADABLE as error:
        raise Damaged(path, f"it cannot be read ({type(error).__name__})") from error
    if digest != _digest(arrays):
        raise Damaged(path, "its checksum does not fit its content")
    return arrays


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
