"""Pairs of memory and belief: sampled from an agent, or taken from logged trajectories."""

from beliefscope.pairs.interface import Pairs
from beliefscope.pairs.logged import pairs_from_trajectories
from beliefscope.pairs.sample import sample_pairs

__all__ = ["Pairs", "pairs_from_trajectories", "sample_pairs"]
