"""Decoders: networks fitted by steps of AdamW on random batches; the best weights on other rows are kept.

`reading(memory)` is what a decoder reads: every column at mean 0 and deviation 1, and beside them the principal
directions, brought to deviation 1 too. A direction whose deviation is below 1 % of the largest one's is not amplified
further: what lies there is too faint to count as held, and noise where memories are noisy.

Beliefs that are Gaussian, N(μ, Σ), have decoders that answer with a normal distribution N(m + f(h), S): m is the mean
belief's centre (at each t, or overall), f a decoder and S the second moment of s about the answer. The cross entropy of
N(μ, Σ) with the answer is known in closed form.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.errors import require
from beliefscope.fast_keys import generator
from beliefscope.information.networks import Layers, Model, fit_network, on_each

FIFTHS = 5
_BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH = 12, 64, 512
_FAINTEST = 1e-4  # of the largest variance along a principal direction: 1 % of its deviation


class Descent(NamedTuple):
    """How a decoder is fitted."""

    learning_rate: float  # of AdamW at the start; it falls to zero along a cosine
    steps: int  # whatever the number of rows: few rows need as many as many do
    decay: float = 0.0  # of the weights
    looks: int = 20  # how often the choosing rows are asked

    def batch_size(self, number: int) -> int:
        """Of so many rows: a fit costs in proportion to their number."""
        return min(number, max(_SMALLEST_BATCH, min(number // _BATCHES, _LARGEST_BATCH)))


class Family(NamedTuple):
    """A kind of decoder."""

    name: str
    hidden: tuple[int, ...]
    descent: Descent


# Chosen on memories of 64 numbers from trained and untrained networks (docs/benchmarks.md).
FAMILIES = (
    Family("linear", (), Descent(learning_rate=0.05, steps=400, decay=0.1)),
    Family("MLP", (128, 128), Descent(learning_rate=0.003, steps=500, decay=0.5)),
)


class Split(NamedTuple):
    """Three fifths of the rows train, one chooses, one judges."""

    train: Int[Any, "*splits train"]
    choose: Int[Any, "*splits choose"]
    judge: Int[Any, "*splits judge"]


def splits(key: PRNGKeyArray, number: int, count: int) -> Split:
    """`count` splits of so many rows, stacked; no two of them judge the same row, and at most four rows are unused."""
    fifths = generator(key).permutation(number)[: number // FIFTHS * FIFTHS].reshape(FIFTHS, -1)
    turned = np.stack([np.roll(fifths, -place, axis=0) for place in range(count)])
    return Split(train=turned[:, 2:].reshape(count, -1), choose=turned[:, 1], judge=turned[:, 0])


def descend(
    key: PRNGKeyArray,
    start: Model,
    loss: Callable[[Model, PyTree], Float[Array, " n"]],
    train: PyTree,
    choose: PyTree,
    settings: Descent,
) -> tuple[Model, Float[Array, ""]]:
    """The weights, the start included, whose mean loss on `choose` was least, and that loss.

    `train` and `choose` are trees of arrays with a row for each sample; `loss(model, rows)` is that of every row.
    """
    number = len(jax.tree.leaves(train)[0])
    size, period = settings.batch_size(number), -(-settings.steps // settings.looks)
    rate = optax.cosine_decay_schedule(settings.learning_rate, period * settings.looks)
    adam = optax.adamw(rate, weight_decay=settings.decay)

    def mean(model: Model, rows: PyTree) -> Float[Array, ""]:
        return jnp.mean(loss(model, rows))

    # One vector of all weights, or one array of all columns, is slower on a GPU (docs/benchmarks.md).
    def step(carry, batch: Int[Array, " size"]):
        model, state = carry
        # In training GPUs may round: whatever a decoder learns, its answers are judged in full precision.
        with jax.default_matmul_precision("default"):
            gradient = jax.grad(mean)(model, jax.tree.map(lambda leaf: leaf[batch], train))
        updates, state = adam.update(gradient, state, model)
        return eqx.apply_updates(model, updates), state

    found = fit_network(
        jax.random.split(key, settings.looks),
        (start, adam.init(start)),  # pyright: ignore[reportArgumentType]
        batches=lambda key_look: jax.random.randint(key_look, (period, size), 0, number),
        step=step,
        network=lambda state: state[0],
        value=lambda model: -mean(model, choose),
        include_start=True,
    )
    return found.best, -jnp.max(found.values)


def silent(key: PRNGKeyArray, inputs: int, family: Family, outputs: int) -> Layers:
    """A decoder that always answers 0."""
    return Layers(key, (inputs, *family.hidden, outputs)).silenced()


class Decoded(NamedTuple):
    """What the decoders of one family say, in nats: the mean on the choosing rows, each judging row."""

    chosen: Float[np.ndarray, " fits"]
    judged: Float[np.ndarray, "fits judge"]


class Fits:
    """Decoders of several families while they are fitted: with a GPU, the CPU is free for other work meanwhile."""

    def __init__(
        self,
        key: PRNGKeyArray,
        x: Float[Array, "n x"],
        y: Float[Array, "n d"],
        which: Int[Array, " n"],
        baselines: Float[Array, "fits rows d"],
        parts: Split,
        families: Sequence[Family] = FAMILIES,
    ):
        """A decoder's answer is added to row `which` of the baseline; rows of y are probabilities."""
        with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
            self._begun = {
                family.name: _cross_entropies(jax.random.fold_in(key, place), x, y, which, baselines, parts, family)
                for place, family in enumerate(families)
            }

    def cross_entropies(self) -> dict[str, Decoded]:
        """By family: −Σ y log ŷ, where log ŷ is the sum, normalised."""
        found = {name: Decoded(*map(np.asarray, arrays)) for name, arrays in self._begun.items()}
        for name, decoded in found.items():
            require(
                bool(np.isfinite(decoded.chosen).all()),
                rule="the loss of a decoder is finite",
                received=f"{decoded.chosen.sum()} of the {name} decoder",
                advice="measure again with another key",
            )
        return found


@partial(jax.jit, static_argnames="family")
def _cross_entropies(key, x, y, which, baselines, parts: Split, family: Family):
    def one(key: PRNGKeyArray, baseline: Float[Array, "rows d"], split: Split):
        def loss(decoder: Layers, rows) -> Float[Array, " n"]:
            seen, target, row = rows
            return optax.softmax_cross_entropy(decoder(seen) + baseline[row], target)

        train, choose, judge = ((x[rows], y[rows], which[rows]) for rows in split)
        key_start, key_fit = jax.random.split(key)
        start = silent(key_start, x.shape[1], family, y.shape[1])
        decoder, chosen = descend(key_fit, start, loss, train, choose, family.descent)
        return chosen, loss(decoder, judge)

    return on_each(one, jax.random.split(key, len(baselines)), baselines, parts)


def reading(memory: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n twice"]:
    """The columns, standardised in double precision, and their principal directions, each at deviation 1 at most."""
    columns = memory.astype(np.float64)
    columns -= columns.mean(axis=0)
    deviation = np.sqrt(np.einsum("nm,nm->m", columns, columns) / len(columns))
    deviation[(np.ptp(memory, axis=0) == 0) | (deviation == 0)] = np.inf  # what is constant becomes 0
    columns /= deviation
    variances, directions = np.linalg.eigh(columns.T @ columns / len(columns))
    faintest = max(_FAINTEST * float(variances[-1]), 1e-30)
    principal = columns @ (directions / np.sqrt(np.maximum(variances, 0) + faintest))
    return np.concatenate([columns, principal], axis=1, dtype=np.float32)


_STRENGTHS = 10.0 ** np.arange(-1, 5)  # rows of the overall moments that are added to those of each t
_SPREADS = np.array([1.0, 1.1, 1.25, 1.5, 2.0, 3.0])  # by which S may be widened: residuals on training rows are small


def checked_gaussian(belief: tuple, number: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d d"]]:
    mean, covariance = (np.asarray(part, np.float64) for part in belief) if len(belief) == 2 else (np.zeros(0),) * 2
    require(
        mean.ndim == 2 and covariance.shape == (*mean.shape, mean.shape[-1]) and len(mean) == number,
        rule=f"a belief that is a pair has means [{number}, d] and covariances [{number}, d, d]",
        received=[np.shape(part) for part in belief],
        advice="pass (means, covariances) of a Kalman filter, a row for each memory",
    )
    finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
    least = np.linalg.eigvalsh(covariance).min() if finite else np.nan
    require(
        bool(least > 0),
        rule="means are finite and covariances positive definite",
        received=f"a smallest eigenvalue of {least:g}" if finite else "NaN or infinity",
        advice="leave out what the filter knows exactly",
    )
    return mean, covariance


class _Moments(NamedTuple):
    centre: Float[np.ndarray, "times d"]
    spread: Float[np.ndarray, "times d d"]


def gaussian_cross_entropies(
    key: PRNGKeyArray,
    x: Float[Array, "n x"],
    mean: Float[np.ndarray, "n d"],
    covariance: Float[np.ndarray, "n d d"],
    times: Int[np.ndarray, " n"] | None,
    parts: Split,
):
    """Nats on the judging rows: entropies, then by baseline the baseline's, each family's, and the better family."""
    size = mean.shape[1]
    entropy = 0.5 * (np.linalg.slogdet(covariance)[1] + size * np.log(2 * np.pi * np.e))
    wheres = {"none": np.zeros(len(mean), int)} | ({} if times is None else {"time": times})
    baseline: dict[str, np.ndarray] = {}
    decoded: dict[str, dict[str, np.ndarray]] = {}
    better: dict[str, str] = {}
    for place, (name, where) in enumerate(wheres.items()):
        started = [_answered(mean, covariance, where, split) for split in _each(parts)]
        baseline[name] = np.stack([judged for _, _, judged in started])
        centres = np.stack([moments.centre[where] for moments, _, _ in started])
        shapes = np.stack([np.linalg.inv(np.linalg.cholesky(moments.spread))[where] for moments, _, _ in started])
        losses, decoded[name] = {}, {}
        for number, family in enumerate(FAMILIES):
            key_fit = jax.random.fold_in(key, place * len(FAMILIES) + number)
            read = _read(key_fit, x, mean - centres, shapes, parts, family)
            found = [
                _answered(mean, covariance, where, split, centre + answer)
                for split, centre, answer in zip(_each(parts), centres, read, strict=True)
            ]
            losses[family.name] = float(np.mean([chosen for _, chosen, _ in found]))
            decoded[name][family.name] = np.stack([judged for _, _, judged in found])
        better[name] = min(losses, key=lambda family: losses[family])
    return np.stack([entropy[judge] for judge in parts.judge]), baseline, decoded, better


def _each(parts: Split) -> list[Split]:
    return [Split(*rows) for rows in zip(*parts, strict=True)]


def _answered(
    mean: Float[np.ndarray, "n d"],
    covariance: Float[np.ndarray, "n d d"],
    where: Int[np.ndarray, " n"],
    split: Split,
    read: Float[np.ndarray, "n d"] | None = None,
) -> tuple[_Moments, float, Float[np.ndarray, " judge"]]:
    """Normal answers around what was read, or around the mean belief at each t: their moments, nats on choosing rows,
    nats of each judging row. How far moments at t are drawn to the overall ones, the choosing rows decide."""
    best = None
    for strength in _STRENGTHS if where.any() else _STRENGTHS[:1]:
        moments = _moments(mean, covariance, where, split.train, read, strength)
        for widened in _SPREADS:
            now = moments._replace(spread=moments.spread * widened)
            chosen = float(np.mean(_nats(mean, covariance, where, split.choose, now, read)))
            if best is None or chosen < best[1]:
                best = now, chosen
    assert best is not None
    return *best, _nats(mean, covariance, where, split.judge, best[0], read)


def _moments(mean, covariance, where, rows, read, strength: float) -> _Moments:
    number = int(where.max()) + 1
    overall, count = mean[rows].mean(axis=0), np.bincount(where[rows], minlength=number)[:, None] + strength
    centre = (_summed(mean[rows], where[rows], number) + strength * overall) / count
    off = mean[rows] - (centre[where[rows]] if read is None else read[rows])
    second = covariance[rows] + off[:, :, None] * off[:, None, :]
    spread = (_summed(second, where[rows], number) + strength * second.mean(axis=0)) / count[:, None]
    return _Moments(centre, spread)


def _summed(values: Float[np.ndarray, "n *d"], where: Int[np.ndarray, " n"], number: int):
    total = np.zeros((number, *values.shape[1:]))
    np.add.at(total, where, values)
    return total


def _nats(mean, covariance, where, rows, moments: _Moments, read) -> Float[np.ndarray, " rows"]:
    """−E log N(s; answer, S) over s ~ N(μ, Σ)."""
    at = where[rows]
    off = mean[rows] - (moments.centre[at] if read is None else read[rows])
    second = covariance[rows] + off[:, :, None] * off[:, None, :]
    precision, log_volume = np.linalg.inv(moments.spread), np.linalg.slogdet(2 * np.pi * moments.spread)[1]
    return 0.5 * (log_volume[at] + np.einsum("nij,nji->n", precision[at], second))


def _read(key, x, targets, shapes, parts: Split, family: Family) -> Float[np.ndarray, "splits n d"]:
    """f(h) of every row, fitted to μ − m in units of the baseline's deviations."""
    arrays = (jnp.asarray(array, jnp.float32) for array in (targets, shapes))
    keys = jax.random.split(key, len(parts.train))
    with jax.default_matmul_precision("float32"):
        return np.asarray(_fitted(keys, x, *arrays, Split(*map(jnp.asarray, parts)), family), np.float64)


@partial(jax.jit, static_argnames="family")
def _fitted(keys, x, targets, shapes, parts: Split, family: Family):
    def one(key, target: Float[Array, "n d"], shape: Float[Array, "n d d"], split: Split):
        scale = jnp.std(target, axis=0) + 1e-12

        def loss(decoder: Layers, rows) -> Float[Array, " n"]:
            seen, aim, unit = rows
            return jnp.sum(jnp.einsum("nij,nj->ni", unit, aim - scale * decoder(seen)) ** 2, axis=1) / 2

        train, choose = ((x[rows], target[rows], shape[rows]) for rows in split[:2])
        key_start, key_fit = jax.random.split(key)
        start = silent(key_start, x.shape[1], family, target.shape[1])
        decoder, _ = descend(key_fit, start, loss, train, choose, family.descent)
        return scale * decoder(x)

    return on_each(one, keys, targets, shapes, parts)
