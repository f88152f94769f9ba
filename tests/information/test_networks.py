"""The critics against their formulas, written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.networks import Layers, SetCritic, VectorCritic, critic_for

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)
SETS = jnp.asarray(RNG.normal(size=(4, 20, 2)), jnp.float32)
CRITIC = SetCritic(jax.random.key(0), 3, 2)
score = jax.jit(lambda critic, x, y: critic(x, y))


def forward(layers, value):
    for number, (weights, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        value = (np.maximum(value, 0) if number else value) @ np.asarray(weights) + np.asarray(bias)
    return value


def test_the_order_of_the_particles_changes_nothing():
    shuffled = jnp.stack([one[RNG.permutation(20)] for one in SETS])
    np.testing.assert_allclose(score(CRITIC, X, SETS), score(CRITIC, X, shuffled), rtol=1e-5)
    assert not np.allclose(score(CRITIC, X, SETS), score(CRITIC, X, SETS[::-1]), rtol=1e-3)


def test_the_deep_set_is_the_formula():
    """μ(x, ρ(Σ ψ(s))) with ψ: 2 → 32 → 64 → 16 and ρ linear."""
    assert [w.shape for w in CRITIC.psi.weights] == [(2, 32), (32, 64), (64, 16)]
    assert [w.shape for w in CRITIC.rho.weights] == [(16, 16)]
    assert [w.shape for w in CRITIC.mu.layers.weights] == [(19, 256), (256, 256), (256, 1)]
    sums = np.stack([sum(forward(CRITIC.psi, s) for s in np.asarray(one)) for one in SETS])
    expected = forward(CRITIC.mu.layers, np.concatenate([X, forward(CRITIC.rho, sums)], axis=1))[:, 0]
    np.testing.assert_allclose(score(CRITIC, X, SETS), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("sets", "members"), [(5, 1), (1, 7), (7, 300), (3, 1500)])  # of 300, three at a time
def test_a_sum_over_sets_and_its_gradient_are_the_plain_ones(sets, members):
    layers = Layers(jax.random.key(0), (2, 32, 64, 16))
    given, slopes = (jnp.asarray(RNG.normal(size=size), jnp.float32) for size in ((sets, members, 2), (sets, 16)))
    found, back = jax.vjp(lambda layers: layers.sum(given), layers)
    truth, back_plain = jax.vjp(lambda layers: jnp.sum(layers(given), axis=1), layers)
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=1e-5 * members)
    for gradient, expected in zip(*map(jax.tree.leaves, (back(slopes)[0], back_plain(slopes)[0])), strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_vectors_and_sets_get_the_critic_that_reads_them():
    key = jax.random.key(0)
    assert isinstance(critic_for(key, X, X), VectorCritic)
    assert isinstance(critic_for(key, X, SETS), SetCritic)


def test_weights_start_uniform_within_one_over_the_root_of_the_inputs():
    for weights, bias in zip(CRITIC.mu.layers.weights, CRITIC.mu.layers.biases, strict=True):
        limit = len(weights) ** -0.5
        assert 0.95 * limit < np.abs(weights).max() <= limit
        assert np.abs(bias).max() <= limit
        assert np.std(weights) / (limit / 3**0.5) - 1 < 0.1
