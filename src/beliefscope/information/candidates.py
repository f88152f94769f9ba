"""The critics that `BestBound` chooses among: each is fitted on training rows and scores any x with any y.

A critic that knows the joint distribution p and the product q of its marginals has T = log p/q. A `Table` holds the
scores of every x of some rows with every y of others, as products of codes or as the answers of a classifier.

    Gaussian     log p/q of Gaussian vectors with the covariances of the training rows: as they are, and of the ranks
    separable    f(x)·g(y) + a(x) + b(y) with networks, fitted by telling each x's own y from those of others
    regression   a linear map of x to y, or of y to x, with noise of any shape, where there are few columns
    classifiers  log p(atom | x) / p(atom), where rows of y recur: an MLP, and a Gaussian for each atom
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import log_softmax

from beliefscope.information.decoders import Descent, Family, Split, descend, silent
from beliefscope.information.each import on_each
from beliefscope.information.normal_scores import FAINTEST, whitening
from beliefscope.information.scores import Samples
from beliefscope.information.separable import LIMIT as SEPARABLE_LIMIT
from beliefscope.information.separable import Codes, fit_separable

LIMIT = 14.0  # nats, 20 bits: more than samples in their thousands could show
_KEPT = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # directions, of which the choosing rows choose
_TEMPERATURES = (0.4, 0.6, 0.8, 1.0)
_CLASSES_AT_ONCE = 64  # rounded up, one compiled program fits many numbers of classes
_NEVER = -1e30  # the logarithm of the probability of a class that is none
_BINS, _GRID = 50, 2048  # of a density
_TRACE = 1e-3  # of a density: what was never seen is not impossible
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


class Residuals(NamedTuple):
    """T = Σ log f(y_i − p_i(x)) + a(y), with the logarithm of f on a fine grid."""

    predicted: Float[Array, "n d"]  # p(x), in steps of each column's grid
    y: Float[Array, "m d"]  # the same, from the start of the grid
    offset: Float[Array, " m"]
    densities: Float[Array, "d grid"]
    turned: bool

    def scores(self) -> Float[Array, "n m"]:
        scores = _residuals(*self[:-1])
        return scores.T if self.turned else scores


Table = Products | Answers | Residuals


class Where(NamedTuple):
    """The rows whose x is scored, and those with whose y: the same, then others."""

    x: Int[np.ndarray, " n"]
    y: Int[np.ndarray, " m"]


@partial(jax.jit, static_argnums=2)
def _products(x: Codes, y: Codes, limit: float) -> Float[Array, "n m"]:
    with jax.default_matmul_precision("float32"):
        return _limited(x.vector @ y.vector.T + x.offset[:, None] + y.offset, limit)


@jax.jit
def _residuals(predicted, y, offset, densities) -> Float[Array, "n m"]:
    def add(total, column):
        of_x, of_y, density = column
        place = (of_y - of_x[:, None]).astype(jnp.int32)  # beyond the grid: its ends, where f is faint
        return total + density[jnp.clip(place, 0, len(density) - 1)], None

    start = jnp.broadcast_to(offset, (len(predicted), len(y)))
    return _limited(lax.scan(add, start, (predicted.T, y.T, densities))[0], LIMIT)


def _limited(scores, limit: float):
    return limit * jnp.tanh(scores / limit)


class Gaussian:
    """The log density ratio of Gaussian vectors, by their canonical correlations ρ.

    In the directions u = Aᵀx, v = Bᵀy that correlate most it is Σ −½ log(1 − ρ²) + (ρ u v − ½ ρ² (u² + v²)) / (1 − ρ²).
    """

    def __init__(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], kept: int | None = None):
        (self._mean_x, white_x), (self._mean_y, white_y) = whitening(x), whitening(y)
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


class Regression:
    """log f(y − A x − c) − log p(y) with the least-squares A, c and densities of any shape, column by column.

    It sees limits that noise never crosses, and other noise that is not Gaussian.
    """

    def __init__(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]):
        inputs = np.column_stack([x, np.ones(len(x))])
        self._linear = np.linalg.lstsq(inputs, y, rcond=None)[0]
        left = y - inputs @ self._linear
        self._densities = [_Density.of(column) for column in left.T]
        self._marginals = [_Density.of(column) for column in y.T]

    def table(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "m dy"], *, turned: bool = False) -> Residuals:
        low, step = (np.array([getattr(each, name) for each in self._densities]) for name in ("low", "step"))
        predicted = np.column_stack([x, np.ones(len(x))]) @ self._linear
        offset = -sum(each.log_at(column) for each, column in zip(self._marginals, y.T, strict=True))
        densities = np.stack([each.log_density for each in self._densities])
        given = (predicted / step, (y - low) / step, np.asarray(offset), densities)
        return Residuals(*map(_single, given), turned=turned)


class _Density(NamedTuple):
    """A density as bins of equal probability, on a grid."""

    low: float
    step: float
    log_density: Float[np.ndarray, " grid"]  # the first and the last entry are what lies beyond

    @classmethod
    def of(cls, values: Float[np.ndarray, " n"]) -> "_Density":
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
        if len(edges) < 2:
            edges = edges[0] + np.array([-0.5, 0.5])
        step = (edges[-1] - edges[0]) / (_GRID - 2)
        middles = edges[0] + step * (np.arange(_GRID - 2) + 0.5)
        share = np.diff(np.searchsorted(np.sort(values), edges, side="right"))
        density = (share / len(values) / np.diff(edges))[np.searchsorted(edges, middles) - 1]
        faint = _TRACE / (edges[-1] - edges[0])
        inside = np.log(density + faint)
        return cls(edges[0] - step, step, np.concatenate([[np.log(faint)], inside, [np.log(faint)]]))

    def log_at(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        place = ((values - self.low) / self.step).astype(int)
        return self.log_density[np.clip(place, 0, len(self.log_density) - 1)]


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
    few = [classes_of(atoms, np.unique(train), seen=_SEEN) for train in np.asarray(parts.train)]
    return all(np.mean(each.of_row == 0) <= 0.5 and each.number > 2 for each in few)


def mlp_logits(
    key: PRNGKeyArray, x: Float[np.ndarray, "n d"], atoms: Int[np.ndarray, " n"], parts: Split
) -> list[tuple[Classes, Float[np.ndarray, "n classes"]]]:
    """For each split its classes, and the logits of all rows."""
    classes = [classes_of(atoms, np.unique(train), seen=_SEEN) for train in np.asarray(parts.train)]
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

    def __init__(
        self,
        x: Float[np.ndarray, "n d"],
        classes: Classes,
        train: Int[np.ndarray, " train"],
        like: "GaussianClasses | None" = None,
    ):
        """`like`: with as many directions, and as sure."""
        rows, of_row = x[train], classes.of_row[train]
        self.classes, self._counts = classes, np.bincount(of_row, minlength=classes.number).astype(np.float64)
        total, there = len(rows), int(np.sum(self._counts > 0))
        means = np.zeros((classes.number, x.shape[1]))
        np.add.at(means, of_row, rows)
        means /= np.maximum(self._counts, 1)[:, None]
        inside = rows - means[of_row]
        variances, directions = np.linalg.eigh(inside.T @ inside / max(total - there, 1))
        white = directions / np.sqrt(np.maximum(variances, max(1e-8, FAINTEST * variances[-1])))
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
        self._kept, self._temperature = (len(between), 1.0) if like is None else (like._kept, like._temperature)

    def logits(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        between, counts = self._between[: self._kept], self._counts[:, None]
        means = self._overall[: self._kept] + counts * between / (counts * between + 1) * self._apart[:, : self._kept]
        precision = 1 / (1 + between / (counts * between + 1))
        z = x @ self._to_z[:, : self._kept]
        constant = np.sum(means**2 * precision - np.log(precision), axis=1)
        distance = z**2 @ precision.T - 2 * z @ (means * precision).T + constant
        return -0.5 * self._temperature * distance + self.classes.log_prior

    def choose(self, x: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " choose"]) -> None:
        """How many directions count, and how sure answers are: what suits these rows."""
        of_row, best = self.classes.of_row[rows], (np.inf, 1, 1.0)
        for kept in sorted({min(len(self._between), number) for number in _KEPT}):
            self._kept, self._temperature = kept, 1.0
            likelihood = self.logits(x[rows]) - self.classes.log_prior
            for temperature in _TEMPERATURES:
                answers = log_softmax(temperature * likelihood + self.classes.log_prior, axis=1)
                loss = -float(np.mean(answers[np.arange(len(rows)), of_row]))
                best = min(best, (loss, kept, temperature))
        _, self._kept, self._temperature = best
