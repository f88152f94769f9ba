"""What can be enumerated: in a deterministic T-Maze a greedy agent has as many histories as there are places of the
treasure, so that all its memories and beliefs, with their probabilities, can be written down.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from beliefscope.agent.interface import RecurrentAgent
from beliefscope.belief import Filter, run_filter
from beliefscope.information import SmoothedInformation, smoothed_information
from beliefscope.measurement.episodes import encoded, features_along, replayed, two_episodes
from beliefscope.pomdp import POMDP, TMaze

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
    key = jax.random.key(0)  # but for the 64 episodes of which two are kept, nothing is drawn
    played = two_episodes(key, agent, pomdp)
    memory, _ = replayed(agent, encoded(pomdp, played.observations)[:, :-1], played.actions)
    belief = features_along(key, filter, run_filter(key, filter, played))[:, :-1]
    lengths = np.asarray(played.lengths)
    acted = np.arange(memory.shape[1]) < lengths[:, None]
    weight = np.broadcast_to(1 / (2 * lengths[:, None]), acted.shape)
    return Atoms(np.asarray(memory)[acted], np.asarray(belief)[acted], weight[acted])


def exact_information(key: PRNGKeyArray, atoms: Atoms) -> dict[float, SmoothedInformation]:
    """I(h + σξ; b) for each σ of `NOISES`."""
    return {noise: smoothed_information(key, atoms.memory, atoms.belief, atoms.weight, noise=noise) for noise in NOISES}
