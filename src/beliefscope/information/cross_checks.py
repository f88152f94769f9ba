"""Two numbers to compare with the best bound: KSG and the Gaussian formula. They are not bounds and never chosen."""

from contextlib import suppress

import jax
import numpy as np
from jaxtyping import Float

from beliefscope.information.columns import whitening
from beliefscope.information.gaussian import no_information
from beliefscope.information.ksg import KSG

_KSG_ROWS = 2000  # drawn from all: its cost grows faster than their number
_KSG_COLUMNS = 8  # of both sides together: with more it reads low, and its search is slow
_SURE = 1e-9  # what a correlation of so little less than 1 leaves is rounding


def cross_checks(x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> dict[str, float]:
    """In bits, by name. KSG is left out where rows repeat or columns are many, the formula where rows are too few."""
    found = {}
    if x.shape[1] + y.shape[1] <= _KSG_COLUMNS:
        some = np.random.default_rng(0).permutation(len(x))[:_KSG_ROWS]
        with suppress(ValueError):  # too many rows repeat
            found[f"KSG of {len(some)} pairs"] = KSG().estimate(jax.random.key(0), x[some], y[some]).bits
    if len(x) > 2 * (x.shape[1] + y.shape[1]):
        found["Gaussian formula"] = _gaussian_formula(x, y)
    return found


def _gaussian_formula(x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
    """As `Gaussian`, of the directions in which there is variance: beliefs that sum to 1 have one less than columns."""
    (mean_x, white_x), (mean_y, white_y) = whitening(x), whitening(y)
    cross = white_x.T @ (x.T @ y / len(x) - np.outer(mean_x, mean_y)) @ white_y
    left = 1 - np.linalg.svd(cross, compute_uv=False) ** 2
    if left.min() < _SURE:
        return float("inf")
    by_chance = no_information(len(x) - 1, white_x.shape[1], white_y.shape[1]).mean
    return float((-0.5 * np.sum(np.log(left)) - by_chance) / np.log(2))
