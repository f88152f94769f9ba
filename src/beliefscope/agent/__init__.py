"""Recurrent Q-learning: cells, the network, DRQN, and training that stores what it does."""

from beliefscope.agent.cells import BRC, GRU, LSTM, MGU, NBRC, Cell
from beliefscope.agent.network import EpsilonGreedy, Evaluation, QNetwork, RecurrentAgent, evaluate
from beliefscope.agent.run_folder import RunFolder
from beliefscope.agent.train import train
from beliefscope.agent.training_spec import DRQN, TrainingSpec

__all__ = [
    "BRC",
    "DRQN",
    "GRU",
    "LSTM",
    "MGU",
    "NBRC",
    "Cell",
    "EpsilonGreedy",
    "Evaluation",
    "QNetwork",
    "RecurrentAgent",
    "RunFolder",
    "TrainingSpec",
    "evaluate",
    "train",
]
