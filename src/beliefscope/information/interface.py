"""What an estimator of mutual information is, and the arrays that it takes.

`estimate(key, x, y)` gives an `Estimate` in bits. x is a batch of vectors [N, dx]; y is a batch of vectors [N, dy] or,
for the estimators that read them, a batch of sets [N, M, dy]. The samples are taken as independent of each other. The
key is used by estimators that sample and ignored by the others.

`checked_pair` reads both from anything that NumPy can read. Single and double precision are kept, other numbers become
double; a 1-d array is a batch of numbers, [N, 1].
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.warning_signs import NEAR


def _no_curve() -> Float[np.ndarray, " steps"]:
    return np.zeros(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A number of bits and how it was measured: numbers with another N, M or estimator cannot be compared."""

    bits: float
    standard_error: float  # of the sampling error alone, not of the method's bias; nan where it is not known
    num_samples: int  # N, the pairs given
    num_particles: int | None  # M, where y is a batch of sets
    estimator: str  # "KSG, k = 3"
    ceiling: float | None = None  # the most bits the method can report from these samples, where there is such a limit
    curve: Float[np.ndarray, " steps"] = field(default_factory=_no_curve)  # bits during a fit; empty where none is made

    interval: tuple[float, float] | None = (
        None  # where the truth lies, as far as known cases tell (docs/calibration.md)
    )

    warnings: tuple[str, ...] = ()  # what makes the number doubtful, a few words each

    shuffled: "Estimate | None" = None  # the control, where one was made: the same samples with their pairs broken up

    def __str__(self) -> str:
        marks = [self.estimator, f"N = {self.num_samples}"]
        marks += [f"M = {self.num_particles}"] if self.num_particles is not None else []
        control = f"; shuffled {self.shuffled.bits:z.2f}" if self.shuffled is not None else ""
        doubts = "".join(f"; warning: {warning}" for warning in self.warnings)
        held = "" if self.interval is None else " in [{:z.2f}, {:z.2f}]".format(*self.interval)
        return f"{self.bits:z.2f} ± {self.standard_error:.2f} bits{held} ({', '.join(marks)}){control}{doubts}"

    @property
    def near_ceiling(self) -> bool:
        """Is the number within half a bit of the method's largest possible report? Then it is at best a lower bound."""
        return self.ceiling is not None and self.bits > self.ceiling - NEAR


@runtime_checkable
class Estimator(Protocol):
    """Anything that measures the mutual information of paired samples."""

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]: any arrays that NumPy can read."""
        ...


def no_information(num_samples: int, num_particles: int | None, estimator: str, ceiling: float | None) -> Estimate:
    """Zero bits, exactly: one of the two never varies."""
    return Estimate(
        bits=0.0,
        standard_error=0.0,
        num_samples=num_samples,
        num_particles=num_particles,
        estimator=estimator,
        ceiling=ceiling,
    )


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


_MOST_THREADS = 8
_Result = TypeVar("_Result")


def in_threads(function: Callable[..., _Result], *arguments: Iterable) -> list[_Result]:
    """As `map`, on the cores that this process may use: NumPy lets other threads run while it computes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(cores, _MOST_THREADS)) as pool:
        return list(pool.map(function, *arguments))
