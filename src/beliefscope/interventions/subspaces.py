"""Directions of the memory: those of a linear decoder of the belief, their projections, and what steers.

Interchanged memories are of one step t and one observation o_t. So memories are centred on the mean of their group, all
rows of one (t, o_t), and whitened by what is left: z = A (x − mean). A direction whose deviation is below 1 % of the
largest is amplified no further, as in `information.decoders`. The decoder is a softmax of W z added to the logarithm of
the group's mean belief. Its directions are the singular vectors of W in z, after the vector that all states share has
been taken off (a softmax does not see it), each state weighed by its mean probability.

A projection in z is, in x, M = A⁻¹ V Vᵀ A: oblique, so that what is uncorrelated with the directions V stays.

What is read has an interval, as every `Score` of an intervention: episodes are resampled, not rows.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, Shaped
from scipy.special import entr, log_softmax

from beliefscope.fast_keys import generator

FAINTEST = 1e-4  # of the largest variance: 1 % of its deviation
LEAST_BITS = 0.05  # where the belief knows less than this beyond t and o_t, no share of it is given
NUMERICAL = 1e-9  # of the largest variance: below it, single precision leaves nothing but rounding
_STRENGTHS = 10.0 ** np.arange(-2, 4)  # rows of the overall mean that are added to those of each group
RIDGE, _STEPS = 0.01, 20
_ROWS_AT_ONCE = 1024
RESAMPLES = 1000
SURE = 0.95  # how much of a chosen belief is steered to; the rest is the mean belief of the group


class Score(NamedTuple):
    """A number with its 95 % interval over episodes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio_of_sums(
    above: Shaped[np.ndarray, " n"],
    below: Shaped[np.ndarray, " n"] | None,
    episode: Int[np.ndarray, " n"],
    *,
    level: float = 0.95,
) -> Score | None:
    """Σ above / Σ below (by default the number of rows), with its bootstrap interval.

    None where Σ below is 0, or a number is not known."""
    below = np.ones(len(above)) if below is None else below
    if not len(above) or below.sum() == 0 or not np.isfinite(above.sum() + below.sum()):
        return None
    number, at = np.unique(episode, return_inverse=True)
    sums = np.stack([np.bincount(at, weights=each, minlength=len(number)) for each in (above, below)])
    tops, bottoms = sums @ _resamples(len(number))
    drawn = tops[bottoms != 0] / bottoms[bottoms != 0]
    value = float(above.sum() / below.sum())
    tail = 50 * (1 - level)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Score(value, min(value, float(low)), max(value, float(high)))


@lru_cache(maxsize=8)
def _resamples(number: int) -> Float[np.ndarray, "number resamples"]:
    """How often each episode is in each resample: always the same, so that the same rows give the same interval."""
    draw = np.random.default_rng(number)
    return draw.multinomial(number, np.full(number, 1 / number), RESAMPLES).T.astype(np.float64)


class Whitening(NamedTuple):
    """z = A x and x = A⁻¹ z, for differences of memories."""

    into: Float[np.ndarray, "w w"]  # A
    back: Float[np.ndarray, "w w"]  # A⁻¹


def whitening(centred: Float[np.ndarray, "n w"], *, size: float = 0.0) -> Whitening:
    """Of rows of mean 0; `size` is the mean square of the memories, whose rounding is not amplified either."""
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    floor = FAINTEST * variances[-1] + NUMERICAL * size
    deviations = np.sqrt(np.maximum(variances, 0) + (floor if floor > 0 else 1.0))
    return Whitening((directions / deviations).T, directions * deviations)


def projection(white: Whitening, directions: Float[np.ndarray, "*batch w k"]) -> Float[np.ndarray, "*batch w w"]:
    """M = A⁻¹ V Vᵀ A of orthonormal directions V in z."""
    return white.back @ directions @ np.swapaxes(directions, -1, -2) @ white.into


def random_directions(draw: np.random.Generator, number: int, width: int, rank: int) -> Float[np.ndarray, "n w k"]:
    """Orthonormal, uniformly drawn."""
    return np.linalg.qr(draw.normal(size=(number, width, rank)))[0]


class BeliefDecoder(NamedTuple):
    """A linear decoder of the belief beyond t and o_t, and its directions."""

    white: Whitening
    weights: Float[np.ndarray, "w d"]  # W, in z
    directions: Float[np.ndarray, "w r"]  # orthonormal in z, the most important first
    rank: int  # how many of them read 99 % of what all read; the rest are noise of the fit
    means: Float[np.ndarray, "groups w"]  # the mean memory of each (t, o_t)
    baseline: Float[np.ndarray, "groups d"]  # the logarithm of the mean belief there
    available: float  # bits that the belief knows about the state beyond t and o_t
    share: Score | None  # of these bits, read from the memories of episodes that had no part in the fit

    def steering(
        self, memory: Float[np.ndarray, "n w"], group: Int[np.ndarray, " n"], belief: Float[np.ndarray, "n d"]
    ) -> Float[np.ndarray, "n w"]:
        """The least change, by its length in z, that makes the decoded belief the chosen one, in x.

        A chosen belief that excludes states would need an infinite change, so it is mixed with 5 % of the mean belief
        of its group. States are weighed by that mean: what is impossible there need not be met.
        """
        numbers, at = np.unique(group, return_inverse=True)
        mean = np.exp(self.baseline[numbers])  # [g, d]
        offcentre = self.weights[None] - (mean @ self.weights.T)[:, :, None]  # [g, w, d]
        gram = np.einsum("gwd,gd,gvd->gwv", offcentre, mean, offcentre, optimize=True)
        aimed = np.log(SURE * belief + (1 - SURE) * mean[at]) - self.baseline[group]
        wanted = aimed - self.answers(memory, group)
        pull = np.einsum("nwd,nd->nw", offcentre[at], mean[at] * wanted, optimize=True)
        change = np.einsum("nwv,nv->nw", np.linalg.pinv(gram, rcond=1e-3, hermitian=True)[at], pull)
        return change @ self.white.back.T

    def answers(self, memory: Float[np.ndarray, "n w"], group: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """What the decoder adds to the logarithm of the mean belief."""
        return (memory - self.means[group]) @ self.white.into.T @ self.weights


def fit_belief_decoder(
    key: PRNGKeyArray,
    memory: Float[np.ndarray, "n w"],
    belief: Float[np.ndarray, "n d"],
    group: Int[np.ndarray, " n"],
    episode: Int[np.ndarray, " n"],
    *,
    groups: int,
    shuffled: bool = False,
) -> BeliefDecoder:
    """Three fifths of the episodes train, one chooses how far the mean beliefs of groups are drawn to
    the overall one and how many directions count, and one judges. Groups are numbered below `groups`.

    `shuffled` exchanges beliefs within each group.
    """
    key_split, key_shuffle = jax.random.split(key)
    if shuffled:
        belief = belief[shuffled_within(generator(key_shuffle), group)]
    fifth = generator(key_split).integers(5, size=episode.max() + 1)[episode]
    train, choose, judge = np.flatnonzero(fifth >= 2), np.flatnonzero(fifth == 1), np.flatnonzero(fifth == 0)
    means = _sums(memory, group, groups) / np.maximum(np.bincount(group, minlength=groups), 1)[:, None]
    white = whitening(memory - means[group], size=float(np.mean(memory**2)))
    seen = (memory - means[group]) @ white.into.T
    baseline = _baseline(belief, group, groups, train, choose)
    with jax.default_matmul_precision("float32"):
        # Rows of zeros add nothing to the loss, and one compiled program fits many numbers of rows.
        extra = ((0, -len(train) % _ROWS_AT_ONCE), (0, 0))
        rows = (np.pad(each[train], extra) for each in (seen, belief, baseline[group]))
        weights = np.asarray(_fit(*(jnp.asarray(each, jnp.float32) for each in rows), len(train)), np.float64)
    mean = belief[train].mean(axis=0)
    weighed = (weights - (weights @ mean)[:, None]) * np.sqrt(mean)
    left = np.linalg.eigh(weighed @ weighed.T)[1][:, ::-1]  # its left singular vectors, the greatest first
    rank = _rank(seen[choose], belief[choose], baseline[group[choose]], weights, left)
    nats = _cross_entropy(belief[judge], seen[judge] @ weights + baseline[group[judge]])
    nothing = _cross_entropy(belief[judge], baseline[group[judge]])
    there = nothing - entr(belief[judge]).sum(axis=1)
    available = float(there.mean() / np.log(2))
    share = ratio_of_sums(nothing - nats, there, episode[judge]) if available >= LEAST_BITS else None
    return BeliefDecoder(white, weights, left, rank, means, baseline, available, share)


@jax.jit
def _fit(
    seen: Float[Array, "n w"], belief: Float[Array, "n d"], baseline: Float[Array, "n d"], number: Int[ArrayLike, ""]
) -> Float[Array, "w d"]:
    """W of the softmax regression with a ridge, at the minimum; the rows after the first `number` are zeros.

    Weights that start at 0 and are only pulled by rows stay in the span of the rows. Adam does not keep them there: its
    directions read the belief as well, but a swap along them is not followed.
    """
    scale = 1 / jnp.sqrt(
        jnp.maximum(jnp.sum(belief, axis=0) / number, 1e-4)
    )  # rare states learn as fast as frequent ones

    def loss(weights: Float[Array, "w d"]) -> Float[Array, ""]:
        nats = optax.softmax_cross_entropy(seen @ (weights * scale) + baseline, belief)
        return jnp.sum(nats) / number + RIDGE / 2 * jnp.sum(weights**2)

    solver = optax.lbfgs(memory_size=10)
    value_and_gradient = optax.value_and_grad_from_state(loss)

    def step(carry, _):
        weights, state = carry
        value, gradient = value_and_gradient(weights, state=state)
        updates, state = solver.update(gradient, state, weights, value=value, grad=gradient, value_fn=loss)
        return (weights + updates, state), None

    start = 0 * seen[:1].T * belief[:1]
    return lax.scan(step, (start, solver.init(start)), length=_STEPS)[0][0] * scale


def _rank(seen, belief, baseline, weights, directions) -> int:
    """The least number of directions that reads 99 % of what all read on these rows; 0 where they read nothing."""
    nothing = float(_cross_entropy(belief, baseline).mean())
    parts = directions.T @ weights
    ranks = range(1, directions.shape[1] + 1)
    read = (_cross_entropy(belief, seen @ directions[:, :k] @ parts[:k] + baseline).mean() for k in ranks)
    most = nothing - float(_cross_entropy(belief, seen @ weights + baseline).mean())
    return next((k for k, nats in zip(ranks, read, strict=True) if most > 0 and nothing - nats >= 0.99 * most), 0)


def shuffled_within(draw: np.random.Generator, group: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """A permutation of the rows that moves each within its group."""
    order = np.empty(len(group), int)
    order[np.argsort(group, kind="stable")] = np.lexsort([draw.random(len(group)), group])
    return order


def _baseline(belief, group, groups: int, train, choose) -> Float[np.ndarray, "groups d"]:
    """The logarithm of each group's mean belief, drawn to the overall mean as strongly as suits the choosing rows."""
    overall = (belief[train].sum(axis=0) + 1 / belief.shape[1]) / (len(train) + 1)
    sums, counts = (_sums(rows, group[train], groups) for rows in (belief[train], np.ones((len(train), 1))))
    tables = [np.log((sums + strength * overall) / (counts + strength)) for strength in _STRENGTHS]
    tables = [log_softmax(table, axis=1) for table in tables]
    return min(tables, key=lambda table: -float(np.sum(belief[choose] * table[group[choose]])))


def _sums(rows: Float[np.ndarray, "n w"], group: Int[np.ndarray, " n"], number: int) -> Float[np.ndarray, "g w"]:
    total = np.zeros((number, rows.shape[1]))
    np.add.at(total, group, rows)
    return total


def _cross_entropy(belief: Float[np.ndarray, "n d"], logits: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    return -np.sum(belief * log_softmax(logits, axis=1), axis=1)
