"""Agents written by hand for T-Mazes of small L, whose circuits are known, and a T-Maze that also shows a coin."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from beliefscope.pomdp import TMaze
from beliefscope.pomdp.t_maze import DOWN, RIGHT, UP

SPARE = 10  # numbers that an agent carries and does not use
SEES_COIN = 4


class CoinMaze(TMaze):
    """A T-Maze whose first observation also shows a coin that nothing depends on; so the belief is a T-Maze's.

    Observations 4 and 5 are 0 and 1, the treasure up or down, with the coin at 1.
    """

    observation_size = 6

    def sample_observation(self, key, state, action=None):
        seen = super().sample_observation(key, state, action)
        return jnp.where(jax.random.bernoulli(key) & (seen < 2), seen + SEES_COIN, seen)

    def likelihood(self, observation, action=None):
        seen = jnp.asarray(observation)
        return super().likelihood(jnp.where(seen >= SEES_COIN, seen - SEES_COIN, seen), action)

    def encode_observation(self, observation):
        return jax.nn.one_hot(observation, self.observation_size)


def coin_maze(length: int) -> CoinMaze:
    return CoinMaze(length)  # pyright: ignore[reportCallIssue]: it has the __init__ of a T-Maze


class Kept(NamedTuple):
    """+1: the treasure is up, −1: down; the coin likewise."""

    side: jax.Array
    copy: jax.Array
    coin: jax.Array
    clock: jax.Array
    spare: jax.Array


class HandBuilt(eqx.Module):
    """Keeps the side, a copy of it, the coin and the time; goes right, and turns by what its weights say."""

    of_side: float = 0.0
    of_copy: float = 0.0
    of_coin: float = 0.0
    keeps_side: float = 1.0

    def init_memory(self):
        return Kept(jnp.zeros(1), jnp.zeros(1), jnp.zeros(1), jnp.zeros(1), jnp.zeros(SPARE))

    def step(self, memory, previous_action, observation):
        first = observation[:2].sum() + observation[4:].sum() > 0  # o_0 shows the side
        side = observation[0] - observation[1] + observation[4:5].sum() - observation[5:].sum()
        coin = 2 * observation[4:].sum() - 1
        kept = Kept(
            side=jnp.where(first, self.keeps_side * side, memory.side),
            copy=jnp.where(first, self.of_copy * side, memory.copy),
            coin=jnp.where(first & (self.of_coin != 0), coin, memory.coin),
            clock=memory.clock + 1,
            spare=memory.spare,
        )
        turn = self.of_side * kept.side + self.of_copy * kept.copy + self.of_coin * kept.coin
        junction = observation[3]
        values = jnp.zeros(4).at[RIGHT].set(1 - junction)
        return kept, values.at[UP].set(junction * (0.5 + turn[0])).at[DOWN].set(junction * (0.5 - turn[0]))

    def memory_vector(self, memory):
        return jnp.concatenate(jax.tree.leaves(memory))
