"""Resampling: unbiased, faithful to zero weights, and equal to an implementation from elsewhere."""

import blackjax.smc.resampling as oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.belief import multinomial, systematic

SCHEMES = {"multinomial": multinomial, "systematic": systematic}


def counts(scheme, weights, draws):
    keys = jax.random.split(jax.random.key(0), draws)
    ancestors = jax.jit(jax.vmap(scheme, (0, None)))(keys, jnp.asarray(weights, jnp.float32))
    return np.asarray(jax.vmap(lambda chosen: jnp.bincount(chosen, length=len(weights)))(ancestors))


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("size", [2, 7, 32, 33, 100])
def test_each_particle_is_drawn_as_often_as_its_weight_says(name, size):
    weights = np.random.default_rng(size).dirichlet(np.full(size, 0.3))
    drawn = counts(SCHEMES[name], weights, 4000)
    noise = np.sqrt(size * weights * (1 - weights) / 4000)
    np.testing.assert_allclose(drawn.mean(0), size * weights, atol=5 * noise.max() + 1e-3)
    assert (drawn.sum(1) == size).all()


def test_systematic_counts_are_rounded_up_or_down():
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    drawn = counts(systematic, weights, 500)
    assert (drawn >= np.floor(50 * weights - 1e-4)).all()
    assert (drawn <= np.ceil(50 * weights + 1e-4)).all()


def test_systematic_spreads_less_than_multinomial():
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    spread = {name: counts(scheme, weights, 2000).var(0).sum() for name, scheme in SCHEMES.items()}
    assert spread["systematic"] < 0.5 * spread["multinomial"]
    truth = (50 * weights * (1 - weights)).sum()
    assert spread["multinomial"] == pytest.approx(truth, rel=0.05)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 64), min_size=40, max_size=40).filter(any), st.integers(0, 1000))
def test_systematic_draws_what_blackjax_draws(grains, seed):
    """With weights of few binary digits both compute the same levels without rounding, up to ties."""
    grains = np.array(grains) / sum(grains)
    weights = jnp.asarray(np.round(grains * 2**12) / 2**12, jnp.float32)
    weights = weights.at[jnp.argmax(weights)].add(1 - weights.sum())
    key = jax.random.key(seed)
    np.testing.assert_array_equal(systematic(key, weights), oracle.systematic(key, weights, 40))


@pytest.mark.parametrize("name", SCHEMES)
def test_a_particle_of_weight_zero_is_never_drawn(name):
    """Blocks of zeros between weights whose plain running sum in single precision is not monotonic."""
    weights = np.random.default_rng(1).random(1000) ** 8
    weights[np.random.default_rng(2).random(1000) < 0.5] = 0
    drawn = counts(SCHEMES[name], weights / weights.sum(), 2000)
    assert drawn[:, weights == 0].sum() == 0
