"""Lay the histories of a batch of sampled transitions out as rows of time steps.

A row holds one history or, on CPU, two: the longest and the shortest, the second longest and the second shortest, and
so on. The lengths of sampled histories spread from 1 to H, so that half as many rows need hardly more steps.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


class Rows(NamedTuple):
    """Where the histories lie."""

    numbers: Int[Array, "time rows"]  # the transition whose input x_t stands there
    fresh: Bool[Array, "time rows"] | None  # does the first history of a row end before?
    row: Int[Array, " batch"]  # the row of each history
    last: Int[Array, " batch"]  # the time of its last input


def pairing(lengths: Int[Array, " batch"]) -> Int[Array, " batch"]:
    """The order in which to lay histories out two to a row: falling to the middle, then rising from the shortest."""
    half = len(lengths) // 2
    falling = jnp.argsort(-lengths)
    return jnp.concatenate([falling[: len(lengths) - half], falling[::-1][:half]])


def steps_needed(lengths: Int[Array, " batch"], *, per_row: int) -> Int[Array, ""]:
    """Time steps of the longest row."""
    rows = -(-len(lengths) // per_row)
    first, second = lengths[:rows], lengths[rows:]
    return jnp.max(first.at[: len(second)].add(second))


def lay_out(starts: Int[Array, " batch"], lengths: Int[Array, " batch"], *, per_row: int, time: int) -> Rows:
    """Rows of `time` steps; history i, which begins at transition `starts[i]`, lies in row i modulo the number of rows.

    Steps behind a row's last input run on into the transitions that follow, which does no harm.
    """
    rows = -(-len(lengths) // per_row)
    row, clock = jnp.arange(len(lengths)) % rows, jnp.arange(time)[:, None]
    if per_row == 1:
        return Rows(starts + clock, None, row, lengths - 1)
    end = lengths[:rows]
    shift = jnp.zeros(rows, int).at[: len(lengths) - rows].set(starts[rows:]) - end
    numbers = clock + jnp.where(clock < end, starts[:rows], shift)
    begin = jnp.concatenate([jnp.zeros_like(end), end[: len(lengths) - rows]])
    return Rows(numbers, clock == end, row, begin + lengths - 1)
