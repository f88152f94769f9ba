"""The exact information between a finite set of memories, seen through noise, and their beliefs: I(h + σξ; b).

An atom is a memory h_i, its belief b_i and its probability p_i; ξ is standard normal. Without noise the information is
H(b) as soon as the memories differ in their last bit; σ says how finely they are read. The posterior of the belief
given h + σξ is a mixture that can be written down, so that only the mean over ξ is left to sampling: the same number of
draws around each atom, none over the choice of atoms.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from beliefscope.errors import is_real, is_whole, require
from beliefscope.information.check import checked_rows
from beliefscope.information.entropy import exact_entropy, row_labels
from beliefscope.information.seeding import generator


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
