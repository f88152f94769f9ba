"""What an agent's greedy policy earns: Ĵ, the mean return of some episodes."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.exploration import EpsilonGreedy
from beliefscope.agent.interface import RecurrentAgent
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.rollout import discounted_return


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
