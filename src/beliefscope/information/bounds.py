"""Bounds on mutual information: the objective of a critic T, and the value computed from its scores.

p are the pairs, q the same pairs shuffled. Each bound has the gradient that a critic climbs, from a batch of p and one
of q, and its value in bits from the scores of a critic. A bound may carry one number from batch to batch, whose
logarithm is the `carry`; evaluation does not change it. `bootstrap_error` is the error of a bound over the choice of
pairs, from scores that were computed once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from beliefscope.information.networks import Critic, SetCritic, VectorCritic, on_each

_AT_ONCE = 1000  # pairs that are scored together


class Samples(NamedTuple):
    """Pairs; y is a batch of vectors or of sets."""

    x: Float[Array, "n x"]
    y: Float[Array, "n *set y"]


class Scores(NamedTuple):
    """T of the pairs, and of the same x with the y of other pairs."""

    joint: Float[Array | np.ndarray, " n"]
    product: Float[Array | np.ndarray, "shuffles n"]


def score(critic: Critic, samples: Samples, shuffles: Int[Array, "shuffles n"]) -> Scores:
    """The scores, computed for some pairs at a time."""
    critic, samples = _embedded(critic, samples)
    product = lax.map(lambda order: _scores(critic, samples._replace(y=samples.y[order])), shuffles)
    return Scores(_scores(critic, samples), product)


def _embedded(critic: Critic, samples: Samples) -> tuple[VectorCritic, Samples]:
    """Each set is read once, whatever the number of shuffles."""
    if isinstance(critic, SetCritic):
        return critic.mu, samples._replace(y=critic.embed(samples.y))
    return critic, samples


def _scores(critic: VectorCritic, samples: Samples) -> Float[Array, " n"]:
    return lax.map(lambda pair: critic(*pair), samples, batch_size=min(_AT_ONCE, len(samples.x)))


LN2 = math.log(2)
START = -jnp.inf  # the carry before the first batch
_RESAMPLES = 200  # of the bootstrap


@runtime_checkable
class Bound(Protocol):
    """One way to bound the information from below, or nearly so."""

    @property
    def name(self) -> str: ...

    def gradient(
        self, critic: Critic, pairs: Samples, product: Samples, carry: Float[Array, ""]
    ) -> tuple[Critic, Float[Array, ""]]:
        """The direction to climb, and the new carry."""
        ...

    def bits(self, scores: Scores) -> Float[Array, ""]:
        """The value of the bound."""
        ...

    def num_shuffles(self, batch_size: int) -> int:
        """How many shuffles an evaluation needs."""
        ...

    def ceiling(self, num_samples: int, batch_size: int) -> float:
        """The largest number of bits that it can report, or report reliably."""
        ...


class _Shuffled:
    """Bounds whose q is any number of shuffles. With N samples they cannot prove more than log2 N bits."""

    def num_shuffles(self, batch_size: int) -> int:
        return 1

    def ceiling(self, num_samples: int, batch_size: int) -> float:
        return math.log2(num_samples)


@dataclass(frozen=True)
class DonskerVaradhan(_Shuffled):
    """E_p[T] − log E_q[e^T], the bound of MINE (Belghazi et al., 2018).

    Its plain gradient on a batch is biased, because the batch's mean is inside a logarithm. The corrected gradient
    divides by a moving average of the batches' means of e^T instead, which starts with the first batch.
    """

    rate: float = 0.01  # of the moving average
    name: str = "MINE"

    def gradient(self, critic, pairs, product, carry):
        """∇ mean_p T − mean_q(e^T ∇T) / average. All of it is in logarithms: e^T overflows."""
        number = len(pairs.x)
        # Both batches in one pass, which is cheaper than two of half the size.
        both = Samples(*(jnp.concatenate(part) for part in zip(pairs, product, strict=True)))
        scores, back = jax.vjp(lambda critic: critic(both.x, both.y), critic)
        batch = log_mean_exp(scores[number:])
        moved = jnp.logaddexp(jnp.log1p(-self.rate) + carry, jnp.log(self.rate) + batch)
        carry = jnp.where(jnp.isneginf(carry), batch, moved)
        up, down = jnp.full(number, 1 / number), -jnp.exp(scores[number:] - carry) / number
        return back(jnp.concatenate([up, down]))[0], carry

    def bits(self, scores):
        return (jnp.mean(scores.joint) - log_mean_exp(scores.product)) / LN2


@dataclass(frozen=True)
class NWJ(_Shuffled):
    """E_p[T] − E_q[e^(T − 1)] (Nguyen, Wainwright, Jordan, 2010): a bound for any N, of large variance."""

    name: str = "NWJ"

    def gradient(self, critic, pairs, product, carry):
        def value(critic):
            return jnp.mean(critic(pairs.x, pairs.y)) - jnp.mean(jnp.exp(critic(product.x, product.y) - 1))

        return jax.grad(value)(critic), carry

    def bits(self, scores):
        return (jnp.mean(scores.joint) - jnp.mean(jnp.exp(scores.product - 1))) / LN2


@dataclass(frozen=True)
class SMILE(_Shuffled):
    """Donsker–Varadhan with e^T clipped in E_q (Song, Ermon, 2020): little variance, but no longer a strict bound.

    The critic is that of the Jensen–Shannon objective, whose optimum is the log density ratio.
    """

    clip: float = 5.0  # τ: e^T is held between e^−τ and e^τ
    name: str = "SMILE"

    def gradient(self, critic, pairs, product, carry):
        def value(critic):
            joint, shuffled = critic(pairs.x, pairs.y), critic(product.x, product.y)
            return -jnp.mean(jax.nn.softplus(-joint)) - jnp.mean(jax.nn.softplus(shuffled))

        return jax.grad(value)(critic), carry

    def bits(self, scores):
        clipped = jnp.clip(scores.product, -self.clip, self.clip)
        return (jnp.mean(scores.joint) - log_mean_exp(clipped)) / LN2


@dataclass(frozen=True)
class InfoNCE:
    """E[log e^T(x, y) / mean_j e^T(x, y_j)] over the y_j of a batch (van den Oord et al., 2018): at most log2 batch.

    A critic must score every x of a batch with every y, so that batches are small.
    """

    name: str = "InfoNCE"

    def gradient(self, critic, pairs, product, carry):
        def value(critic):
            table = _all_pairs(critic, pairs)
            return jnp.mean(jnp.diagonal(table) - jax.nn.logsumexp(table, axis=1))

        return jax.grad(value)(critic), carry

    def bits(self, scores):
        table = jnp.concatenate([scores.joint[None], scores.product])
        return jnp.mean(scores.joint - jax.nn.logsumexp(table, axis=0) + math.log(len(table))) / LN2

    def num_shuffles(self, batch_size: int) -> int:
        return batch_size - 1

    def ceiling(self, num_samples: int, batch_size: int) -> float:
        return math.log2(batch_size)


def log_mean_exp(scores: Float[Array, "*n"]) -> Float[Array, ""]:
    return jax.nn.logsumexp(scores) - math.log(scores.size)


def _all_pairs(critic: Critic, samples: Samples) -> Float[Array, "n n"]:
    x, y = samples
    if isinstance(critic, SetCritic):
        critic, y = critic.mu, critic.embed(y)
    shape = (len(x), len(x))
    return critic(jnp.broadcast_to(x[:, None], (*shape, x.shape[1])), jnp.broadcast_to(y[None], (*shape, y.shape[1])))


def bootstrap_error(bound: Bound, folds: Sequence[Scores]) -> float:
    """The deviation of the bound's mean over the folds when the pairs of each are resampled with replacement.

    It is the sampling error given the critic. It includes neither the bias nor the variation between fits.
    """
    spread = [np.std(_values(bound, fold, _drawn(seed, len(fold.joint))), ddof=1) for seed, fold in enumerate(folds)]
    return float(np.sqrt(np.sum(np.square(spread)))) / len(folds)


@cache
def _drawn(seed: int, number: int) -> Int[Array, "resamples n"]:
    """The pairs of each resample: the same for all estimates, so that they are drawn and sent to a GPU once."""
    return jax.device_put(np.random.default_rng(seed).integers(number, size=(_RESAMPLES, number), dtype=np.int32))


@partial(jax.jit, static_argnums=0)
def _values(bound: Bound, scores: Scores, drawn: Int[Array, "resamples n"]) -> Float[Array, " resamples"]:
    return on_each(lambda rows: bound.bits(Scores(scores.joint[rows], scores.product[:, rows])), drawn)
