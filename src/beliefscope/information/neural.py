"""Neural estimators: fit a critic on one half of the pairs, evaluate the bound on the other, which it has not seen.

`MINE()` is the paper's estimator, `NWJ`, `SMILE` and `InfoNCE` the same critics with other bounds. Of the N pairs that
`estimate(key, x, y)` is given, half train (a fifth of those chooses among the epochs) and half are fresh. The paper's
N = 10,000 is that half. Sets [N, M, d] are read by a deep set.

A fit is the paper's (appendix D, algorithm 3): epochs of batches, each a step of Adam up a bound's gradient.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.information import bounds
from beliefscope.information.bounds import START, Bound, Samples, Scores, bootstrap_error, score
from beliefscope.information.interface import (
    Estimate,
    Pair,
    checked_pair,
    in_single_precision,
    is_constant,
    no_information,
)
from beliefscope.information.networks import Critic, critic_for, fit_network, on_each
from beliefscope.paper import MINE_EPOCHS
from beliefscope.warning_signs import ceiling_warning, dominated, fit_warnings


class FitSettings(NamedTuple):
    """How a critic is fitted; the defaults are the paper's."""

    epochs: int = MINE_EPOCHS["mine"]
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
    shuffles = shuffled_orders(key_shuffle, bound.num_shuffles(settings.batch_size), len(held_out.x))
    adam = optax.adam(settings.learning_rate)

    def step(state: _State, batch: Int[Array, "3 size"]) -> _State:
        joint, first, second = batch
        pairs = Samples(train.x[joint], train.y[joint])
        product = Samples(train.x[first], train.y[second])
        gradient, carry = bound.gradient(state.critic, pairs, product, state.carry)
        updates, optimiser = adam.update(jax.tree.map(jnp.negative, gradient), state.optimiser)
        return _State(eqx.apply_updates(state.critic, updates), optimiser, carry)

    found = fit_network(
        jax.random.split(key_epochs, settings.epochs),
        _State(critic, adam.init(critic), jnp.asarray(START)),  # pyright: ignore[reportArgumentType]
        batches=lambda key_epoch: _batches(key_epoch, len(train.x), settings.batch_size),
        step=step,
        network=lambda state: state.critic,
        value=lambda critic: bound.bits(score(critic, held_out, shuffles)),
        include_start=False,
    )
    return Fit(found.best, found.values, found.last.critic)


def _batches(key: PRNGKeyArray, number: int, size: int) -> Int[Array, "steps 3 size"]:
    """One pass over the pairs: batches of the joint distribution, and of the product by two more permutations."""
    return shuffled_orders(key, 3, number)[:, : number // size * size].reshape(3, -1, size).swapaxes(0, 1)


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


PAPER = FitSettings()
_HELD_OUT = 5  # one in so many training pairs chooses among the epochs


@dataclass(frozen=True)
class NeuralEstimator:
    """A bound, a fit, and what the bound is evaluated on."""

    bound: Bound
    settings: FitSettings = PAPER
    printed: bool = False  # bits of the last weights on the very pairs that trained them

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]."""
        return self.estimate_each([key], [x], [y])[0]

    def estimate_each(self, keys: Sequence[PRNGKeyArray], xs: Sequence[Any], ys: Sequence[Any]) -> list[Estimate]:
        """Many measurements of one shape as one program: on CPU one after the other, on GPU side by side."""
        require(
            len(keys) == len(xs) == len(ys) > 0,
            rule="each measurement of a batch has a key, an x and a y",
            received=(len(keys), len(xs), len(ys)),
            advice="pass three lists of one length",
        )
        pairs = [checked_pair(x, y, sets_allowed=True) for x, y in zip(xs, ys, strict=True)]
        self._check(pairs)
        xs, ys = (
            [jnp.asarray(in_single_precision(name, part)) for part in parts]
            for name, parts in zip("xy", zip(*pairs, strict=True), strict=True)
        )
        with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
            scores, curves = _measure(self, jnp.stack([fast_key(key) for key in keys]), jnp.stack(xs), jnp.stack(ys))
        joint, product = map(np.asarray, scores)
        return [self._report(*one) for one in zip(pairs, joint, product, np.asarray(curves), strict=True)]

    @property
    def name(self) -> str:
        if self.printed:
            return f"{self.bound.name} on its own training pairs, {self.settings.epochs} epochs"
        return f"{self.bound.name}, {self.settings.epochs} epochs, fresh pairs"

    def _check(self, pairs: list[Pair]) -> None:
        shapes = {(pair.x.shape, pair.y.shape) for pair in pairs}
        require(
            len(shapes) == 1,
            rule="measurements in one batch have arrays of one shape",
            received=sorted(shapes),
            advice="measure those of different shapes apart",
        )
        number, size = len(pairs[0].x), self.settings.batch_size
        least = size if self.printed else 2 * -(-size * _HELD_OUT // (_HELD_OUT - 1))
        require(
            number >= least,
            rule=f"batches of {size} pairs need at least {least} pairs"
            + ("" if self.printed else ": half of them train, less a fifth, and half are fresh"),
            received=number,
            advice="measure on more pairs, or choose a smaller batch_size",
        )
        if self.printed:
            warnings.warn(
                f"{self.name}: a critic that is evaluated on its own training pairs overfits, and reports bits where "
                "there are none.",
                stacklevel=4,
            )

    def _report(self, pair: Pair, joint: np.ndarray, product: np.ndarray, curve: np.ndarray) -> Estimate:
        number, particles = len(pair.x), pair.y.shape[1] if pair.y.ndim == 3 else None
        ceiling = self.bound.ceiling(len(joint), self.settings.batch_size)
        if is_constant(pair.x) or is_constant(pair.y):
            return no_information(number, particles, self.name, ceiling)
        scores = Scores(joint, product)
        bits = float(_value(self.bound, scores))
        doubts = () if self.printed else fit_warnings(bits, curve)
        if isinstance(self.bound, bounds.DonskerVaradhan):
            doubts += dominated(product)
        return Estimate(
            bits=bits,
            standard_error=bootstrap_error(self.bound, [scores]),
            num_samples=number,
            num_particles=particles,
            estimator=self.name,
            ceiling=ceiling,
            curve=curve,
            warnings=doubts + ceiling_warning(bits, ceiling),
        )


def MINE(variant: Literal["text", "code", "printed"] = "text") -> NeuralEstimator:
    """The paper's estimator: `text` with 200 epochs, `code` with the 100 of the authors' code, both on fresh pairs.

    `printed` is the algorithm as printed: no held-out choice, bits on the training pairs. It overfits, and says so.
    """
    require(
        variant in ("text", "code", "printed"),
        rule="MINE has the variants 'text', 'code' and 'printed'",
        received=variant,
        advice="'text' is the paper's setting with the authors' held-out choice and fresh pairs",
    )
    epochs = MINE_EPOCHS["mine-authors" if variant == "code" else "mine"]
    return NeuralEstimator(bounds.DonskerVaradhan(), FitSettings(epochs=epochs), printed=variant == "printed")


def NWJ() -> NeuralEstimator:
    """The paper's critic and schedule with the bound of Nguyen, Wainwright and Jordan."""
    return NeuralEstimator(bounds.NWJ())


def SMILE() -> NeuralEstimator:
    """The paper's critic and schedule with the clipped bound of Song and Ermon, τ = 5."""
    return NeuralEstimator(bounds.SMILE())


def InfoNCE() -> NeuralEstimator:
    """The paper's critic with InfoNCE in batches of 128, so at most 7 bits; 20 epochs, each as costly as 70 of MINE."""
    return NeuralEstimator(bounds.InfoNCE(), FitSettings(epochs=20, batch_size=128))


@partial(jax.jit, static_argnums=0)
def _value(bound: Bound, scores: Scores) -> Float[Array, ""]:
    return bound.bits(scores)


@partial(jax.jit, static_argnums=0)
def _measure(
    estimator: NeuralEstimator,
    keys: Key[Array, " fits"],
    xs: Float[Array, "fits n x"],
    ys: Float[Array, "fits n *set y"],
) -> tuple[Scores, Float[Array, "fits epochs"]]:
    """The scores of the pairs to evaluate on, of their shuffles, and the curve."""
    return on_each(partial(_fit_and_score, estimator), keys, xs, ys)


def _fit_and_score(
    estimator: NeuralEstimator, key: PRNGKeyArray, x: Float[Array, "n x"], y: Float[Array, "n *set y"]
) -> tuple[Scores, Float[Array, " epochs"]]:
    key_fit, key_shuffle = jax.random.split(key)
    half = len(x) if estimator.printed else len(x) // 2
    choosing = half - half // _HELD_OUT
    train, held_out = (
        Samples(x[a:b], y[a:b]) for a, b in ((0, half if estimator.printed else choosing), (choosing, half))
    )
    judged = train if estimator.printed else Samples(x[half:], y[half:])
    found = fit(key_fit, train, held_out, bound=estimator.bound, settings=estimator.settings)
    critic = found.last if estimator.printed else found.critic
    count = estimator.bound.num_shuffles(estimator.settings.batch_size)
    return score(critic, judged, shuffled_orders(key_shuffle, count, len(judged.x))), found.curve
