"""The paper's estimator: its gradient against the definition, its bound against known information."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.critics import SetCritic, VectorCritic
from beliefscope.information.mine import FitSettings, Samples, corrected_gradient, donsker_varadhan, fit

fit_critic = jax.jit(fit, static_argnums=3)
bound = jax.jit(donsker_varadhan, static_argnames="chunk")
step_gradient = jax.jit(corrected_gradient, static_argnames="rate")
score = jax.jit(lambda critic, x, y: critic(x, y))


def gaussian_pairs(seed: int, number: int, correlation: float) -> Samples:
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, number, 1))
    return Samples(
        jnp.asarray(x, jnp.float32), jnp.asarray(correlation * x + (1 - correlation**2) ** 0.5 * noise, jnp.float32)
    )


def shuffles(seed: int, count: int, number: int) -> jax.Array:
    rng = np.random.default_rng(seed)
    return jnp.asarray(np.stack([rng.permutation(number) for _ in range(count)]))


def test_the_corrected_gradient_is_its_definition_over_three_batches():
    """G = mean_p ∇T − mean_q(e^T ∇T) / average, pair by pair, with the average started at the first batch's mean."""
    critic = VectorCritic(jax.random.key(0), 1, 1)
    one = jax.jit(jax.value_and_grad(lambda critic, x, y: critic(x, y)))
    average, log_average = None, jnp.asarray(-jnp.inf)
    for batch in range(3):
        pairs = gaussian_pairs(batch, 6, 0.8)
        product = Samples(gaussian_pairs(batch + 10, 6, 0.0).x * 3, gaussian_pairs(batch + 20, 6, 0.0).y * 3)
        exponentials = [np.exp(float(one(critic, x, y)[0])) for x, y in zip(*product, strict=True)]
        mean = np.mean(exponentials)
        average = mean if average is None else 0.99 * average + 0.01 * mean
        up = [one(critic, x, y)[1] for x, y in zip(*pairs, strict=True)]
        down = [one(critic, x, y)[1] for x, y in zip(*product, strict=True)]
        gradient, log_average = step_gradient(critic, pairs, product, log_average, rate=0.01)
        np.testing.assert_allclose(np.exp(log_average), average, rtol=1e-5)
        for name in ("weights", "biases"):
            for layer in range(3):
                ours = getattr(gradient.layers, name)[layer]
                ups = np.mean([getattr(g.layers, name)[layer] for g in up], axis=0)
                weighted = [e * getattr(g.layers, name)[layer] for e, g in zip(exponentials, down, strict=True)]
                np.testing.assert_allclose(ours, ups - np.mean(weighted, axis=0) / average, atol=2e-6)


def test_a_critic_whose_scores_overflow_still_has_a_finite_gradient_and_bound():
    critic = jax.tree.map(lambda leaf: 30 * leaf, VectorCritic(jax.random.key(0), 1, 1))
    pairs, product = gaussian_pairs(0, 50, 0.5), gaussian_pairs(1, 50, 0.0)
    assert float(jnp.max(score(critic, product.x, product.y))) > 100
    gradient, log_average = step_gradient(critic, pairs, product, jnp.asarray(-jnp.inf), rate=0.01)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves((gradient, log_average)))
    assert jnp.isfinite(bound(critic, pairs, shuffles(0, 2, 50)))


def test_the_bound_is_the_formula_and_does_not_depend_on_the_chunks():
    critic, samples, orders = VectorCritic(jax.random.key(1), 1, 1), gaussian_pairs(3, 100, 0.7), shuffles(1, 4, 100)
    joint = np.mean(np.asarray(score(critic, *samples), np.float64))
    product = np.mean([np.mean(np.exp(score(critic, samples.x, samples.y[order]))) for order in orders])
    for chunk in (7, 100, 1000):
        bits = bound(critic, samples, orders, chunk=chunk)
        np.testing.assert_allclose(bits, (joint - np.log(product)) / np.log(2), atol=1e-6)


@pytest.mark.parametrize(("correlation", "margin"), [(0.0, 0.03), (0.9, 0.12)])
def test_a_fit_finds_the_information_of_correlated_gaussians(correlation, margin):
    """−½ log2(1 − ρ²): 0 and 1.20 bits."""
    train, held_out, fresh = (gaussian_pairs(seed, n, correlation) for seed, n in ((0, 4096), (1, 1000), (2, 8000)))
    fitted = fit_critic(jax.random.key(0), train, held_out, FitSettings(epochs=20))
    bits = bound(fitted.critic, fresh, shuffles(2, 8, 8000))
    assert abs(bits + 0.5 * np.log2(1 - correlation**2)) < margin
    assert fitted.curve.shape == (20,)
    chosen = bound(fitted.critic, held_out, shuffles(3, 8, 1000))
    assert abs(chosen - jnp.max(fitted.curve)) < 0.1


def test_the_order_of_the_particles_changes_nothing():
    critic = SetCritic(jax.random.key(0), 3, 2)
    rng = np.random.default_rng(0)
    x, sets = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32), jnp.asarray(rng.normal(size=(4, 20, 2)), jnp.float32)
    shuffled = jnp.stack([one[rng.permutation(20)] for one in sets])
    np.testing.assert_allclose(score(critic, x, sets), score(critic, x, shuffled), rtol=1e-5)
    assert not np.allclose(score(critic, x, sets), score(critic, x, sets[::-1]), rtol=1e-3)


def test_the_deep_set_is_the_formula():
    """μ(x, ρ(Σ ψ(s))) with ψ: 2 → 32 → 64 → 16 and ρ linear, written out."""
    critic = SetCritic(jax.random.key(1), 3, 2)
    rng = np.random.default_rng(1)
    x, particles = rng.normal(size=3).astype(np.float32), rng.normal(size=(5, 2)).astype(np.float32)

    def forward(layers, value):
        for number, (weights, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
            value = (np.maximum(value, 0) if number else value) @ np.asarray(weights) + np.asarray(bias)
        return value

    assert [w.shape for w in critic.psi.weights] == [(2, 32), (32, 64), (64, 16)]
    assert [w.shape for w in critic.rho.weights] == [(16, 16)]
    assert [w.shape for w in critic.mu.layers.weights] == [(19, 256), (256, 256), (256, 1)]
    embedded = forward(critic.rho, sum(forward(critic.psi, s) for s in particles))
    expected = forward(critic.mu.layers, np.concatenate([x, embedded]))[0]
    np.testing.assert_allclose(score(critic, jnp.asarray(x), jnp.asarray(particles)), expected, rtol=1e-5)
