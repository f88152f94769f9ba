"""The replay buffer B: the last N transitions in a flat ring, and the target network's value of each.

Transitions are numbered in order; number k is in slot k mod (N + H). The H slots beyond N keep the beginnings of
episodes whose first transitions have already left the buffer. So the ring has the whole history of every stored
transition: the t + 1 inputs x_0 … x_t are in the slots up to its own, and x_{t+1} is in its own slot too.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.network import QNetwork

_STRETCHES = 64  # parts of the ring that are read side by side when values are computed anew


class Replay(NamedTuple):
    """The ring; a slot holds one transition (η_{0:t}, a_t, r_t, o_{t+1})."""

    inputs: Float[Array, "slots inputs"]  # x_t
    next_inputs: Float[Array, "slots inputs"]  # x_{t+1}
    actions: Int[Array, " slots"]  # a_t
    rewards: Float[Array, " slots"]  # r_t
    terminal: Bool[Array, " slots"]  # did the episode end in a terminal state here?
    times: Int[Array, " slots"]  # t
    next_values: Float[Array, " slots"]  # max_a Q_θ'(η_{0:t+1}, a)
    total: Int[Array, ""]  # how many transitions were ever stored


class Episode(NamedTuple):
    """One episode, ready to be stored; entries beyond its length are ignored."""

    inputs: Float[Array, "H+1 inputs"]
    actions: Int[Array, " H"]
    rewards: Float[Array, " H"]
    next_values: Float[Array, " H"]
    length: Int[Array, ""]
    terminated: Bool[Array, ""]


def empty_replay(capacity: int, *, horizon: int, input_size: int) -> Replay:
    """No transition yet."""
    slots = capacity + horizon
    return Replay(
        inputs=jnp.zeros((slots, input_size)),
        next_inputs=jnp.zeros((slots, input_size)),
        actions=jnp.zeros(slots, int),
        rewards=jnp.zeros(slots),
        terminal=jnp.zeros(slots, bool),
        times=jnp.zeros(slots, int),
        next_values=jnp.zeros(slots),
        total=jnp.zeros((), int),
    )


def store(replay: Replay, episode: Episode) -> Replay:
    """The ring with the episode's transitions in place of the oldest."""
    slots, times = len(replay.times), jnp.arange(len(episode.actions))
    where = jnp.where(times < episode.length, (replay.total + times) % slots, slots)
    new = Replay(
        inputs=episode.inputs[:-1],
        next_inputs=episode.inputs[1:],
        actions=episode.actions,
        rewards=episode.rewards,
        terminal=episode.terminated & (times == episode.length - 1),
        times=times,
        next_values=episode.next_values,
        total=episode.length,
    )
    total = replay.total + new.total
    rings = jax.tree.map(lambda ring, rows: ring.at[where].set(rows, mode="drop"), replay[:-1], new[:-1])
    return Replay(*rings, total=total)


def sample(key: PRNGKeyArray, replay: Replay, *, capacity: int, batch_size: int) -> Int[Array, " batch"]:
    """Numbers of transitions drawn uniformly from the last `capacity`."""
    stored = jnp.minimum(replay.total, capacity)
    return replay.total - 1 - jax.random.randint(key, (batch_size,), 0, stored)


class _Reading(NamedTuple):
    """The position of the target network in each stretch of the ring."""

    number: Int[Array, " stretches"]  # the transition that is read
    opening: Bool[Array, " stretches"]  # does it open an episode whose x_0 has not been read yet?
    memory: PyTree  # of the target network [stretches, ...]
    values: Float[Array, " slots"]  # what has been computed so far


def refresh_values(replay: Replay, target: QNetwork, *, capacity: int) -> Replay:
    """The ring with max_a Q_θ'(η_{0:t+1}, a) computed again for every stored transition.

    The stored transitions are cut into stretches of whole episodes, which are read side by side. An episode of T
    transitions takes T + 1 readings: of x_0, from an empty memory, which gives no value, and of x_{t+1} beside each
    transition, which gives that transition's.
    """
    slots = len(replay.times)
    begins, ends = _stretches(replay, capacity)
    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (_STRETCHES, *leaf.shape)), target.init_memory())

    def read_one(reading: _Reading) -> _Reading:
        number, opening, memory, values = reading
        slot = number % slots
        inputs = _where(opening, replay.inputs[slot], replay.next_inputs[slot])
        memory = jax.tree.map(lambda start, old: _where(opening, start, old), empty, memory)
        memory, q = jax.vmap(target.step_input)(memory, inputs)
        known = ~opening & (number < ends)
        values = values.at[jnp.where(known, slot, slots)].set(jnp.max(q, axis=-1), mode="drop")
        number = number + ~opening
        opening = ~opening & (replay.times[number % slots] == 0)
        return _Reading(number, opening, memory, values)

    start = _Reading(begins, jnp.ones(_STRETCHES, bool), empty, replay.next_values)
    done = lax.while_loop(lambda reading: jnp.any(reading.number < ends), read_one, start)
    return replay._replace(next_values=done.values)


def _stretches(replay: Replay, capacity: int) -> tuple[Int[Array, " stretches"], Int[Array, " stretches"]]:
    """The first transition of each stretch and the one behind its last: about equally many, whole episodes each."""
    first = _episode_start(replay, jnp.maximum(replay.total - capacity, 0))
    cuts = first + jnp.arange(_STRETCHES) * (replay.total - first) // _STRETCHES
    begins = _episode_start(replay, cuts)
    return begins, jnp.append(begins[1:], replay.total)


def _episode_start(replay: Replay, numbers: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
    """The number of the first transition of the same episode."""
    return numbers - replay.times[numbers % len(replay.times)]


def _where(condition: Bool[Array, " rows"], yes: Array, no: Array) -> Array:
    """`jnp.where` row by row, whatever axes follow."""
    return jnp.where(condition.reshape(-1, *[1] * (no.ndim - 1)), yes, no)
