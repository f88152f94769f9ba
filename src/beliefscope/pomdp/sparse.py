"""Sparse rows for JAX: the non-zero entries of a matrix, row after row, with fixed-size windows and binary search.

Rows may have any number of entries. The cost of a row depends on its number of non-zeros (for sampling and look-up, on
its logarithm), never on the number of columns. `lax.dynamic_slice` cuts rows out of the flat arrays, so everything has
static shapes and works under `jit` and `vmap`.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray


class Block(NamedTuple):
    """Entries of some consecutive rows; `row` counts from the first of them."""

    row: Int[Array, " entries"]
    column: Int[Array, " entries"]
    value: Float[Array, " entries"]


class SparseRows(eqx.Module):
    """The non-zeros of a matrix in row order, its columns ascending within a row."""

    start: Int[Array, " rows_plus_one"]  # row r holds the entries start[r] … start[r + 1] − 1
    row: Int[Array, " entries"]
    column: Int[Array, " entries"]
    value: Float[Array, " entries"]
    cumulative: Float[Array, " entries"]  # running sum of the values within each row
    width: int = eqx.field(static=True)  # the longest row
    block_width: int = eqx.field(static=True)  # the longest block of `rows_at_once` rows
    rows_at_once: int = eqx.field(static=True)

    def __init__(self, matrix: scipy.sparse.csr_array, *, rows_at_once: int = 1) -> None:
        """`matrix` is canonical (see `canonical`); `block` may cut out up to `rows_at_once` consecutive rows."""
        counts = np.diff(matrix.indptr)
        running = np.cumsum(matrix.data)
        before = np.concatenate([[0.0], running])[matrix.indptr[:-1]]
        blocks = np.diff(matrix.indptr[::rows_at_once])
        self.width = int(max(counts.max(initial=0), 1))
        self.block_width = int(max(blocks.max(initial=0), 1))
        self.start = jnp.asarray(matrix.indptr.astype(np.int32))
        # Slices near the end must stay inside the arrays: one spare block of zeros.
        self.row = _padded(_row_of_entry(matrix), self.block_width)
        self.column = _padded(matrix.indices.astype(np.int32), self.block_width)
        self.value = _padded(matrix.data, self.block_width)
        self.cumulative = _padded(running - np.repeat(before, counts), self.block_width)
        self.rows_at_once = rows_at_once

    def block(self, number: Int[ArrayLike, ""]) -> Block:
        """The entries of rows number · rows_at_once onwards, filled up with entries of value zero."""
        first = self.start[number * self.rows_at_once]
        last = self.start[(number + 1) * self.rows_at_once]

        def cut(flat: Array) -> Array:
            return jax.lax.dynamic_slice(flat, (first,), (self.block_width,))

        value = jnp.where(jnp.arange(self.block_width) < last - first, cut(self.value), 0)
        return Block(row=cut(self.row) % self.rows_at_once, column=cut(self.column), value=value)

    def sample(self, key: PRNGKeyArray, row: Int[ArrayLike, ""]) -> Int[Array, ""]:
        """A column drawn with the row's values as probabilities."""
        first, last = self.start[row], self.start[row + 1]
        level = jax.random.uniform(key, dtype=self.value.dtype) * self.cumulative[last - 1]
        entry = self._search(first, last, lambda middle: self.cumulative[middle] <= level)
        return self.column[jnp.minimum(entry, last - 1)]

    def find(self, row: Int[ArrayLike, ""], column: Int[ArrayLike, ""]) -> tuple[Int[Array, ""], Bool[Array, ""]]:
        """The entry that holds (row, column), and whether there is one."""
        first, last = self.start[row], self.start[row + 1]
        entry = self._search(first, last, lambda middle: self.column[middle] < column)
        return entry, (entry < last) & (self.column[entry] == column)

    def _search(self, first: Int[Array, ""], last: Int[Array, ""], before) -> Int[Array, ""]:
        """The first entry of [first, last) for which `before` is false, or `last`."""

        def halve(_, bounds):
            low, high = bounds
            middle = (low + high) // 2
            go_right = (low < high) & before(middle)
            return jnp.where(go_right, middle + 1, low), jnp.where(go_right | (low >= high), high, middle)

        return jax.lax.fori_loop(0, self.width.bit_length(), halve, (first, last))[0]


def canonical(matrix: Any) -> scipy.sparse.csr_array:
    """A copy in float64 without stored zeros or duplicates, columns ascending.

    The values are rounded to the precision that JAX will hold them in, so that all derived values (running sums,
    expected rewards, what counts as zero) are derived from the numbers that are kept.
    """
    result: scipy.sparse.csr_array = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)  # pyright: ignore
    result.sum_duplicates()
    result.data = result.data.astype(jnp.result_type(float)).astype(np.float64)
    result.eliminate_zeros()
    return result


def _row_of_entry(matrix: scipy.sparse.csr_array) -> np.ndarray:
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))


def _padded(values: np.ndarray, width: int) -> Array:
    return jnp.asarray(np.concatenate([values, np.zeros(width, values.dtype)]))
