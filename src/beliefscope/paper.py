"""What the paper prints and defines, without JAX: correlations (tables 4 and 5), hyperparameters, the mountain.

It has two variants: the text as printed, and the code that its authors published.

The mountain of the Mountain Hike, its altitude and moves, is for the POMDP and for drawings of it; `xp` is NumPy or
JAX's NumPy, whose functions it uses.
"""

from math import log, pi
from typing import Any, Literal, get_args

import numpy as np

from beliefscope.errors import require

Variant = Literal["text", "code"]  # the paper as printed, or as the authors' public code has it
AGGREGATED = "all cells"
MAZE, LONG, STOCHASTIC = "T-Maze, L = 50", "T-Maze, L = 100", "Stochastic T-Maze, L = 50, λ = 0.3"
HIKE, VARYING = "Mountain Hike", "Varying Mountain Hike"
ENVIRONMENTS = (MAZE, LONG, STOCHASTIC, HIKE, VARYING)
CELLS = ("LSTM", "GRU", "BRC", "NBRC", "MGU")
CELL_NAMES = {"NBRC": "nBRC"}  # as the paper writes them, where that differs


def called(cell: str) -> str:
    """A cell's name, for people."""
    return CELL_NAMES.get(cell, cell)


_COLUMNS = (AGGREGATED, *CELLS)


def _by_environment(*rows: tuple[float, ...]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(_COLUMNS, row, strict=True)) for name, row in zip(ENVIRONMENTS, rows, strict=True)}


PEARSON = _by_environment(
    (0.8233, 0.7329, 0.8500, 0.8747, 0.9314, 0.9178),
    (0.5347, 0.3624, 0.6162, 0.6855, 0.6504, 0.6299),
    (0.5460, 0.2882, 0.8008, 0.7229, 0.7424, 0.6159),
    (0.5948, 0.7352, 0.6177, 0.4338, 0.5857, 0.5485),
    (0.5982, 0.6712, 0.4530, 0.4446, 0.3669, 0.3006),
)
SPEARMAN = _by_environment(
    (0.6419, 0.7815, 0.5963, 0.5403, 0.4009, 0.5002),
    (0.6666, 0.5969, 0.7108, 0.5058, 0.4605, 0.5534),
    (0.6403, 0.3730, 0.6600, 0.5090, 0.4706, 0.6497),
    (0.2965, 0.5933, 0.1443, 0.2762, 0.4337, 0.2630),
    (0.6176, 0.6869, 0.3677, 0.4355, 0.2955, 0.2266),
)
# The tables of appendix E, and what the text says besides: the paper's symbol, its value, what it is.
_Rows = dict[str, tuple[str, float, str]]
DRQN: _Rows = {  # by name in a run's learner
    "num_layers": ("S", 2, "recurrent layers"),
    "hidden_size": ("H", 32, "size of the hidden state"),
    "buffer_capacity": ("N", 8192, "capacity of the replay buffer"),
    "target_period": ("C", 10, "episodes between target updates"),
    "gradient_steps": ("I", 10, "gradient steps after each episode"),
    "exploration_rate": ("ε", 0.2, "exploration rate"),
    "batch_size": ("B", 32, "batch size"),
    "learning_rate": ("α", 0.001, "Adam's learning rate"),
    "num_episodes": ("", 5000, "episodes of training"),
    "evaluation_period": ("", 10, "episodes between evaluations"),
    "evaluation_episodes": ("", 50, "greedy episodes of an evaluation"),
    "checkpoint_period": ("", 100, "episodes between checkpoints"),
}
MINE_EPOCHS = {"mine": 200, "mine-authors": 100}  # as the paper and as its authors' code have it
MINE: _Rows = {  # by name in an instrument; the critic itself is not a study's to choose
    "N": ("2N", 20_000, "pairs: N = 10,000 to train on, and as many fresh ones"),
    "epochs": ("E", MINE_EPOCHS["mine"], "epochs"),
}
HIKE_NOISE: _Rows = {  # by name in a Mountain Hike
    "observation_std": ("σ_O", 0.1, "standard deviation of the observation"),
    "transition_std": ("σ_T", 0.05, "standard deviation of a step"),
}


START = (-0.8, -0.8)
TOP = (0.8, 0.8)
MOVES = np.array([[0.0, 0.1], [-0.1, 0.0], [0.0, -0.1], [0.1, 0.0]])  # Forward, Left, Backward, Right


def altitude(x: Any, y: Any, xp: Any = np) -> Any:
    """h(x, y) = −exp(−max(p1, p2, p3)) + 0.2·x + 0.2·y − 0.02, with three Gaussian densities for the crests.

    p1 is the density of N((0, 0), diag(0.005, 1)), p2 of N((0, −0.8), diag(1, 0.01)), p3 of N((0, 0.8), diag(1, 0.01)).
    x, y and the result are arrays of one shape.
    """
    middle = -(x**2) / 0.01 - y**2 / 2 - 0.5 * log(0.005)
    lower_or_upper = xp.maximum(-((y + 0.8) ** 2), -((y - 0.8) ** 2)) / 0.02 - x**2 / 2 - 0.5 * log(0.01)
    crest = xp.exp(xp.maximum(middle, lower_or_upper)) / (2 * pi)
    return -xp.exp(-crest) + 0.2 * x + 0.2 * y - 0.02


def turned_move(orientation: Any, action: Any, xp: Any = np) -> tuple[Any, Any]:
    """R(c)·a for the orientation c, as the step along x and the step along y."""
    cosine = xp.where(orientation == 0, 1.0, xp.where(orientation == 2, -1.0, 0.0))
    sine = xp.where(orientation == 1, 1.0, xp.where(orientation == 3, -1.0, 0.0))
    right, forward = xp.asarray(MOVES)[action]
    return cosine * right - sine * forward, sine * right + cosine * forward


def check_variant(variant: str) -> None:
    """Refuse anything but the two variants."""
    require(
        variant in get_args(Variant),
        rule="a variant of the paper is 'text' or 'code'",
        received=variant,
        advice="choose 'text' for the paper as printed",
    )
