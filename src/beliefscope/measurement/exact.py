"""What can be enumerated: in a deterministic T-Maze a greedy agent has as many histories as there are places of the
treasure, so that all its memories and beliefs, with their probabilities, can be written down.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from beliefscope.agent.exploration import EpsilonGreedy
from beliefscope.agent.interface import RecurrentAgent
from beliefscope.belief import Filter
from beliefscope.information import SmoothedInformation, smoothed_information
from beliefscope.pairs.walk import beliefs_at, memories_at
from beliefscope.pomdp import POMDP, TMaze, rollout

NOISES = (0.1, 0.01, 0.001)  # σ


class Atoms(NamedTuple):
    """Every (memory, belief) that is visited, with its probability p(t) p(history)."""

    memory: Float[np.ndarray, "atoms memory"]
    belief: Float[np.ndarray, "atoms belief"]
    weight: Float[np.ndarray, " atoms"]


def can_enumerate(pomdp: POMDP, epsilon: float) -> bool:
    return isinstance(pomdp, TMaze) and pomdp.stochasticity == 0 and epsilon == 0


def visited_atoms(agent: RecurrentAgent, pomdp: TMaze, filter: Filter) -> Atoms:
    """The atoms of the greedy policy: two histories of probability ½, a uniformly drawn step of each."""
    # 64 episodes show both places of the treasure but for a chance of 2^-63.
    played = rollout(
        jax.random.key(0), pomdp, EpsilonGreedy(agent, pomdp, jnp.asarray(0.0)), num_episodes=64
    ).trajectory
    lengths = np.asarray(played.lengths)
    _, first = np.unique(np.asarray(played.observations)[:, 0], return_index=True)
    episodes, times = np.nonzero(np.arange(lengths.max()) < lengths[first, None])
    episodes, times = first[episodes], jnp.asarray(times)
    seen, done = played.observations[episodes], played.actions[episodes]
    keys = jax.random.split(jax.random.key(0), len(times))  # the exact filter draws nothing
    return Atoms(
        memory=np.asarray(jax.vmap(agent.memory_vector)(memories_at(agent, pomdp, seen, done, times))),
        belief=np.asarray(jax.vmap(filter.features)(keys, beliefs_at(keys, filter, seen, done, times))),
        weight=1 / (len(first) * lengths[episodes]),
    )


def exact_information(key: PRNGKeyArray, atoms: Atoms) -> dict[float, SmoothedInformation]:
    """I(h + σξ; b) for each σ of `NOISES`."""
    return {noise: smoothed_information(key, atoms.memory, atoms.belief, atoms.weight, noise=noise) for noise in NOISES}
