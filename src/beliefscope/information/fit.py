"""Fits a critic to pairs (appendix D, algorithm 3): epochs of batches, each a step of Adam up a bound's gradient."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.information.bounds import START, Bound
from beliefscope.information.critics import Critic, critic_for
from beliefscope.information.scores import Samples, score


class FitSettings(NamedTuple):
    """How a critic is fitted; the defaults are the paper's."""

    epochs: int = 200
    batch_size: int = 1024
    learning_rate: float = 1e-3


class Fit(NamedTuple):
    """A fitted critic."""

    critic: Critic  # the weights of the epoch whose bound on the held-out pairs was the best
    curve: Float[Array, " epochs"]  # that bound after every epoch, in bits
    last: Critic  # the weights after the last epoch


class _State(NamedTuple):
    critic: Critic
    optimiser: optax.OptState
    carry: Float[Array, ""]  # the bound's


def fit(key: PRNGKeyArray, train: Samples, held_out: Samples, *, bound: Bound, settings: FitSettings) -> Fit:
    """Fit a critic on `train`; `held_out` chooses among the epochs and never trains."""
    key_init, key_epochs, key_shuffle = jax.random.split(key, 3)
    critic = critic_for(key_init, train.x, train.y)
    shuffles = shuffled_orders(key_shuffle, bound.num_shuffles(settings.batch_size, 1), len(held_out.x))
    start = _State(critic, _adam(settings).init(critic), jnp.asarray(START))  # pyright: ignore[reportArgumentType]

    def epoch(carry, key_epoch):
        state, best, best_bits = carry
        state = _epoch(key_epoch, state, train, bound, settings)
        bits = bound.bits(score(state.critic, held_out, shuffles))
        better = bits > best_bits
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.critic, best)
        return (state, best, jnp.where(better, bits, best_bits)), bits

    keys = jax.random.split(key_epochs, settings.epochs)
    (state, best, _), curve = lax.scan(epoch, (start, critic, jnp.asarray(-jnp.inf)), keys)
    return Fit(best, curve, state.critic)


def shuffled_orders(key: PRNGKeyArray, count: int, number: int) -> Int[Array, "count number"]:
    """`count` permutations of so many samples.

    Each round sorts numbers made of random bits and, in the lowest bits, their place: on CPU six times as fast as
    `jax.random.permutation`, which sorts places by random keys. Where bits tie, the round before decides; that any two
    samples tie in every round has, as there, a chance of at most 1/number.
    """
    low = (number - 1).bit_length()
    places = lax.broadcasted_iota(jnp.uint32, (count, number), 1)
    orders = places
    for bits in jax.random.bits(key, (math.ceil((3 * math.log2(number) - 1) / (32 - low)), count, number)):
        drawn = lax.sort((bits << low) | places) & (2**low - 1)
        orders = jnp.take_along_axis(orders, drawn, axis=1)
    return orders.astype(jnp.int32)


def _epoch(key: PRNGKeyArray, state: _State, samples: Samples, bound: Bound, settings: FitSettings) -> _State:
    """One pass over the pairs: batches of the joint distribution, and of the product by two more permutations."""
    size, number = settings.batch_size, len(samples.x)
    orders = shuffled_orders(key, 3, number)[:, : number // size * size].reshape(3, -1, size).swapaxes(0, 1)

    def step(state, batch):
        joint, first, second = batch
        pairs = Samples(samples.x[joint], samples.y[joint])
        product = Samples(samples.x[first], samples.y[second])
        gradient, carry = bound.gradient(state.critic, pairs, product, state.carry)
        updates, optimiser = _adam(settings).update(jax.tree.map(jnp.negative, gradient), state.optimiser)
        return _State(eqx.apply_updates(state.critic, updates), optimiser, carry), None

    return lax.scan(step, state, orders)[0]


def _adam(settings: FitSettings) -> optax.GradientTransformation:
    return optax.adam(settings.learning_rate)
