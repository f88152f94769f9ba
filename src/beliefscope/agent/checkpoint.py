"""Files that are whole or not there: written beside their place, flushed to disk, then moved into it.

Trees of arrays are stored by Equinox's serialisation, array after array; nothing is ever unpickled.
"""

import io
import os
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax

Tree = TypeVar("Tree")


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`; whoever reads there finds the old file or the new one, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def save_tree(path: Path, tree: object) -> None:
    """Store the arrays of a tree."""
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, jax.device_get(tree))
    write_atomic(path, buffer.getvalue())


def load_tree(path: Path, like: Tree) -> Tree:
    """The stored tree; `like` has its structure, shapes and types."""
    try:
        with path.open("rb") as file:
            tree = eqx.tree_deserialise_leaves(file, like)
            rest = file.read(1)
    except (RuntimeError, ValueError, EOFError, OSError) as error:
        raise ValueError(
            f"{path} holds the arrays that its run's spec.json describes, but reading failed ({_first_line(error)}); "
            "restore the file or delete its run's folder and train again."
        ) from error
    if rest:
        raise ValueError(
            f"{path} holds the arrays that its run's spec.json describes, but more follows behind them; "
            "restore the file or delete its run's folder and train again."
        )
    return tree


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no more is known'}"
