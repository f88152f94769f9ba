"""Memory beside belief: pairs of the two, the information between them in trained runs, and its controls."""

from beliefscope.measurement.checkpoints import measure, measure_checkpoint
from beliefscope.measurement.greedy_episodes import Atoms, exact_information, trace, visited_atoms
from beliefscope.measurement.logged import pairs_from_trajectories
from beliefscope.measurement.other_frameworks import BatchedAgent, Played, play
from beliefscope.measurement.sample import Pairs, sample_pairs

__all__ = [
    "Atoms",
    "BatchedAgent",
    "Pairs",
    "Played",
    "exact_information",
    "measure",
    "measure_checkpoint",
    "pairs_from_trajectories",
    "play",
    "sample_pairs",
    "trace",
    "visited_atoms",
]
