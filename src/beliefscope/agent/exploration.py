"""The ε-greedy policy of a recurrent agent: the best action, or with probability ε the exploration policy's."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.interface import RecurrentAgent
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import Observation


class EpsilonGreedy(NamedTuple):
    """A policy for `rollout`; `rate` is ε, and 0 is the greedy policy."""

    agent: RecurrentAgent
    pomdp: POMDP
    rate: float | Float[Array, ""]

    def init_memory(self) -> PyTree:
        return self.agent.init_memory()

    def act(
        self, key: PRNGKeyArray, memory: PyTree, previous_action: Int[Array, ""], observation: Observation
    ) -> tuple[PyTree, Int[Array, ""]]:
        key_coin, key_explore = jax.random.split(key)
        memory, values = self.agent.step(memory, previous_action, self.pomdp.encode_observation(observation))
        explore = jax.random.uniform(key_coin) < self.rate
        return memory, jnp.where(explore, self.pomdp.sample_exploration(key_explore), jnp.argmax(values))
