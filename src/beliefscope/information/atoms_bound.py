"""The atoms bound: what a classifier of the belief proves about I(h; b), where beliefs take few values.

An atom is a value of the belief that recurs. For any classifier p̂, I(h; b) ≥ H(b) − CE, with CE its cross entropy on
rows that it has not seen. Atoms seen fewer than five times in training form one class: with g the class of an atom,
I(h; b) ≥ I(h; g(b)) ≥ H(g) − CE. H is the entropy of the classes' frequencies over all rows. It is too low by about
(classes − 1) / 2N nats, so the result remains a lower bound.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.information.check import checked_pair
from beliefscope.information.decoders import Descent, Family, Fits, Split, reading, splits
from beliefscope.information.entropy import exact_entropy, row_labels
from beliefscope.information.interface import Estimate

LEAST_PAIRS = 500
_SEEN = 5  # an atom seen fewer times in training is one of the rare ones, which form one class
_SEEDS = 2
_CLASSES_AT_ONCE = 64  # rounded up, one compiled program fits many numbers of classes
_NEVER = -1e30  # the logarithm of the probability of a class that is none
_MANY_RARE = 0.1  # of the rows
# Codes that lie close together take many steps to tell apart.
_FAMILIES = (
    Family("linear", (), Descent(learning_rate=0.05, steps=1200)),
    Family("MLP", (128, 128), Descent(learning_rate=0.003, steps=1200)),
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class AtomsEstimate(Estimate):
    """The bound, and the data it is based on."""

    num_atoms: int  # distinct beliefs
    num_classes: int  # atoms that were common enough, and one more for the rare ones
    rare: float  # the share of rows whose atom was rare
    num_judged: int  # rows that the classifiers had not seen
    entropy: float  # H(g) by counting, bits
    entropy_bias: float  # about as many bits is that too low

    def __str__(self) -> str:
        atoms = f"{self.num_atoms} atoms, {self.num_judged} judged rows, H(b) = {self.entropy:.2f}"
        return f"{super().__str__()}; {atoms}"


@dataclasses.dataclass(frozen=True)
class AtomsBound:
    """A lower bound on I(x; y) where the rows of y recur; the better of a linear classifier and one with an MLP."""

    name = "atoms bound"

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> AtomsEstimate:
        """Of x [N, dx] and y [N, dy]."""
        pair = checked_pair(x, y, sets_allowed=False)
        number = len(pair.x)
        require(
            number >= LEAST_PAIRS,
            rule=f"the atoms bound needs at least {LEAST_PAIRS} pairs",
            received=number,
            advice="measure on more pairs, thousands where possible",
        )
        key_split, key_fit = jax.random.split(fast_key(key))
        atoms = row_labels(pair.y)
        parts = splits(key_split, number, _SEEDS)
        classes = _classes(atoms, parts.train)
        entropy, num_classes = exact_entropy(np.bincount(classes) / number), int(classes.max()) + 1
        judged = _judged(key_fit, jnp.asarray(reading(pair.x)), classes, parts) / np.log(2)
        missing, standard_error = _adjusted(judged, _surprise(classes)[parts.judge] - entropy)
        rare = float(np.mean(classes == 0))
        many = f"{rare:.0%} of the rows are rare atoms, counted as one: the bound may be far below the information"
        return AtomsEstimate(
            bits=max(0.0, entropy - missing),
            standard_error=standard_error,
            num_samples=number,
            num_particles=None,
            estimator=self.name,
            warnings=(many,) if rare > _MANY_RARE else (),
            num_atoms=int(atoms.max()) + 1,
            num_classes=num_classes,
            rare=rare,
            num_judged=judged.size,
            entropy=entropy,
            entropy_bias=(num_classes - 1) / (2 * number * np.log(2)),
        )


def _classes(atoms: Int[np.ndarray, " n"], trains: Int[np.ndarray, "splits train"]) -> Int[np.ndarray, " n"]:
    """The class of each row: 0 for the atoms that are rare in the training rows of a split, then the others."""
    counts = [np.bincount(atoms[train], minlength=int(atoms.max()) + 1) for train in trains]
    common = np.min(counts, axis=0) >= _SEEN
    return np.where(common, np.cumsum(common), 0)[atoms]


def _judged(
    key: PRNGKeyArray, x: Float[Array, "n x"], classes: Int[np.ndarray, " n"], parts: Split
) -> Float[np.ndarray, "splits judge"]:
    """The cross entropy of each judging row in nats, by the family that did better on the choosing rows."""
    number = int(classes.max()) + 1
    size = -(-number // _CLASSES_AT_ONCE) * _CLASSES_AT_ONCE
    counts = np.stack([np.bincount(classes[train], minlength=number) + 1 / number for train in parts.train])
    priors = np.log(counts / counts.sum(axis=1, keepdims=True))
    baselines = np.pad(priors, ((0, 0), (0, size - number)), constant_values=_NEVER)[:, None]
    given = (x, jnp.eye(size)[jnp.asarray(classes)], jnp.zeros(len(classes), jnp.int32))
    rest = (jnp.asarray(baselines, jnp.float32), Split(*map(jnp.asarray, parts)))
    found = Fits(key, *given, *rest, _FAMILIES).cross_entropies()
    return min(found.values(), key=lambda decoded: float(decoded.chosen.mean())).judged.astype(np.float64)


def _surprise(classes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """−log2 p of the class of each row, whose mean is H."""
    return -np.log2(np.maximum(np.bincount(classes), 1) / len(classes))[classes]


def _adjusted(
    judged: Float[np.ndarray, "splits judge"], excess: Float[np.ndarray, "splits judge"]
) -> tuple[float, float]:
    """The mean cross entropy and its standard error, which includes the choice of splits.

    A regression removes the effect of judging rows whose classes are more or less likely than usual.
    """
    slope = float(np.mean((judged - judged.mean()) * (excess - excess.mean())) / max(np.var(excess), 1e-12))
    freed = judged - slope * excess
    within, between = np.var(freed, ddof=1) / freed.size, np.var(freed.mean(axis=1), ddof=1) / len(freed)
    return float(freed.mean()), float(np.sqrt(max(within, between)))
