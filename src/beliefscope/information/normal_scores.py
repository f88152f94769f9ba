"""Turns each column into normal scores: the rank of a number among a reference's, as a quantile of N(0, 1).

Information does not change under invertible maps of single columns, and critics learn from columns of one shape and
scale more easily than from heavy tails. Equal numbers stay equal; a constant column becomes zeros. Ranks see every
difference, however small: two memories that differ in their last bit are as different as any two.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

FAINTEST = 1e-6  # of the largest variance: directions below it are rounding
_TURNS = 100  # of the search for independent directions
_STILL = 1e-4  # a turn that moves no direction by more is the last


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


def ranks_and_length(columns: Float[np.ndarray, "n k"], rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n more"]:
    """Normal scores of the columns and of the rows' length, which alone may be what two heavy tails share."""
    longer = np.column_stack([columns, np.linalg.norm(rows, axis=1)])
    return normal_scores(longer, longer)


def standardised(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Mean 0 and deviation 1, in double precision first: single precision may not tell a column's numbers apart."""
    columns = rows.astype(np.float64)
    columns -= columns.mean(axis=0)
    deviation = columns.std(axis=0)
    return (columns / np.where((deviation > 0) & (np.ptp(rows, axis=0) > 0), deviation, np.inf)).astype(np.float32)


def independent_directions(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
    """The rows in directions that are as far from Gaussian as can be (FastICA, all directions at once, tanh).

    Where columns are mixtures of independent numbers, these directions are those numbers, whose ranks can be used.
    """
    mean, white = whitening(rows)
    z = (rows - mean) @ white
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(z.shape[1],) * 2))[0]
    for _ in range(_TURNS):
        bent = np.tanh(z @ turn)
        left, _, right = np.linalg.svd(z.T @ bent / len(z) - turn * np.mean(1 - bent**2, axis=0), full_matrices=False)
        last, turn = turn, left @ right
        if np.min(np.abs(np.sum(turn * last, axis=0))) > 1 - _STILL:
            break
    return z @ turn


def whitening(rows: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d k"]]:
    """The mean, and the map after which what is left has covariance 1."""
    mean = rows.mean(axis=0)
    variances, directions = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    there = variances > FAINTEST * max(variances[-1], 1e-30)
    return mean, directions[:, there] / np.sqrt(variances[there])
