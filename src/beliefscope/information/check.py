"""Reads the two arrays of an estimator: from anything NumPy can read to [N, dx] and [N, dy] or [N, M, dy].

Single and double precision are kept, other numbers become double; a 1-d array is a batch of numbers, [N, 1].
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from beliefscope.errors import require

_LARGEST = 1e15  # a product of two such numbers, summed over thousands, is still finite in single precision
_LOST = 0.1  # of a column's deviation


class Pair(NamedTuple):
    """Paired samples, finite and of equal number."""

    x: Float[np.ndarray, "n dx"]
    y: Float[np.ndarray, "n dy"] | Float[np.ndarray, "n m dy"]


def checked_pair(x: Any, y: Any, *, sets_allowed: bool, names: tuple[str, str] = ("x", "y")) -> Pair:
    """The pair as NumPy arrays; data that cannot be measured raise an error of one sentence with their names."""
    pair = Pair(_checked(names[0], x, sets_allowed=False), _checked(names[1], y, sets_allowed=sets_allowed))
    require(
        len(pair.x) == len(pair.y),
        rule=f"{names[0]} and {names[1]} need the same number of samples, one pair a row",
        received=(len(pair.x), len(pair.y)),
        advice="pass arrays whose first axes agree",
    )
    return pair


def in_single_precision(name: str, array: Float[np.ndarray, "n *m d"]) -> Float[np.ndarray, "n *m d"]:
    """The array in single precision; an error of one sentence if its rows would coincide or overflow."""
    largest = float(max(-np.min(array), np.max(array)))
    require(
        largest < _LARGEST,
        rule=f"every number in {name} is below {_LARGEST:g} in size, so that single precision can multiply them",
        received=largest,
        advice="divide each column by its standard deviation first",
    )
    rounded = array.astype(np.float32, copy=False)
    if array.dtype == np.float64:
        columns = tuple(range(array.ndim - 1))
        lost, there = np.std(array - rounded, axis=columns), np.std(array, axis=columns)
        require(
            bool(np.all(lost <= _LOST * there)),
            rule=f"single precision tells the numbers in a column of {name} apart",
            received=f"a column of deviation {there[np.argmax(lost > _LOST * there)]:.3g} around "
            f"{np.mean(array[..., np.argmax(lost > _LOST * there)]):.3g}",
            advice="subtract each column's mean and divide by its deviation first, or leave out what hardly varies",
        )
    return rounded


def is_constant(rows: Float[np.ndarray, "n *m d"]) -> bool:
    return all(np.array_equal(row, rows[0]) for row in rows)  # ends at the first that differs


def checked_rows(name: str, value: Any, *, at_least: int = 2) -> Float[np.ndarray, "n d"]:
    """One batch of vectors, by the same rules."""
    return _checked(name, value, sets_allowed=False, at_least=at_least)


def checked_belief(name: str, value: Any) -> Float[np.ndarray, "n *m d"]:
    """One batch of vectors or of sets, by the same rules."""
    return _checked(name, value, sets_allowed=True)


def _checked(name: str, value: Any, *, sets_allowed: bool, at_least: int = 2) -> Float[np.ndarray, "n *m d"]:
    array = _as_numbers(name, value)
    if array.ndim == 1:
        array = array[:, None]
    require(
        array.ndim != 3 or sets_allowed,
        rule=f"{name} is a batch of vectors [N, d] here and not of sets",
        received=array.shape,
        advice="pass sets as y to MINE with a deep-set critic, or flatten each into a row",
    )
    require(
        array.ndim == 2 or (array.ndim == 3 and sets_allowed),
        rule=f"{name} has the shape [N, d]" + (" or [N, M, d]" if sets_allowed else ""),
        received=array.shape,
        advice="put the samples on the first axis and flatten the rest",
    )
    require(
        len(array) >= at_least,
        rule=f"the number of rows of {name} is at least {at_least}",
        received=len(array),
        advice="measure on more samples, thousands where possible",
    )
    require(
        array.size > 0,
        rule=f"each sample of {name} needs at least one number",
        received=array.shape,
        advice="leave out empty axes",
    )
    finite = bool(np.isfinite(np.min(array)) and np.isfinite(np.max(array)))
    require(
        finite,
        rule=f"every number in {name} is finite",
        received="" if finite else f"{int(np.sum(~np.isfinite(array)))} NaN or infinite of {array.size}",
        advice="find the step that made them, or leave those samples out of both x and y",
    )
    return array


def _as_numbers(name: str, value: Any) -> np.ndarray:
    try:
        array = _read(value)
        # 'same_kind' lets integers, booleans and every float through, and stops complex numbers, text and objects.
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64, casting="same_kind")
    except (TypeError, ValueError, RuntimeError, BufferError):
        require(
            False,
            rule=f"{name} is an array of real numbers that NumPy can read",
            received=type(value).__name__,
            advice="pass a NumPy or JAX array, or tensor.detach().cpu().float() of a torch tensor",
        )
        raise
    return array


def _read(value: Any) -> np.ndarray:
    """By `__array__`, or by DLPack where there is only that."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)
