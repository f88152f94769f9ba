"""The critics that `BestBound` chooses among: each is fitted on training rows and scores any x with any y.

A critic that knows the joint distribution p and the product q of its marginals has T = log p/q. Each returns two
tables (judging.py) of all splits together, one for the choosing rows and one for the judging rows.

    Gaussian     log p/q of Gaussian vectors with the covariances of the training rows: as they are, and of the ranks
    separable    f(x)·g(y) + a(x) + b(y) with networks, fitted by telling each x's own y from those of others
    regression   a linear map of x to y, or of y to x, with noise of any shape, where there are few columns
    Student      log p/q of a t distribution of both sides, for heavy tails that all columns share; few columns
    classifiers  (atoms.py) where rows recur: an MLP, and a Gaussian for each atom
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import gammaln

from beliefscope.information.bounds import DonskerVaradhan, Samples, Scores
from beliefscope.information.columns import whitened
from beliefscope.information.decoders import Split
from beliefscope.information.interface import in_threads
from beliefscope.information.judging import KEPT, Elliptical, Products, Residuals, Table, Wheres, safe_value, stacked
from beliefscope.information.networks import SEPARABLE_LIMIT, Codes, SeparableCritic, fit_network, on_each

_TRIED = 1000  # choosing rows that are asked for each number
_BINS, _GRID = 50, 2048  # of a density
_TRACE = 1e-3  # of a density: what was never seen is not impossible
_FREEDOMS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # degrees, of a t distribution
_EM_STEPS = (15, 6)  # for the first of them, and for each other, from the matrix of the one before
_ROWS = 250  # of a table of scores at a time, which bounds the memory


class SeparableSettings(NamedTuple):
    """How the separable critic is fitted."""

    batch: int = 256  # pairs that it tells apart: log2 of it is what training shows it
    steps: int = 1080  # at least: few samples need as many steps as many do
    epochs: int = 40  # at least
    asked: int = 1000  # choosing pairs that say which epoch was best
    learning_rate: float = 5e-3  # of AdamW at the start
    average: float = 0.98  # of the moving average of the weights
    decay: float = 0.1  # of the weights
    decay_of_many: float = 0.5  # where both sides together have more columns than
    many: int = 32


class Moments(NamedTuple):
    """Sums over rows of (x, y) side by side, in double precision. Those of disjoint rows add up."""

    number: int
    columns_x: int
    total: Float[np.ndarray, " d"]
    squares: Float[np.ndarray, "d d"]

    @classmethod
    def of(cls, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> "Moments":
        rows = np.concatenate([x, y], axis=1, dtype=np.float64)
        return cls(len(rows), x.shape[1], rows.sum(axis=0), rows.T @ rows)

    @classmethod
    def together(cls, parts: "Sequence[Moments]") -> "Moments":
        number = sum(part.number for part in parts)
        total, squares = (np.sum([getattr(part, name) for part in parts], axis=0) for name in ("total", "squares"))
        return cls(number, parts[0].columns_x, total, squares)


def moments_of_each(
    x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], subsets: Sequence[Int[np.ndarray, " _"]]
) -> list[Moments]:
    """Those of each subset of the rows. Rows that are in the same subsets are summed once."""
    member = np.zeros((len(x), len(subsets)), bool)
    for place, rows in enumerate(subsets):
        member[rows, place] = True
    kinds, of_row = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)
    is_in = np.unpackbits(kinds, axis=1, count=len(subsets)).astype(bool)
    blocks = in_threads(lambda kind: Moments.of(x[of_row == kind], y[of_row == kind]), range(len(kinds)))
    return [Moments.together([b for b, there in zip(blocks, column, strict=True) if there]) for column in is_in.T]


class Gaussian:
    """The log density ratio of Gaussian vectors, by their canonical correlations ρ.

    In the directions u = Aᵀx, v = Bᵀy that correlate most it is Σ −½ log(1 − ρ²) + (ρ u v − ½ ρ² (u² + v²)) / (1 − ρ²).
    """

    def __init__(self, rows: Moments):
        mean = rows.total / rows.number
        covariance = rows.squares / rows.number - np.outer(mean, mean)
        first, second = slice(None, rows.columns_x), slice(rows.columns_x, None)
        white_x, white_y = (whitened(covariance[part, part]) for part in (first, second))
        left, self._correlations, right = np.linalg.svd(
            white_x.T @ covariance[first, second] @ white_y, full_matrices=False
        )
        self._correlations = np.minimum(self._correlations, 1 - 1e-7)
        self._mean_x, self._mean_y = mean[first], mean[second]
        self._to_u, self._to_v = white_x @ left, white_y @ right.T

    def __len__(self) -> int:
        return len(self._correlations)

    def codes(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "m dy"], size: int) -> tuple[Codes, Codes]:
        """With columns of zeros up to `size`, and offsets [n, size] for each number of directions that may be kept."""
        rho = self._correlations
        left = 1 - rho**2
        u, v = (x - self._mean_x) @ self._to_u, (y - self._mean_y) @ self._to_v
        off_u, off_v = (np.cumsum(-0.5 * part**2 * (rho**2 / left), axis=1) for part in (u, v))
        off_u -= np.cumsum(0.5 * np.log(left))

        def padded(part: Float[np.ndarray, "n k"], mode) -> Float[np.ndarray, "n size"]:
            return np.pad(part.astype(np.float32), ((0, 0), (0, size - part.shape[1])), mode=mode)

        return (
            Codes(padded(u * (rho / left), "constant"), padded(off_u, "edge")),
            Codes(padded(v, "constant"), padded(off_v, "edge")),
        )


def _kept(x: Codes, y: Codes, number) -> Products:
    """The table of so many directions, of offsets for every number; no number: zeros."""

    def some(side: Codes) -> Codes:
        there = jnp.arange(side.vector.shape[1]) < number
        offset = jnp.where(number > 0, jnp.take(jnp.asarray(side.offset), jnp.maximum(number, 1) - 1, axis=1), 0)
        return Codes(side.vector * there, offset)

    return Products(some(x), some(y))


def gaussian_tables(
    x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], parts: Split, wheres: Wheres
) -> tuple[Float[Array, " splits"], Table, Table]:
    """As many directions as suit the choosing rows, and their values there, in nats.

    Judging rows are scored by critics that were fitted on the choosing rows too.
    """
    fits = [(np.unique(train), np.asarray(choose)) for train, choose in zip(*parts[:2], strict=True)]
    subsets = [train for train, _ in fits] + [np.concatenate(rows) for rows in fits]
    critics = in_threads(Gaussian, moments_of_each(x, y, subsets))
    size = max(map(len, critics))
    numbers = np.array(sorted({min(size, number) for number in KEPT}), np.int32)
    where = [each for table in wheres for each in zip(*table, strict=True)]
    codes = in_threads(lambda critic, rows: critic.codes(x[rows[0]], y[rows[1]], size), critics, where)
    choosing, judging = (
        jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *some)
        for some in (codes[: len(fits)], codes[len(fits) :])
    )
    return _best_kept(choosing, judging, numbers)


@jax.jit
def _best_kept(choosing, judging, numbers) -> tuple[Float[Array, " splits"], Table, Table]:
    def one(choosing: tuple[Codes, Codes], judging: tuple[Codes, Codes]):
        some = [Codes(*(leaf[:_TRIED] for leaf in side)) for side in choosing]
        values = lax.map(lambda number: safe_value(_kept(some[0], some[1], number).scores()), numbers)
        best = jnp.argmax(values)
        number = jnp.where(values[best] > 0, numbers[best], 0)
        return (
            jnp.maximum(values[best], 0),
            _kept(choosing[0], choosing[1], number),
            _kept(judging[0], judging[1], number),
        )

    return on_each(one, choosing, judging)


class Student:
    """The log density ratio of a t distribution of x and y together, with heavy tails that all columns share.

    For each number of degrees of freedom the EM algorithm of Kent, Tyler and Vardi (1994) finds the matrix of maximum
    likelihood. The number with the largest likelihood is used.
    """

    def __init__(
        self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], freedoms: tuple[float, ...] = _FREEDOMS
    ):
        rows = np.concatenate([x, y], axis=1)
        self._columns, size = x.shape[1], rows.shape[1]
        self._centre = np.median(rows, axis=0)
        rows = rows - self._centre
        matrix, best = np.diag(np.maximum(np.median(np.abs(rows), axis=0) ** 2, 1e-12)), -np.inf
        for place, freedom in enumerate(freedoms):
            for _ in range(_EM_STEPS[place > 0]):
                share = (freedom + size) / (freedom + _lengths(rows, matrix))
                matrix = (rows * share[:, None]).T @ rows / share.sum() + 1e-12 * np.eye(size)
            likelihood = _student_constant(freedom, size) - 0.5 * np.linalg.slogdet(matrix)[1]
            likelihood -= 0.5 * (freedom + size) * np.mean(np.log1p(_lengths(rows, matrix) / freedom))
            if likelihood > best:
                best, self.freedom, self._matrix = likelihood, freedom, matrix

    def table(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "m dy"]) -> Elliptical:
        first, second, freedom = slice(None, self._columns), slice(self._columns, None), self.freedom
        x, y, inverse = x - self._centre[first], y - self._centre[second], np.linalg.inv(self._matrix)
        sizes = x.shape[1], y.shape[1]
        alone = []
        for part, rows in ((first, x), (second, y)):
            inside, size = self._matrix[part, part], rows.shape[1]
            constant = _student_constant(freedom, size) - 0.5 * np.linalg.slogdet(inside)[1]
            alone.append(0.5 * (freedom + size) * np.log1p(_lengths(rows, inside) / freedom) - constant)
        alone[0] += _student_constant(freedom, sum(sizes)) - 0.5 * np.linalg.slogdet(self._matrix)[1]
        of_x = Codes(_single(2 * x @ inverse[first, second]), _single(np.sum(x @ inverse[first, first] * x, axis=1)))
        of_y = Codes(_single(y), _single(np.sum(y @ inverse[second, second] * y, axis=1)))
        power = 0.5 * (freedom + sum(sizes))
        return Elliptical(of_x, of_y, *map(_single, (*alone, freedom, power)))


def _lengths(rows: Float[np.ndarray, "n d"], matrix: Float[np.ndarray, "d d"]) -> Float[np.ndarray, " n"]:
    return np.sum(rows @ np.linalg.inv(matrix) * rows, axis=1)


def _student_constant(freedom: float, size: int) -> float:
    """The part of the log density that depends on neither rows nor matrix."""
    return float(gammaln((freedom + size) / 2) - gammaln(freedom / 2) - size / 2 * np.log(np.pi * freedom))


def student_tables(
    x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"], parts: Split, wheres: Wheres
) -> tuple[Table, Table]:
    """Of the choosing rows, and of the judging ones, for which critics are fitted on the choosing rows too."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    found = []
    for place, (train, choose) in enumerate(zip(*parts[:2], strict=True)):
        some, (choosing, judging) = np.unique(train), wheres.of(place)
        critic, both = Student(x[some], y[some]), np.concatenate([some, choose])
        refitted = Student(x[both], y[both], (critic.freedom,))
        found.append((critic.table(x[choosing.x], y[choosing.y]), refitted.table(x[judging.x], y[judging.y])))
    choosing, judging = zip(*found, strict=True)
    return stacked(list(choosing)), stacked(list(judging))


class Regression:
    """log f(y − A x − c) − log p(y) with the least-squares A, c and densities of any shape, column by column.

    It represents bounded noise and other noise that is not Gaussian.
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


def _single(array: Any) -> Float[Array, "..."]:
    return jnp.asarray(array, jnp.float32)


def regression_tables(
    given: Float[np.ndarray, "n d"],
    said: Float[np.ndarray, "n k"],
    parts: Split,
    wheres: Wheres,
    *,
    turned: bool,
) -> tuple[Table, Table]:
    given, said = np.asarray(given, np.float64), np.asarray(said, np.float64)
    found = []
    for place, train in enumerate(np.asarray(parts.train)):
        some = np.unique(train)
        critic = Regression(given[some], said[some])
        rows = [(each.y, each.x) if turned else (each.x, each.y) for each in wheres.of(place)]
        found.append([critic.table(given[one], said[other], turned=turned) for one, other in rows])
    choosing, judging = zip(*found, strict=True)
    return stacked(list(choosing)), stacked(list(judging))


def separable_tables(
    key: PRNGKeyArray, samples: Samples, parts: Split, wheres: Wheres, settings: SeparableSettings
) -> tuple[Table, Table]:
    """The scores on the choosing rows and on the judging ones, all splits together."""
    with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
        choosing, judging = _separable(key, samples, *map(jnp.asarray, parts[:2]), wheres, settings)
    first, second = (_table(*codes) for codes in (choosing, judging))
    return first, second


def _table(x: Codes, y: Codes) -> Products:
    return Products(x, y, SEPARABLE_LIMIT)


@partial(jax.jit, static_argnames="settings")
def _separable(key: PRNGKeyArray, samples: Samples, train, choose, wheres: Wheres, settings: SeparableSettings):
    """The codes by the critic of each split."""

    def one(key_one: PRNGKeyArray, train: Int[Array, " train"], choose: Int[Array, " choose"], wheres: Wheres):
        trained, chosen = (Samples(samples.x[rows], samples.y[rows]) for rows in (train, choose))
        critic = fit_separable(key_one, trained, chosen, settings)
        return [(critic.read_x(samples.x[where.x]), critic.read_y(samples.y[where.y])) for where in wheres]

    return on_each(one, jax.random.split(key, len(train)), train, choose, wheres)


def _decayed(critic: SeparableCritic) -> SeparableCritic:
    """Which parameters weight decay pulls to zero: the networks', not the linear maps and squares."""
    everything = jax.tree.map(lambda _: True, critic)
    kept = ("linear", "squares")
    return eqx.tree_at(
        lambda c: [getattr(side, name) for side in (c.read_x, c.read_y) for name in kept], everything, [False] * 4
    )


def fit_separable(key: PRNGKeyArray, train: Samples, choose: Samples, settings: SeparableSettings) -> SeparableCritic:
    """One critic: the moving average of its weights after the epoch that was best on the choosing pairs."""
    key_init, key_epochs = jax.random.split(key)
    critic = SeparableCritic(key_init, train.x.shape[1], train.y.shape[1])
    batch, steps = settings.batch, len(train.x) // settings.batch
    epochs = max(settings.epochs, -(-settings.steps // steps))
    asked = Samples(*(side[: settings.asked] for side in choose))
    optimiser = _optimiser(epochs * steps, train.x.shape[1] + train.y.shape[1], settings)

    def batches(key_epoch: PRNGKeyArray) -> Int[Array, "steps batch"]:
        return jax.random.permutation(key_epoch, len(train.x))[: steps * batch].reshape(steps, batch)

    def step(carry, rows: Int[Array, " batch"]):
        critic, state, average = carry
        gradient = jax.grad(_loss)(critic, Samples(train.x[rows], train.y[rows]))
        updates, state = optimiser.update(gradient, state, critic)
        critic = eqx.apply_updates(critic, updates)
        kept = settings.average
        return critic, state, jax.tree.map(lambda old, new: kept * old + (1 - kept) * new, average, critic)

    return fit_network(
        jax.random.split(key_epochs, epochs),
        (critic, optimiser.init(critic), critic),  # pyright: ignore[reportArgumentType]
        batches=batches,
        step=step,
        network=lambda state: state[2],
        value=lambda average: DonskerVaradhan().bits(score_all(average, asked)),
        include_start=False,
    ).best


def _optimiser(steps: int, columns: int, settings: SeparableSettings) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(settings.learning_rate, steps)
    decay = settings.decay_of_many if columns > settings.many else settings.decay
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=decay, mask=_decayed))


def _loss(critic: SeparableCritic, batch: Samples) -> Float[Array, ""]:
    """InfoNCE in both directions: which y belongs to an x, and which x to a y."""
    scores = _table(critic.read_x(batch.x), critic.read_y(batch.y)).scores()
    rows, columns = (jnp.mean(jax.nn.logsumexp(scores, axis=axis)) for axis in (0, 1))
    return (rows + columns) / 2 - jnp.mean(jnp.diagonal(scores))


def score_all(critic: SeparableCritic, samples: Samples) -> Scores:
    """For each x its score with its own y, and the log mean e^T over all other y."""
    x, y, number = critic.read_x(samples.x), critic.read_y(samples.y), len(samples.x)

    def row(place: Int[Array, ""], x_here: Codes) -> tuple[Float[Array, ""], Float[Array, ""]]:
        scores = _table(jax.tree.map(lambda leaf: leaf[None], x_here), y).scores()[0]
        others = jnp.where(jnp.arange(number) == place, -jnp.inf, scores)
        return scores[place], jax.nn.logsumexp(others) - np.log(number - 1)

    joint, product = lax.map(lambda at: row(*at), (jnp.arange(number), x), batch_size=min(_ROWS, number))
    return Scores(joint, product[None])
