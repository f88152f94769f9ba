"""Entropy of discrete variables, in bits: of known probabilities, and of rows of which only samples are known.

`exact_entropy(probabilities)` is −Σ p log2 p. `discrete_entropy(rows)` counts the distinct rows of an array [N, d],
beliefs say, and returns the plug-in entropy of their frequencies with the correction of Miller and Madow,
(distinct − 1) / (2N) nats, which removes the bias of order 1/N. It is flagged where the distinct rows are more than
N / 10: then many were seen once, and neither the number nor its correction can be trusted.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from beliefscope.errors import require
from beliefscope.information.check import checked_rows

# Rows are equal when their entries agree in so many significant digits. A filter in single precision multiplies and
# adds numbers that are not negative, so that the same history on two paths (another batch, another machine) gives the
# same belief up to some 1e-6 of each entry, small entries included. Four digits lie well above that, and significant
# ones keep apart two beliefs that differ only in which unlikely state is less likely.
SIGNIFICANT_DIGITS = 4
# Below this, where single precision begins to underflow, the digits are noise and an entry counts as zero.
_NEGLIGIBLE = 1e-30


class DiscreteEntropy(NamedTuple):
    """H of rows that were sampled."""

    bits: float  # with the correction of Miller and Madow
    distinct: int
    flagged: bool  # distinct > N / 10: too few samples for so many values


def exact_entropy(probabilities: Any) -> float:
    """H = −Σ p log2 p of a distribution given in full."""
    p = np.asarray(probabilities, np.float64)
    require(
        p.ndim == 1 and bool(np.all(p >= 0)) and bool(abs(p.sum() - 1) < 1e-5),
        rule="probabilities are a list of non-negative numbers that sum to 1",
        received=f"{p.size} numbers in {p.ndim} dimensions of sum {p.sum():g}, the smallest {p.min(initial=np.inf):g}",
        advice="divide them by their sum",
    )
    p = p[p > 0] / p.sum()
    return float(max(0.0, -np.sum(p * np.log2(p))))


def discrete_entropy(rows: Any) -> DiscreteEntropy:
    """H of the distribution that the rows [N, d] were drawn from, if they take few values."""
    labels = row_labels(checked_rows("rows", rows))
    counts = np.bincount(labels)
    plug_in = exact_entropy(counts / counts.sum())
    correction = (len(counts) - 1) / (2 * len(labels) * math.log(2))
    return DiscreteEntropy(bits=plug_in + correction, distinct=len(counts), flagged=len(counts) > len(labels) / 10)


def row_labels(rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """The same integer, from 0 up, for rows that agree in `SIGNIFICANT_DIGITS` digits.

    Rounding alone would split a belief in two whenever one of its many entries lies on the edge of a rounding cell.
    So the rows are rounded twice, the second time after multiplication by π, which moves every edge, and rows that
    meet in either rounding are one.
    """
    same = _labels_of_equal_rows(rows)
    rows = rows[np.unique(same, return_index=True)[1]].astype(np.float64)  # few, where beliefs recur
    first, second = (_labels_of_equal_rows(_rounded(rows * factor)) for factor in (1.0, np.pi))
    num_first = int(first.max()) + 1
    num_nodes = num_first + int(second.max()) + 1
    meetings = coo_array((np.ones(len(rows)), (first, num_first + second)), shape=(num_nodes, num_nodes))
    return connected_components(meetings, directed=False)[1][first][same]


def _labels_of_equal_rows(rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """By hashing: sorting long rows that mostly agree, as one-hot beliefs do, is a hundred times slower."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])


def _rounded(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    rows = np.where(np.abs(rows) < _NEGLIGIBLE, 0.0, rows)
    unit = 10.0 ** (np.floor(np.log10(np.where(rows == 0, 1.0, np.abs(rows)))) - SIGNIFICANT_DIGITS + 1)
    return np.rint(rows / unit) * unit + 0.0  # no negative zeros: their bytes differ
