"""The critics that `BestBound` chooses among: each is fitted on training rows and scores any x with any y.

A critic that knows the joint distribution p and the product q of its marginals has T = log p/q. A `Table` holds the
scores of every x of some rows with every y of others, as products of codes or as the answers of a classifier.

    Gaussian     log p/q of Gaussian vectors with the covariances of the training rows: as they are, and of the ranks
    separable    f(x)·g(y) + a(x) + b(y) with networks, fitted by telling each x's own y from those of others
    classifiers  log p(atom | x) / p(atom), where rows of y recur: an MLP, and a Gaussian for each atom
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import log_softmax

from beliefscope.information.decoders import Descent, Family, Split, descend, silent
from beliefscope.information.each import on_each
from beliefscope.information.scores import Samples
from beliefscope.information.separable import LIMIT as SEPARABLE_LIMIT
from beliefscope.information.separable import Codes, fit_separable

LIMIT = 14.0  # nats, 20 bits: more than samples in their thousands could show
_FAINTEST = 1e-6  # of the largest variance: directions below it are rounding
_KEPT = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # directions, of which the choosing rows choose
_TEMPERATURES = (0.4, 0.6, 0.8, 1.0)
_CLASSES_AT_ONCE = 64  # rounded up, one compiled program fits many numbers of classes
_NEVER = -1e30  # the logarithm of the probability of a class that is none
_SEEN = 3  # an atom seen fewer times in training is no class of the MLP's
# Codes that lie close together take many steps to tell apart.
_MLP = Family("MLP", (128, 128), Descent(learning_rate=0.003, steps=1200))


class Products(NamedTuple):
    """T = limit(f(x)·g(y) + a(x) + b(y))."""

    x: Codes
    y: Codes
    limit: float

    def scores(self) -> Float[Array, "n m"]:
        return _products(*self)


class Answers(NamedTuple):
    """T is the entry of each x's row for each y's class; `turned` where classes are of x and rows of y."""

    rows: Float[np.ndarray, "n classes"]
    classes: Int[np.ndarray, " m"]
    turned: bool

    def scores(self) -> Float[Array, "n m"]:
        scores = jnp.asarray(self.rows)[:, jnp.asarray(self.classes)]
        return scores.T if self.turned else scores


Table = Products | Answers


class Where(NamedTuple):
    """The rows whose x is scored, and those with whose y: the same, then others."""

    x: Int[np.ndarray, " n"]
    y: Int[np.ndarray, " m"]


@partial(jax.jit, static_argnums=2)
def _products(x: Codes, y: Codes, limit: float) -> Float[Array, "n m"]:
    with jax.default_matmul_precision("float32"):
        return _limited(x.vector @ y.vector.T + x.offset[:, None] + y.offset, limit)


def _limited(scores, limit: float):
    return limit * jnp.tanh(scores / limit)


class Gaussian:
    """The log density ratio of Gaussian vectors, by their canonical correlations ρ.

    In the directions u = Aᵀx, v = Bᵀy that correlate most it is Σ −½ log(1 − ρ²) + (ρ u v − ½ ρ² (u² + v²)) / (1 − ρ²).
    """

    def __init__(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], kept: int | None = None):
        (self._mean_x, white_x), (self._mean_y, white_y) = _whitening(x), _whitening(y)
        cross = ((x - self._mean_x) @ white_x).T @ ((y - self._mean_y) @ white_y) / len(x)
        left, self._correlations, right = np.linalg.svd(cross, full_matrices=False)
        self._correlations = np.minimum(self._correlations, 1 - 1e-7)
        self._to_u, self._to_v = white_x @ left, white_y @ right.T
        self.kept = len(self._correlations) if kept is None else min(kept, len(self._correlations))

    def numbers(self) -> list[int]:
        """How many directions may be kept: the others correlate by chance, if at all."""
        return sorted({min(len(self._correlations), number) for number in _KEPT})

    def table(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "m dy"]) -> Products:
        rho = self._correlations[: self.kept]
        left = 1 - rho**2
        u, v = ((x - self._mean_x) @ self._to_u)[:, : self.kept], ((y - self._mean_y) @ self._to_v)[:, : self.kept]
        off_u, off_v = (-0.5 * (part**2 @ (rho**2 / left)) for part in (u, v))
        of_x = Codes(_single(u * (rho / left)), _single(off_u - 0.5 * np.sum(np.log(left))))
        return Products(of_x, Codes(_single(v), _single(off_v)), LIMIT)


def _whitening(rows: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d k"]]:
    mean = rows.mean(axis=0)
    variances, directions = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    there = variances > _FAINTEST * max(variances[-1], 1e-30)
    return mean, directions[:, there] / np.sqrt(variances[there])


def _single(array: np.ndarray) -> Float[Array, "..."]:
    return jnp.asarray(array, jnp.float32)


def separable_tables(
    key: PRNGKeyArray, samples: Samples, parts: Split, wheres: list[tuple[Where, Where]]
) -> list[tuple[Table, Table]]:
    """For each split the scores on its choosing rows and on its judging ones."""
    x, y = _separable(key, samples, *map(jnp.asarray, parts[:2]))

    def table(place: int, where: Where) -> Products:
        of_x, of_y = (Codes(*(part[place][rows] for part in side)) for side, rows in ((x, where.x), (y, where.y)))
        return Products(of_x, of_y, SEPARABLE_LIMIT)

    return [(table(place, choosing), table(place, judging)) for place, (choosing, judging) in enumerate(wheres)]


@jax.jit
def _separable(key: PRNGKeyArray, samples: Samples, train, choose) -> tuple[Codes, Codes]:
    """The codes of all rows by the critic of each split."""

    def one(key_one: PRNGKeyArray, train: Int[Array, " train"], choose: Int[Array, " choose"]):
        some = (Samples(samples.x[rows], samples.y[rows]) for rows in (train, choose))
        critic, _ = fit_separable(key_one, *some)
        return critic.read_x(samples.x), critic.read_y(samples.y)

    return on_each(one, jax.random.split(key, len(train)), train, choose)


class Classes(NamedTuple):
    """The atoms of one side as classes; class 0 has those that are none of their own."""

    of_row: Int[np.ndarray, " n"]
    log_prior: Float[np.ndarray, " classes"]

    @property
    def number(self) -> int:
        return len(self.log_prior)

    def answers(self, logits: Float[np.ndarray, "n classes"], where: Where, *, turned: bool) -> Answers:
        """log p(class | x) / p(class), of logits for the rows that are read."""
        ratio = log_softmax(logits, axis=1) - self.log_prior
        rows = (LIMIT * np.tanh(np.maximum(ratio, -60) / LIMIT)).astype(np.float32)
        return Answers(rows, self.of_row[where.x if turned else where.y], turned)


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
    few = [classes_of(atoms, train, seen=_SEEN) for train in np.asarray(parts.train)]
    return all(np.mean(each.of_row == 0) <= 0.5 and each.number > 2 for each in few)


def mlp_logits(
    key: PRNGKeyArray, x: Float[np.ndarray, "n d"], atoms: Int[np.ndarray, " n"], parts: Split
) -> list[tuple[Classes, Float[np.ndarray, "n classes"]]]:
    """For each split its classes, and the logits of all rows."""
    classes = [classes_of(atoms, train, seen=_SEEN) for train in np.asarray(parts.train)]
    size = -(-max(each.number for each in classes) // _CLASSES_AT_ONCE) * _CLASSES_AT_ONCE
    priors = [np.pad(each.log_prior, (0, size - each.number), constant_values=_NEVER) for each in classes]
    of_rows = jnp.asarray(np.stack([each.of_row for each in classes]))
    with jax.default_matmul_precision("float32"):
        train, choose = map(jnp.asarray, parts[:2])
        keys = jax.random.split(key, len(classes))
        found = _mlp(keys, jnp.asarray(x), of_rows, _single(np.stack(priors)), train, choose)
    return [
        (each, np.asarray(logits, np.float64)[:, : each.number]) for each, logits in zip(classes, found, strict=True)
    ]


@jax.jit
def _mlp(keys, x, of_rows, priors, train, choose) -> Float[Array, "splits n classes"]:
    def one(key, of_row, prior, train, choose):
        def loss(decoder, rows) -> Float[Array, " n"]:
            return optax.softmax_cross_entropy_with_integer_labels(decoder(rows[0]) + prior, rows[1])

        key_start, key_fit = jax.random.split(key)
        start = silent(key_start, x.shape[1], _MLP, len(prior))
        trained, chosen = ((x[rows], of_row[rows]) for rows in (train, choose))
        decoder, _ = descend(key_fit, start, loss, trained, chosen, _MLP.descent)
        return decoder(x) + prior

    return on_each(one, keys, of_rows, priors, train, choose)


class GaussianClasses:
    """A Gaussian for each atom: one covariance, and means that are drawn from a Gaussian around the overall mean.

    In directions that make the covariance 1 the means' own variance b is what class means scatter beyond chance. The
    mean of a class seen n times is drawn to the overall one, to n b / (n b + 1) of its distance, and known up to
    b / (n b + 1). So atoms seen once, or never, are read too, and directions without differences do not count.
    """

    def __init__(self, x: Float[np.ndarray, "n d"], classes: Classes, train: Int[np.ndarray, " train"]):
        rows, of_row = x[train], classes.of_row[train]
        self._classes, self._counts = classes, np.bincount(of_row, minlength=classes.number).astype(np.float64)
        total, there = len(rows), int(np.sum(self._counts > 0))
        means = np.zeros((classes.number, x.shape[1]))
        np.add.at(means, of_row, rows)
        means /= np.maximum(self._counts, 1)[:, None]
        inside = rows - means[of_row]
        variances, directions = np.linalg.eigh(inside.T @ inside / max(total - there, 1))
        white = directions / np.sqrt(np.maximum(variances, max(1e-8, _FAINTEST * variances[-1])))
        means = means @ white
        overall = self._counts @ means / total
        apart = means - overall
        between, turn = np.linalg.eigh((apart * self._counts[:, None]).T @ apart / total)
        order = np.argsort(-between)
        self._to_z, self._overall, self._apart = (
            white @ turn[:, order],
            overall @ turn[:, order],
            apart @ turn[:, order],
        )
        several = max(total - float(np.sum(self._counts**2)) / total, 1.0)
        self._between = np.maximum(between[order] - (there - 1) / total, 0) * total / several
        self._kept, self._temperature = len(between), 1.0

    def logits(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        between, counts = self._between[: self._kept], self._counts[:, None]
        means = self._overall[: self._kept] + counts * between / (counts * between + 1) * self._apart[:, : self._kept]
        precision = 1 / (1 + between / (counts * between + 1))
        z = x @ self._to_z[:, : self._kept]
        constant = np.sum(means**2 * precision - np.log(precision), axis=1)
        distance = z**2 @ precision.T - 2 * z @ (means * precision).T + constant
        return -0.5 * self._temperature * distance + self._classes.log_prior

    def choose(self, x: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " choose"]) -> None:
        """How many directions count, and how sure answers are: what suits these rows."""
        of_row, best = self._classes.of_row[rows], (np.inf, 1, 1.0)
        for kept in sorted({min(len(self._between), number) for number in _KEPT}):
            self._kept, self._temperature = kept, 1.0
            likelihood = self.logits(x[rows]) - self._classes.log_prior
            for temperature in _TEMPERATURES:
                answers = log_softmax(temperature * likelihood + self._classes.log_prior, axis=1)
                loss = -float(np.mean(answers[np.arange(len(rows)), of_row]))
                best = min(best, (loss, kept, temperature))
        _, self._kept, self._temperature = best
