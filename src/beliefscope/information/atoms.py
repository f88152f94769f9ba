"""Classifiers of atoms: what they prove about I(h; b) where beliefs take few values, and the best bound's candidates.

An atom is a value of the belief that recurs. For any classifier p̂, I(h; b) ≥ H(b) − CE, with CE its cross entropy on
rows that it has not seen: the atoms bound. Atoms seen fewer than five times in training form one class: with g the
class of an atom, I(h; b) ≥ I(h; g(b)) ≥ H(g) − CE. H is the entropy of the classes' frequencies over all rows. It is
too low by about (classes − 1) / 2N nats, so the result remains a lower bound.

The best bound's candidates predict the atom of one side from the other: log p(atom | x) / p(atom), by an MLP and by a
Gaussian for each atom.
"""

import dataclasses
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.sparse import csr_array
from scipy.special import log_softmax

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.information.columns import FAINTEST
from beliefscope.information.decoders import Descent, Family, Fits, Split, descend, reading, silent, splits
from beliefscope.information.entropy import exact_entropy, row_labels
from beliefscope.information.interface import Estimate, checked_pair, in_threads
from beliefscope.information.judging import KEPT, LIMIT, Answers, Table, Where, Wheres, limited, stacked
from beliefscope.information.networks import NEVER, on_each

LEAST_PAIRS = 500
_COMMON = 5  # an atom seen fewer times in training is one of the rare ones, which form one class
_SEEDS = 2
_CLASSES_AT_ONCE = 64  # rounded up, one compiled program fits many numbers of classes
_MANY_RARE = 0.1  # of the rows
_TEMPERATURES, _COARSELY = (0.4, 0.6, 0.8, 1.0), (0.6, 1.0)
_MOST_POOLED = 1000  # classes
_DIAGONAL = (0.0, 0.7)  # how far the covariance is drawn to its diagonal
_POOLED = (3.0, 12.0, 30.0)  # nats of difference between two atoms that are still pooled by a third
_SEEN = 3  # an atom seen fewer times in training is no class of the MLP's
# Codes that lie close together take many steps to tell apart.
_LINEAR = Family("linear", (), Descent(learning_rate=0.05, steps=1200))
MLP = Family("MLP", (128, 128), Descent(learning_rate=0.003, steps=1200))


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
        missing, standard_error = _adjusted(judged, _surprise(classes)[parts.judge] - entropy, number)
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
    common = np.min(counts, axis=0) >= _COMMON
    return np.where(common, np.cumsum(common), 0)[atoms]


def _judged(
    key: PRNGKeyArray, x: Float[Array, "n x"], classes: Int[np.ndarray, " n"], parts: Split
) -> Float[np.ndarray, "splits judge"]:
    """The cross entropy of each judging row in nats, by the family that did better on the choosing rows."""
    number = int(classes.max()) + 1
    size = -(-number // _CLASSES_AT_ONCE) * _CLASSES_AT_ONCE
    counts = np.stack([np.bincount(classes[train], minlength=number) + 1 / number for train in parts.train])
    priors = np.log(counts / counts.sum(axis=1, keepdims=True))
    baselines = np.pad(priors, ((0, 0), (0, size - number)), constant_values=NEVER)[:, None]
    given = (x, jnp.eye(size)[jnp.asarray(classes)], jnp.zeros(len(classes), jnp.int32))
    rest = (jnp.asarray(baselines, jnp.float32), Split(*map(jnp.asarray, parts)))
    found = Fits(key, *given, *rest, (_LINEAR, MLP)).cross_entropies()
    return min(found.values(), key=lambda decoded: float(decoded.chosen.mean())).judged.astype(np.float64)


def _surprise(classes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """−log2 p of the class of each row, whose mean is H."""
    return -np.log2(np.maximum(np.bincount(classes), 1) / len(classes))[classes]


def _adjusted(
    judged: Float[np.ndarray, "splits judge"], excess: Float[np.ndarray, "splits judge"], number: int
) -> tuple[float, float]:
    """The mean cross entropy, and the standard error of H minus it, which includes the choice of splits.

    A regression removes the effect of judging rows whose classes are more or less likely than usual. Where classes are
    more likely among all rows than in truth, H and the mean cross entropy err together, by 1 : slope.
    """
    slope = float(np.mean((judged - judged.mean()) * (excess - excess.mean())) / max(np.var(excess), 1e-12))
    freed = judged - slope * excess
    within, between = np.var(freed, ddof=1) / freed.size, np.var(freed.mean(axis=1), ddof=1) / len(freed)
    counted = (1 - slope) ** 2 * np.var(excess) / number
    return float(freed.mean()), float(np.sqrt(max(within, between) + counted))


class Classes(NamedTuple):
    """The atoms of one side as classes; class 0 has the atoms that are too rare for their own class."""

    of_row: Int[np.ndarray, " n"]
    log_prior: Float[np.ndarray, " classes"]

    @property
    def number(self) -> int:
        return len(self.log_prior)

    def answers(self, logits: Float[np.ndarray, "n classes"], where: Where, size: int, *, turned: bool) -> Answers:
        """log p(class | x) / p(class), of logits for the rows that are read, with columns of zeros up to `size`."""
        ratio = log_softmax(logits, axis=1) - self.log_prior
        rows = (LIMIT * np.tanh(np.maximum(ratio, -60) / LIMIT)).astype(np.float32)
        padded = np.pad(rows, ((0, 0), (0, size - self.number)))
        return Answers(jnp.asarray(padded), jnp.asarray(self.of_row[where.x if turned else where.y]), turned)


def classes_of(atoms: Int[np.ndarray, " n"], train: Int[np.ndarray, " train"], *, seen: int) -> Classes:
    """Those of atoms seen so often in training; unseen ones are expected as often as there are single ones."""
    counts = np.bincount(atoms[train], minlength=int(atoms.max()) + 1)
    own = counts >= seen
    of_row = np.where(own, np.cumsum(own), 0)[atoms]
    known = np.bincount(of_row[train], minlength=int(own.sum()) + 1).astype(np.float64)
    known[0] += max(0.5, float(np.sum(counts == 1)) if seen == 1 else 0.5)
    return Classes(of_row, np.log(known / known.sum()))


def recurs(atoms: Int[np.ndarray, " n"], parts: Split) -> bool:
    """Do most rows have an atom that classifiers can learn, and are there two of them?"""
    few = [classes_of(atoms, np.unique(train), seen=_SEEN) for train in np.asarray(parts.train)]
    return all(np.mean(each.of_row == 0) <= 0.5 and each.number > 2 for each in few)


def _size(classes: list[Classes]) -> int:
    return -(-max(each.number for each in classes) // _CLASSES_AT_ONCE) * _CLASSES_AT_ONCE


def mlp_tables(
    key: PRNGKeyArray,
    x: Float[np.ndarray, "n d"],
    atoms: Int[np.ndarray, " n"],
    parts: Split,
    wheres: Wheres,
    family: Family,
    *,
    turned: bool,
) -> tuple[Answers, Answers]:
    """What MLPs answer on the choosing rows and on the judging ones, all splits together."""
    classes = [classes_of(atoms, np.unique(train), seen=_SEEN) for train in np.asarray(parts.train)]
    size = _size(classes)
    priors = [np.pad(each.log_prior, (0, size - each.number), constant_values=NEVER) for each in classes]
    of_rows = jnp.asarray(np.stack([each.of_row for each in classes]))
    read = [jnp.asarray(where.y if turned else where.x) for where in wheres]
    named = [jnp.asarray(where.x if turned else where.y) for where in wheres]
    with jax.default_matmul_precision("float32"):
        train, choose = map(jnp.asarray, parts[:2])
        keys = jax.random.split(key, len(classes))
        prior = jnp.asarray(np.stack(priors), jnp.float32)
        found = _mlp(keys, jnp.asarray(x), of_rows, prior, train, choose, read, family)
    answers = (
        Answers(rows, jnp.take_along_axis(of_rows, some, axis=1), turned)
        for rows, some in zip(found, named, strict=True)
    )
    return next(answers), next(answers)


@partial(jax.jit, static_argnames="family")
def _mlp(keys, x, of_rows, priors, train, choose, read, family: Family) -> list[Float[Array, "splits n classes"]]:
    def one(key, of_row, prior, train, choose, read):
        def loss(decoder, rows) -> Float[Array, " n"]:
            return optax.softmax_cross_entropy_with_integer_labels(decoder(rows[0]) + prior, rows[1])

        key_start, key_fit = jax.random.split(key)
        start = silent(key_start, x.shape[1], family, len(prior))
        trained, chosen = ((x[rows], of_row[rows]) for rows in (train, choose))
        decoder, _ = descend(key_fit, start, loss, trained, chosen, family.descent)
        ratios = [jax.nn.log_softmax(decoder(x[rows]) + prior) - prior for rows in read]
        return [limited(jnp.maximum(ratio, -60), LIMIT) for ratio in ratios]

    return on_each(one, keys, of_rows, priors, train, choose, read)


def class_tables(
    x: Float[np.ndarray, "n d"],
    atoms: Int[np.ndarray, " n"],
    parts: Split,
    wheres: Wheres,
    *,
    turned: bool,
) -> tuple[Table, Table]:
    """What Gaussians for each atom answer; those for the judging rows are fitted on the choosing rows too."""
    x = np.asarray(x, np.float64)
    fits = [(np.unique(train), np.asarray(choose)) for train, choose in zip(*parts[:2], strict=True)]
    both = [classes_of(atoms, np.concatenate(rows), seen=1) for rows in fits]
    size = _size(both)

    def tables(place: int) -> list[Answers]:
        train, choose = fits[place]
        chosen = chosen_classes(x, classes_of(atoms, train, seen=1), train, choose)
        refitted = GaussianClasses(x, both[place], np.concatenate(fits[place]), chosen.settings)
        return [
            each.classes.answers(each.logits(x[one.y if turned else one.x]), one, size, turned=turned)
            for each, one in zip((chosen, refitted), wheres.of(place), strict=True)
        ]

    choosing, judging = zip(*in_threads(tables, range(len(fits))), strict=True)
    return stacked(list(choosing)), stacked(list(judging))


class ClassSettings(NamedTuple):
    """What the choosing rows choose."""

    diagonal: float = 0.0  # how far the covariance is drawn to its diagonal
    kept: int | None = None  # directions that count; all
    temperature: float = 1.0  # how sure the answers are
    pooled: float = 0.0  # nats of difference at which two atoms are pooled by a third; 0: none is


class GaussianClasses:
    """A Gaussian for each atom: one covariance, and means that are drawn from a Gaussian around the overall mean.

    In directions that make the covariance 1, the variance b of the means is the scatter of the class means beyond
    chance. The mean of a class seen n times is shrunk to n b / (n b + 1) of its distance from the overall mean, with
    the variance b / (n b + 1). So atoms seen once, or never, are classified too, and directions without differences do
    not count.

    Where classes come in groups, or in a row, other classes that may have the same mean contribute to it: means of n
    and m rows whose squared distance is Δ (1/n + 1/m) count with e^(−½ (Δ − directions) / pooled), at most 1.
    """

    def __init__(
        self,
        x: Float[np.ndarray, "n d"],
        classes: Classes,
        train: Int[np.ndarray, " train"],
        settings: ClassSettings = ClassSettings(),  # noqa: B008
    ):
        rows, of_row = x[train], classes.of_row[train]
        self.classes, self._counts = classes, np.bincount(of_row, minlength=classes.number).astype(np.float64)
        total, there = len(rows), int(np.sum(self._counts > 0))
        member = csr_array((np.ones(total), of_row, np.arange(total + 1)), shape=(total, classes.number))
        means = (member.T @ rows) / np.maximum(self._counts, 1)[:, None]
        inside = rows - means[of_row]
        white = _whitened(inside.T @ inside / max(total - there, 1), settings.diagonal)
        means = means @ white
        overall = self._counts @ means / total
        apart = means - overall
        between, turn = np.linalg.eigh((apart * self._counts[:, None]).T @ apart / total)
        turn = turn[:, ::-1]
        self._to_z, self._overall, self._apart = white @ turn, overall @ turn, apart @ turn
        several = max(total - float(np.sum(self._counts**2)) / total, 1.0)
        self._between = np.maximum(between[::-1] - (there - 1) / total, 0) * total / several
        self.settings = settings

    def __len__(self) -> int:
        """How many directions there are."""
        return len(self._between)

    def logits(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        return self.settings.temperature * self.likelihoods(x) + self.classes.log_prior

    def likelihoods(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        """The logarithms, up to a number for each row."""
        kept = slice(self.settings.kept)
        between, (apart, counts) = self._between[kept], self._pooled(self._apart[:, kept])
        means = self._overall[kept] + counts * between / (counts * between + 1) * apart
        precision = 1 / (1 + between / (counts * between + 1))
        z = x @ self._to_z[:, kept]
        constant = np.sum(means**2 * precision - np.log(precision), axis=1)
        return -0.5 * (z**2 @ precision.T - 2 * z @ (means * precision).T + constant)

    def _pooled(self, apart: Float[np.ndarray, "classes k"]) -> tuple[np.ndarray, Float[np.ndarray, "classes 1"]]:
        """Each class's mean with those of others, and how many rows it rests on."""
        counts, scale = self._counts, self.settings.pooled
        if scale == 0:
            return apart, counts[:, None]
        squares = np.sum(apart**2, axis=1)
        noise = 1 / np.maximum(counts, 1)
        distance = (squares[:, None] - 2 * apart @ apart.T + squares) / (noise[:, None] + noise)
        share = np.exp(-0.5 * np.maximum(distance - apart.shape[1], 0) / scale)
        np.fill_diagonal(share, 1)
        rows = share * counts
        number = np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
        known = number**2 / np.maximum((share**2 * counts).sum(axis=1, keepdims=True), 1e-9)
        seen = counts[:, None] > 0
        return np.where(seen, rows @ apart / number, 0), np.where(seen, known, 0)


def _whitened(covariance: Float[np.ndarray, "d d"], diagonal: float) -> Float[np.ndarray, "d d"]:
    drawn = (1 - diagonal) * covariance + diagonal * np.diag(np.diag(covariance))
    variances, directions = np.linalg.eigh(drawn)
    return directions / np.sqrt(np.maximum(variances, max(1e-8, FAINTEST * variances[-1])))


def chosen_classes(
    x: Float[np.ndarray, "n d"], classes: Classes, train: Int[np.ndarray, " train"], rows: Int[np.ndarray, " choose"]
) -> GaussianClasses:
    """With the settings that suit these rows best, one after the other."""
    of_row, best = classes.of_row[rows], (np.inf, GaussianClasses(x, classes, train))

    def tried(best: tuple[float, GaussianClasses], fit: GaussianClasses, settings: ClassSettings, temperatures):
        fit = copy(fit)
        fit.settings = settings
        likelihoods = fit.likelihoods(x[rows])
        for temperature in temperatures:
            loss = _cross_entropy(temperature * likelihoods + classes.log_prior, of_row)
            if loss < best[0]:
                best = (loss, copy(fit))
                best[1].settings = settings._replace(temperature=temperature)
        return best

    for diagonal in _DIAGONAL:
        fit = GaussianClasses(x, classes, train, ClassSettings(diagonal))
        for kept in sorted({min(len(fit), number) for number in KEPT}):
            best = tried(best, fit, ClassSettings(diagonal, kept), _COARSELY)
    if np.isfinite(best[0]):
        for pooled in (0.0, *_POOLED) if classes.number <= _MOST_POOLED else (0.0,):
            best = tried(best, best[1], best[1].settings._replace(pooled=pooled), _TEMPERATURES)
    return best[1]


def _cross_entropy(logits: Float[np.ndarray, "n classes"], of_row: Int[np.ndarray, " n"]) -> float:
    """In nats."""
    logits -= logits.max(axis=1, keepdims=True)
    right = logits[np.arange(len(logits)), of_row]
    return float(np.mean(np.log(np.sum(np.exp(logits.astype(np.float32)), axis=1)) - right))
