"""The mountain of the Mountain Hike, for the POMDP and for drawings of it: altitude and moves.

The functions are written for arrays of NumPy and of JAX; `xp` is the module whose functions they use.
"""

from math import log, pi
from typing import Any

import numpy as np

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
