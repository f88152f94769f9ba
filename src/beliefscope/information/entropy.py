"""Entropy and information of finite variables, in bits, exactly or by counting.

`exact_entropy(probabilities)` is −Σ p log2 p. `discrete_entropy(rows)` counts the distinct rows of an array [N, d],
such as beliefs, and returns the plug-in entropy of their frequencies with the correction of Miller and Madow,
(distinct − 1) / (2N) nats, which removes the bias of order 1/N. It is flagged where the distinct rows are more than
N / 10: then many were seen once, and neither the number nor its correction can be trusted.

`smoothed_information` is the exact information between a finite set of memories, seen through noise, and their beliefs:
I(h + σξ; b). An atom is a memory h_i, its belief b_i and its probability p_i; ξ is standard normal. Without noise the
information is H(b) as soon as the memories differ in their last bit; σ says how finely they are read. The posterior of
the belief given h + σξ is a mixture that can be written down, so that only the mean over ξ is left to sampling: the
same number of draws around each atom, none over the choice of atoms.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from beliefscope.errors import is_real, is_whole, require
from beliefscope.fast_keys import generator
from beliefscope.information.interface import checked_rows


class SmoothedInformation(NamedTuple):
    """I(h + σξ; b), between 0 and H(b)."""

    bits: float
    standard_error: float  # of the mean over ξ
    entropy: float  # H(b) in bits


def smoothed_information(
    key: PRNGKeyArray, memories: Any, labels: Any, weights: Any, *, noise: float, num_samples: int = 200
) -> SmoothedInformation:
    """From memories [K, m], beliefs as integers [K] or as rows [K, d], and probabilities [K].

    `noise` is σ and `num_samples` the number of draws around each atom. Arithmetic is in double precision: at σ = 0.001
    single precision would lose the difference of near memories.
    """
    require(
        is_real(noise) and 0 < noise < np.inf,
        rule="the noise is a positive number",
        received=noise,
        advice="pass 0.01, say, for memories between -1 and 1; without noise the information is H(b)",
    )
    require(
        is_whole(num_samples) and num_samples >= 2,
        rule="each atom needs at least 2 draws",
        received=num_samples,
        advice="200 is usual",
    )
    memories = checked_rows("memories", memories, at_least=1).astype(np.float64)
    labels, weights = _checked_labels(labels), np.asarray(weights, np.float64)
    require(
        len(memories) == len(labels) == weights.size,
        rule="memories, labels and weights have one entry for each atom",
        received=(len(memories), len(labels), weights.size),
        advice="pass arrays whose first axes agree",
    )
    exact_entropy(weights)  # says in one sentence if they are no probabilities
    possible = weights > 0
    memories, labels, weights = memories[possible], labels[possible], weights[possible] / weights.sum()

    means, variances = np.zeros(len(weights)), np.zeros(len(weights))
    draw = generator(key)
    # One atom at a time keeps memory at [draws, K].
    for atom, label in enumerate(labels):
        draws = draw.standard_normal((num_samples, memories.shape[1]))
        log_posterior = _log_posterior((memories - memories[atom]) / noise, draws, np.log(weights), labels == label)
        bits = (log_posterior - np.log(weights[labels == label].sum())) / np.log(2)
        means[atom], variances[atom] = bits.mean(), bits.var(ddof=1) / num_samples
    return SmoothedInformation(
        bits=float(weights @ means),
        standard_error=float(np.sqrt(weights**2 @ variances)),
        entropy=exact_entropy([weights[labels == label].sum() for label in np.unique(labels)]),
    )


def _log_posterior(
    offsets: Float[np.ndarray, "atoms m"],
    draws: Float[np.ndarray, "draws m"],
    log_weights: Float[np.ndarray, " atoms"],
    same: Bool[np.ndarray, " atoms"],
) -> Float[np.ndarray, " draws"]:
    """log p(the belief of this atom | its memory + σξ), the offsets of the atoms from it in units of σ."""
    # ‖ξ − offset‖² less ‖ξ‖², which is common to all atoms.
    log_joint = log_weights - (np.sum(offsets**2, axis=1) / 2 - draws @ offsets.T)
    # The atom itself is among `same`, and others exceed it by a normal number squared, halved: nothing underflows.
    joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return np.log(joint[:, same].sum(axis=1) / joint.sum(axis=1))


def _checked_labels(labels: Any) -> Int[np.ndarray, " atoms"]:
    array = np.asarray(labels)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array
    require(
        array.ndim == 2,
        rule="labels are one integer for each atom [K] or one row of numbers for each [K, d]",
        received=(array.shape, str(array.dtype)),
        advice="pass beliefs as rows",
    )
    return row_labels(checked_rows("labels", labels, at_least=1))


# Rows are equal when their entries agree in so many significant digits. A filter in single precision multiplies and
# adds numbers that are not negative, so that the same history on two paths (another batch, another machine) gives the
# same belief up to some 1e-6 of each entry, small entries included. Four digits lie well above that, and significant
# ones keep apart two beliefs that differ only in which unlikely state is less likely.
SIGNIFICANT_DIGITS = 4
# Below this, where single precision begins to underflow, the digits are noise and an entry counts as zero.
_NEGLIGIBLE = 1e-30
_NUMBERS_AT_ONCE = 250_000  # what is computed of so many stays in a processor's cache


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

    Rounding once would split a belief in two whenever one of its many entries is on the edge of a rounding cell. So the
    rows are rounded twice, the second time after multiplication by π, which moves every edge. Rows that agree in either
    rounding are one.
    """
    same = _labels_of_equal_rows(rows)
    rows = rows[np.unique(same, return_index=True)[1]]  # few, where beliefs recur
    first, second = (_labels_of_equal_rows(rows, factor) for factor in (1.0, np.pi))
    num_first = int(first.max()) + 1
    num_nodes = num_first + int(second.max()) + 1
    meetings = coo_array((np.ones(len(rows)), (first, num_first + second)), shape=(num_nodes, num_nodes))
    return connected_components(meetings, directed=False)[1][first][same]


def _labels_of_equal_rows(rows: Float[np.ndarray, "n d"], factor: float | None = None) -> Int[np.ndarray, " n"]:
    """Of the rows, or, with a factor, of what they are when multiplied and rounded; some at a time.

    By hashing: sorting long rows that mostly agree, as one-hot beliefs do, is a hundred times slower.
    """
    seen: dict[bytes, int] = {}
    labels = []
    for block in np.array_split(rows, -(-rows.size // _NUMBERS_AT_ONCE)):
        some = block if factor is None else _rounded(block.astype(np.float64) * factor)
        labels += [seen.setdefault(row.tobytes(), len(seen)) for row in some]
    return np.array(labels)


def _rounded(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    rows = np.where(np.abs(rows) < _NEGLIGIBLE, 0.0, rows)
    unit = 10.0 ** (np.floor(np.log10(np.where(rows == 0, 1.0, np.abs(rows)))) - SIGNIFICANT_DIGITS + 1)
    return np.rint(rows / unit) * unit + 0.0  # no negative zeros: their bytes differ
