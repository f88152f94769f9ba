"""How an agent acts, and what its greedy policy earns: Ĵ, the mean return of some episodes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.interface import RecurrentAgent
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import Observation
from beliefscope.pomdp.rollout import discounted_return


class EpsilonGreedy(NamedTuple):
    """A policy for `rollout`: the best action, or with probability ε = `rate` one of the exploration policy.

    With ε = 0 it is the greedy policy.
    """

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


class Evaluation(NamedTuple):
    """Means over the episodes."""

    discounted_return: Float[Array, ""]  # Ĵ
    undiscounted_return: Float[Array, ""]
    length: Float[Array, ""]  # actions taken
    terminated: Float[Array, ""]  # fraction of episodes that ended in a terminal state


def evaluate(key: PRNGKeyArray, pomdp: POMDP, agent: RecurrentAgent, *, num_episodes: int) -> Evaluation:
    """Play greedily."""
    played = rollout(key, pomdp, EpsilonGreedy(agent, pomdp, 0.0), num_episodes=num_episodes).trajectory
    return Evaluation(
        discounted_return=jnp.mean(discounted_return(played.rewards, pomdp.discount)),
        undiscounted_return=jnp.mean(jnp.sum(played.rewards, axis=1)),
        length=jnp.mean(played.lengths.astype(float)),
        terminated=jnp.mean(played.terminated.astype(float)),
    )
