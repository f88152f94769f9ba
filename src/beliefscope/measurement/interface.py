"""Paired samples of memory and belief, with what the controls of a measurement need beside them."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int, PyTree

RECENT = 8  # how many of the last (action, observation) pairs are kept


class Pairs(NamedTuple):
    """One step of each of N episodes."""

    memory: Float[Array, "n memory"]  # h_t
    belief: PyTree  # features of b_t: vectors [n, d], sets [n, M, d], or a record of those by part
    time: Int[Array, " n"]  # t
    observation: Float[Array, "n observation"]  # o_t as the network reads it
    recent: Float[Array, "n recent"]  # (a_{t-1}, o_t) and the seven before it, newest first, zeros before the start
    replayed: Float[Array, "n other"] | None  # the memory of another agent along the same histories, where one is given
    health: PyTree  # how far each belief can be trusted
    returns: Float[Array, " n"] | None  # the episode's discounted return, where it is known
