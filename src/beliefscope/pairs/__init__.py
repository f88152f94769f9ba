"""Pairs of memory and belief: sampled from an agent, or taken from logged trajectories."""

from beliefscope.pairs.interface import Pairs
from beliefscope.pairs.logged import pairs_from_trajectories
from beliefscope.pairs.play import BatchedAgent, Played, play
from beliefscope.pairs.sample import sample_pairs

__all__ = ["BatchedAgent", "Pairs", "Played", "pairs_from_trajectories", "play", "sample_pairs"]
