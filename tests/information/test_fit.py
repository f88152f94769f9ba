"""The fit of a critic: what chooses never trains, and what is found is the known information."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.bounds import DonskerVaradhan, Samples, score
from beliefscope.information.neural import FitSettings, fit, shuffled_orders

KEY = jax.random.key(0)
SMALL = FitSettings(epochs=3, batch_size=64)
fit_critic = jax.jit(fit, static_argnames=("bound", "settings"))
all_scores = jax.jit(score)
orders_of = jax.jit(shuffled_orders, static_argnums=(1, 2))


def gaussian_pairs(seed: int, number: int, correlation: float) -> Samples:
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, number, 1))
    return Samples(
        jnp.asarray(x, jnp.float32), jnp.asarray(correlation * x + (1 - correlation**2) ** 0.5 * noise, jnp.float32)
    )


def bits(critic, samples, num_shuffles):
    rng = np.random.default_rng(9)
    orders = jnp.asarray(np.stack([rng.permutation(len(samples.x)) for _ in range(num_shuffles)]))
    return float(DonskerVaradhan().bits(all_scores(critic, samples, orders)))


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def test_held_out_pairs_choose_the_epoch_and_never_train():
    """Where the held-out pairs are like the training pairs the last epoch is best, where they are opposite the first.

    The weights after the last epoch are bit for bit the same: neither they nor what the bound carries know of it.
    """
    train = gaussian_pairs(0, 256, 0.9)
    like, opposite = (
        fit_critic(KEY, train, gaussian_pairs(1, 100, sign * 0.9), bound=DonskerVaradhan(), settings=SMALL)
        for sign in (1, -1)
    )
    assert same(like.last, opposite.last)
    assert np.argmax(like.curve) == 2
    assert same(like.critic, like.last)
    assert np.argmax(opposite.curve) == 0
    assert not same(opposite.critic, opposite.last)
    assert like.curve.shape == (3,)


def test_another_key_gives_another_fit():
    train, held_out = gaussian_pairs(0, 256, 0.9), gaussian_pairs(1, 100, 0.9)
    fits = [
        fit_critic(jax.random.key(seed), train, held_out, bound=DonskerVaradhan(), settings=SMALL) for seed in (0, 1, 0)
    ]
    assert same(fits[0], fits[2])
    assert not same(fits[0].last, fits[1].last)
    assert not np.array_equal(fits[0].curve, fits[1].curve)


def test_shuffled_orders_are_different_permutations():
    orders = np.asarray(orders_of(KEY, 3, 50))
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(50), (3, 1)))
    assert len({tuple(order) for order in orders}) == 3


def test_every_order_is_as_likely_as_any_other():
    """Six orders of three: 6000 draws fall on each 1000 times, within four deviations."""
    orders = np.asarray(orders_of(KEY, 6000, 3))
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.max(np.abs(counts - 1000)) < 4 * np.sqrt(6000 * 5 / 36)


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "margin"), [(0.0, 0.03), (0.9, 0.12)])
def test_a_fit_finds_the_information_of_correlated_gaussians(correlation, margin):
    """−½ log2(1 − ρ²): 0 and 1.20 bits."""
    train, held_out, fresh = (gaussian_pairs(seed, n, correlation) for seed, n in ((0, 4096), (1, 1000), (2, 8000)))
    fitted = fit_critic(KEY, train, held_out, bound=DonskerVaradhan(), settings=FitSettings(epochs=20))
    assert abs(bits(fitted.critic, fresh, 8) + 0.5 * np.log2(1 - correlation**2)) < margin
    assert abs(bits(fitted.critic, held_out, 8) - np.max(fitted.curve)) < 0.1
