"""Particle sets as frequencies on a grid that all sets share.

A column of at most two values (an entry of a one-hot code) is divided by value, any other into `bins` equal parts of
its range over all particles. Cells into which no particle falls are left out.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from beliefscope.errors import is_whole, require
from beliefscope.information.check import checked_rows

MAX_CELLS = 10_000
_NUMBERS_AT_ONCE = 250_000  # what is computed of so many stays in a processor's cache


class _Axis(NamedTuple):
    """How one column is divided: by value, or into equal parts of its range."""

    low: float
    high: float
    parts: int
    by_value: bool

    def part(self, values: Float[np.ndarray, "*batch"]) -> Int[np.ndarray, "*batch"]:
        """In which part each value lies."""
        if self.by_value:
            return (values > self.low).astype(np.int64)
        part = (values.astype(np.float64) - self.low) / (self.high - self.low) * self.parts
        return np.minimum(part.astype(np.int64), self.parts - 1)

    def centre(self, part: Int[np.ndarray, " cells"]) -> Float[np.ndarray, " cells"]:
        if self.by_value:
            return np.where(part > 0, self.high, self.low)
        return self.low + (part + 0.5) / self.parts * (self.high - self.low)


class Histogram(NamedTuple):
    """How the particles of each set are spread over the cells."""

    frequencies: Float[np.ndarray, "n cells"]
    parts: Int[np.ndarray, "cells d"]  # in which part of each column a cell lies
    axes: tuple[_Axis, ...]

    @property
    def centres(self) -> Float[np.ndarray, "cells d"]:
        """The centre of each cell; along a column that is divided by value it is that value."""
        along = [axis.centre(part) for axis, part in zip(self.axes, self.parts.T, strict=True)]
        return np.stack(along, axis=1).astype(np.float32)


def histogram(sets: Any, *, bins: int = 10) -> Float[np.ndarray, "n cells"]:
    """The frequencies of particle sets [N, M, d], in single precision."""
    return binned(sets, bins=bins).frequencies


def binned(sets: Any, *, bins: int = 10) -> Histogram:
    """The same with the cells."""
    require(
        is_whole(bins) and 1 <= bins <= 1000,
        rule="the number of bins of a column is a whole number from 1 to 1000",
        received=bins,
        advice="10 bins show where the particles are without most cells standing empty",
    )
    sets = np.asarray(sets)
    require(
        sets.ndim == 3 and sets.size > 0,
        rule="particle sets have the shape [N, M, d], at least one particle each",
        received=sets.shape,
        advice="put the samples on the first axis, the particles on the second and their coordinates on the third",
    )
    # A check of rows reads sets too, once each is flattened.
    sets = checked_rows("sets", sets.reshape(len(sets), -1), at_least=1).reshape(sets.shape)
    axes = tuple(_divided(column, bins) for column in np.moveaxis(sets, -1, 0))
    blocks = np.array_split(np.arange(len(sets)), min(len(sets), -(-sets.size // _NUMBERS_AT_ONCE)))
    cell, parts = _numbered(sets, axes, blocks)
    frequencies = np.empty((len(sets), len(parts)), np.float32)
    for block in blocks:
        flat = cell[block] + len(parts) * np.arange(len(block))[:, None]
        counts = np.bincount(flat.ravel(), minlength=len(block) * len(parts))
        frequencies[block] = counts.reshape(len(block), -1) / sets.shape[1]
    return Histogram(frequencies, parts, axes)


def coarser(found: Histogram) -> Histogram:
    """Half as many bins along each column that is not divided by value: two neighbours become one."""
    axes = tuple(axis if axis.by_value else axis._replace(parts=-(-axis.parts // 2)) for axis in found.axes)
    halves = np.where([axis.by_value for axis in axes], found.parts, found.parts // 2)
    parts, merged = np.unique(halves, axis=0, return_inverse=True)
    return Histogram(found.frequencies @ np.eye(len(parts), dtype=np.float32)[merged.ravel()], parts, axes)


def _divided(column: Float[np.ndarray, "n m"], bins: int) -> _Axis:
    low, high = float(column.min()), float(column.max())
    by_value = all(np.all((row == low) | (row == high)) for row in column)  # most columns fail at the first row
    return _Axis(low, high, parts=1 + (high > low) if by_value else bins, by_value=by_value)


def _numbered(
    sets: Float[np.ndarray, "n m d"], axes: tuple[_Axis, ...], blocks: list[np.ndarray]
) -> tuple[Int[np.ndarray, "n m"], Int[np.ndarray, "cells d"]]:
    """The cell of each particle, and the parts of each cell. After each column the cells that occur are numbered anew,
    so that the numbers stay small however many columns there are."""
    cell, parts = np.zeros(sets.shape[:2], np.int64), np.zeros((1, 0), np.int64)
    for place, axis in enumerate(axes):
        occupied = np.zeros(len(parts) * axis.parts, bool)
        for block in blocks:
            cell[block] = cell[block] * axis.parts + axis.part(sets[block, :, place])
            occupied[cell[block]] = True
        numbers, anew = np.flatnonzero(occupied), np.cumsum(occupied) - 1
        for block in blocks:
            cell[block] = anew[cell[block]]
        parts = np.column_stack([parts[numbers // axis.parts], numbers % axis.parts])
        require(
            len(parts) <= MAX_CELLS,
            rule=f"the particles fall into at most {MAX_CELLS} cells",
            received=f"{len(parts)} or more",
            advice="use fewer bins, or keep only the columns that matter",
        )
    return cell, parts
