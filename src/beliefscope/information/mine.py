"""MINE, the paper's estimator (appendix D, algorithm 3; Belghazi et al., 2018): fit a critic, read the bound off.

The Donsker–Varadhan bound of a critic T is E_p[T] − log E_q[e^T], with p the pairs and q the same pairs shuffled. Its
plain gradient on a batch is biased, since the batch's mean stands inside a logarithm; the corrected gradient divides by
a moving average of the batches' means of e^T instead.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.information.critics import Critic, critic_for

LN2 = 0.6931471805599453


class Samples(NamedTuple):
    """Pairs; y is a batch of vectors or of sets."""

    x: Float[Array, "n x"]
    y: Float[Array, "n *set y"]


class FitSettings(NamedTuple):
    """How a critic is fitted; the defaults are the paper's."""

    epochs: int = 200
    batch_size: int = 1024
    learning_rate: float = 1e-3
    average_rate: float = 0.01  # of the moving average in the corrected gradient


class Fit(NamedTuple):
    """A fitted critic."""

    critic: Critic  # the weights of the epoch whose bound on the held-out pairs was the best
    curve: Float[Array, " epochs"]  # that bound after every epoch, in bits
    last: Critic  # the weights after the last epoch


class _State(NamedTuple):
    critic: Critic
    optimiser: optax.OptState
    log_average: Float[Array, ""]  # of the moving average of the batches' mean e^T; −∞ before the first batch


def donsker_varadhan(
    critic: Critic, samples: Samples, shuffles: Int[Array, "shuffles n"], *, chunk: int = 1000
) -> Float[Array, ""]:
    """The bound in bits, with q the samples' own shuffles.

    Scores are computed `chunk` pairs at a time, so that a batch of large sets fits in memory.
    """
    joint = _scores(critic, samples, chunk)
    shuffled = lax.map(lambda order: _scores(critic, samples._replace(y=samples.y[order]), chunk), shuffles)
    return (jnp.mean(joint) - _log_mean_exp(jnp.ravel(shuffled))) / LN2


def fit(key: PRNGKeyArray, train: Samples, held_out: Samples, settings: FitSettings) -> Fit:
    """Fit a critic on `train`; `held_out` chooses among the epochs and never trains."""
    key_init, key_epochs, key_shuffle = jax.random.split(key, 3)
    critic = critic_for(key_init, train.x, train.y)
    shuffles = jax.random.permutation(key_shuffle, len(held_out.x))[None]
    start = _State(critic, _adam(settings).init(critic), jnp.asarray(-jnp.inf))  # pyright: ignore[reportArgumentType]

    def epoch(carry, key_epoch):
        state, best, best_bits = carry
        state = _epoch(key_epoch, state, train, settings)
        bits = donsker_varadhan(state.critic, held_out, shuffles)
        better = bits > best_bits
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.critic, best)
        return (state, best, jnp.where(better, bits, best_bits)), bits

    keys = jax.random.split(key_epochs, settings.epochs)
    (state, best, _), curve = lax.scan(epoch, (start, critic, jnp.asarray(-jnp.inf)), keys)
    return Fit(best, curve, state.critic)


def _epoch(key: PRNGKeyArray, state: _State, samples: Samples, settings: FitSettings) -> _State:
    """One pass over the pairs: batches of the joint distribution, and of the product by two more permutations."""
    size, number = min(settings.batch_size, len(samples.x)), len(samples.x)
    orders = [jax.random.permutation(k, number)[: number // size * size] for k in jax.random.split(key, 3)]

    def step(state, batch):
        joint, first, second = batch
        pairs = Samples(samples.x[joint], samples.y[joint])
        product = Samples(samples.x[first], samples.y[second])
        return _ascend(state, pairs, product, settings), None

    return lax.scan(step, state, tuple(order.reshape(-1, size) for order in orders))[0]


def _ascend(state: _State, pairs: Samples, product: Samples, settings: FitSettings) -> _State:
    """One step of Adam along the corrected gradient."""
    critic, optimiser, log_average = state
    gradient, log_average = corrected_gradient(critic, pairs, product, log_average, rate=settings.average_rate)
    updates, optimiser = _adam(settings).update(jax.tree.map(jnp.negative, gradient), optimiser)
    return _State(eqx.apply_updates(critic, updates), optimiser, log_average)


def corrected_gradient(
    critic: Critic, pairs: Samples, product: Samples, log_average: Float[Array, ""], *, rate: float
) -> tuple[Critic, Float[Array, ""]]:
    """∇ mean_p T − mean_q(e^T ∇T) / average, and the logarithm of the average, which this batch has moved.

    The average starts at the first batch's mean e^T. All of it is in logarithms: e^T overflows.
    """

    joint, back_joint = jax.vjp(lambda critic: jnp.mean(critic(pairs.x, pairs.y)), critic)
    scores, back_product = jax.vjp(lambda critic: critic(product.x, product.y), critic)
    batch = _log_mean_exp(scores)
    moved = jnp.logaddexp(jnp.log1p(-rate) + log_average, jnp.log(rate) + batch)
    log_average = jnp.where(jnp.isneginf(log_average), batch, moved)
    (up,), (down,) = back_joint(jnp.ones_like(joint)), back_product(jnp.exp(scores - log_average) / scores.size)
    return jax.tree.map(jnp.subtract, up, down), log_average


def _scores(critic: Critic, samples: Samples, chunk: int) -> Float[Array, " n"]:
    return lax.map(lambda pair: critic(*pair), (samples.x, samples.y), batch_size=chunk)


def _log_mean_exp(scores: Float[Array, " n"]) -> Float[Array, ""]:
    return jax.nn.logsumexp(scores) - jnp.log(scores.size)


def _adam(settings: FitSettings) -> optax.GradientTransformation:
    return optax.adam(settings.learning_rate)
