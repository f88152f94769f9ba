"""Turns each column into normal scores: the rank of a number among a reference's, as a quantile of N(0, 1).

Information does not change under invertible maps of single columns, and critics learn from columns of one shape and
scale more easily than from heavy tails. Equal numbers stay equal; a constant column becomes zeros. Ranks see every
difference, however small: two memories that differ in their last bit are as different as any two.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


def normal_scores(rows: Float[np.ndarray, "n d"], reference: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n d"]:
    """The rows [n, d], column by column, in terms of the reference's [m, d]; in single precision."""
    columns = [_scores(*pair) for pair in zip(rows.T, reference.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.float32)


def _scores(values: Float[np.ndarray, " n"], reference: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
    ordered = np.sort(reference)
    if ordered[0] == ordered[-1]:
        return np.zeros(len(values))
    # The middle of the ranks of equal numbers, away from 0 and 1 by half a rank.
    below, upto = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return ndtri(np.clip((below + upto) / (2 * len(ordered)), 0.5 / len(ordered), 1 - 0.5 / len(ordered)))
