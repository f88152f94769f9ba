"""The replay buffer B: the last N transitions in a flat ring, and the target network's value of each.

Transitions are numbered as they come; number k lies in slot k mod (N + H). The H slots beyond N keep the beginnings of
episodes whose first transitions have already left the buffer, so that every stored transition finds its whole history
behind it: the t + 1 inputs x_0 … x_t stand in the slots up to its own, and x_{t+1} beside it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from beliefscope.agent.network import QNetwork

_ROWS = 64  # how many stretches of the ring are walked side by side when values are computed anew


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
    """One episode, ready to be stored; what lies behind its length counts for nothing."""

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


def refresh_values(replay: Replay, target: QNetwork, *, capacity: int) -> Replay:
    """The ring with max_a Q_θ'(η_{0:t+1}, a) computed anew for every stored transition.

    The stored numbers are cut into stretches of whole episodes, which are walked side by side.
    """
    slots = len(replay.times)
    first = _episode_start(replay, jnp.maximum(replay.total - capacity, 0))
    cuts = first + jnp.arange(_ROWS) * (replay.total - first) // _ROWS
    begins = _episode_start(replay, cuts)
    ends = jnp.append(begins[1:], replay.total)
    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (_ROWS, *leaf.shape)), target.init_memory())

    def walk(carry):
        number, opening, memory, values = carry
        slot = number % slots
        inputs = jnp.where(opening[:, None], replay.inputs[slot], replay.next_inputs[slot])
        memory = jax.tree.map(
            lambda start, old: jnp.where(opening.reshape(-1, *[1] * (old.ndim - 1)), start, old), empty, memory
        )
        memory, q = jax.vmap(target.step_input)(memory, inputs)
        known = ~opening & (number < ends)
        values = values.at[jnp.where(known, slot, slots)].set(jnp.max(q, axis=-1), mode="drop")
        number = number + ~opening
        return number, ~opening & (replay.times[number % slots] == 0), memory, values

    start = (begins, jnp.ones(_ROWS, bool), empty, replay.next_values)
    *_, values = lax.while_loop(lambda carry: jnp.any(carry[0] < ends), walk, start)
    return replay._replace(next_values=values)


def _episode_start(replay: Replay, numbers: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
    """The number of the first transition of the same episode."""
    return numbers - replay.times[numbers % len(replay.times)]
