"""Wildcard statements, such as `T: * : 3 : 4 0.5`, in the order of the file.

A table over k axes (T: action, state, next state) is given by statements "every cell that agrees with these indices
holds this value", where an index may be left open and later statements override earlier ones. A cell, and likewise a
statement, is one integer: its indices in mixed radix, the last axis fastest, open axes as 0. Statements with the same
axes open form a layer, in which only the latest of each key counts.

`Table` gives the result of all statements: the value of any cell, and the cells that are not zero. A cell is looked up
by one binary search per layer. The cost grows with the number of statements and of non-zero cells, never with the size
of the table.
"""

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

MAX_CELLS = 30_000_000
ANY = -1  # the index of an open axis
_CHUNK = 1 << 20  # cells looked up at a time, which bounds the memory of intermediate results
_TINY = 1e-45  # what single precision, in which POMDPs are stored, just tells from 0


class Layer(NamedTuple):
    """The statements that leave the same axes open: ascending keys, and for each its latest statement."""

    open_axes: tuple[int, ...]
    keys: Int64[np.ndarray, " statements"]
    order: Int64[np.ndarray, " statements"]  # place in the file: the higher one wins
    values: Float64[np.ndarray, " statements"]


class Statements:
    """Collects statements in the order of the file; `sizes` are the lengths of the table's axes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.strides = tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
        self._patterns = array("b")  # bit k: axis k is open
        self._keys = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._keys)

    def set(self, indices: Sequence[int], value: float) -> None:
        """Every cell that begins with these indices, `ANY` agreeing with all, holds the value."""
        pattern, key = self._code(indices)
        self._patterns.append(pattern | (1 << len(self.sizes)) - (1 << len(indices)))
        self._keys.append(key)
        self._values.append(value)

    def set_block(
        self, indices: Sequence[int], places: Int64[np.ndarray, " cells"], values: Float64[np.ndarray, " cells"]
    ) -> None:
        """Of the cells that begin with these indices, those at the given flat places hold the values, the rest 0."""
        self.set(indices, 0.0)
        pattern, key = self._code(indices)
        self._patterns.frombytes(np.full(len(places), pattern, np.int8).tobytes())
        self._keys.frombytes((places.astype(np.int64) + key).tobytes())
        self._values.frombytes(values.astype(np.float64).tobytes())

    def layers(self) -> list[Layer]:
        """The statements that count, by which axes they leave open."""
        patterns = np.frombuffer(self._patterns, np.int8)
        keys, values = np.frombuffer(self._keys, np.int64), np.frombuffer(self._values, np.float64)
        members = {pattern: np.flatnonzero(patterns == pattern) for pattern in range(1 << len(self.sizes))}
        return [self._layer(pattern, order, keys, values) for pattern, order in members.items() if order.size]

    def _code(self, indices: Sequence[int]) -> tuple[int, int]:
        pattern = key = 0
        for axis, index in enumerate(indices):
            if index == ANY:
                pattern |= 1 << axis
            else:
                key += index * self.strides[axis]
        return pattern, key

    def _layer(
        self,
        pattern: int,
        order: Int64[np.ndarray, " some"],
        keys: Int64[np.ndarray, " all"],
        values: Float64[np.ndarray, " all"],
    ) -> Layer:
        order = order[np.argsort(keys[order], kind="stable")]
        ordered = keys[order]
        latest = np.append(ordered[1:] != ordered[:-1], True)
        order = order[latest]
        open_axes = tuple(axis for axis in range(len(self.sizes)) if pattern >> axis & 1)
        return Layer(open_axes, ordered[latest], order, np.where(np.abs(values[order]) < _TINY, 0.0, values[order]))


class Cells(NamedTuple):
    """Some cells of a table in ascending order and what they hold."""

    keys: Int64[np.ndarray, " cells"]
    values: Float64[np.ndarray, " cells"]


class Table:
    """The values of all cells, 0 where no statement sets one."""

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
