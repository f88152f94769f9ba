"""What wildcard statements amount to: the value of any cell, and the cells that are not zero.

A cell is looked up by one binary search per layer of statements. The cost follows the number of statements and of
non-zero cells, never the size of the table.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from beliefscope.pomdp.file_format.statements import Layer, Statements

_CHUNK = 1 << 20  # cells looked up at a time, which bounds the memory of intermediate results


class Cells(NamedTuple):
    """Some cells of a table in ascending order and what they hold."""

    keys: Int64[np.ndarray, " cells"]
    values: Float64[np.ndarray, " cells"]


class Table:
    """The values of all cells, 0 where nothing was said."""

    def __init__(self, statements: Statements) -> None:
        self.sizes = statements.sizes
        self._strides = statements.strides
        self._layers = statements.layers()

    def at(self, indices: Sequence[np.ndarray]) -> Float64[np.ndarray, " cells"]:
        """The values at arrays of indices, one array an axis."""
        keys = sum(index.astype(np.int64) * stride for index, stride in zip(indices, self._strides, strict=True))
        return self.look_up(np.asarray(keys, np.int64))

    def look_up(self, keys: Int64[np.ndarray, " cells"]) -> Float64[np.ndarray, " cells"]:
        """The values of these cells."""
        result = np.zeros(len(keys))
        for first in range(0, len(keys), _CHUNK):
            result[first : first + _CHUNK] = self._look_up_chunk(keys[first : first + _CHUNK])
        return result

    def count_candidates(self) -> int:
        """At least as many as there are non-zero cells; found without touching them."""
        return sum(
            int(np.count_nonzero(layer.values)) * math.prod(self.sizes[axis] for axis in layer.open_axes)
            for layer in self._layers
        )

    def nonzero(self) -> Cells:
        """All cells that do not hold 0."""
        keys = np.concatenate([np.empty(0, np.int64), *(self._agreeing(layer) for layer in self._layers)])
        keys.sort(kind="stable")  # several times as fast here as np.unique, because most runs are ascending already
        keys = keys[np.diff(keys, prepend=-1) > 0]
        values = self.look_up(keys)
        return Cells(keys[values != 0], values[values != 0])

    def _look_up_chunk(self, keys: Int64[np.ndarray, " cells"]) -> Float64[np.ndarray, " cells"]:
        values = np.zeros(len(keys))
        latest = np.full(len(keys), -1)
        for layer in self._layers:
            wanted = keys.copy()
            for axis in layer.open_axes:
                wanted -= keys // self._strides[axis] % self.sizes[axis] * self._strides[axis]
            place = np.minimum(np.searchsorted(layer.keys, wanted), len(layer.keys) - 1)
            wins = (layer.keys[place] == wanted) & (layer.order[place] > latest)
            latest[wins], values[wins] = layer.order[place[wins]], layer.values[place[wins]]
        return values

    def _agreeing(self, layer: Layer) -> Int64[np.ndarray, " cells"]:
        """Every cell that one of the layer's non-zero statements speaks of."""
        keys = layer.keys[layer.values != 0]
        for axis in layer.open_axes:
            keys = np.add.outer(keys, np.arange(self.sizes[axis]) * self._strides[axis]).ravel()
        return keys
