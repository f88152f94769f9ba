"""The bounds against their formulas in double precision and known information; the bootstrap against a closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax

from beliefscope.information import bounds
from beliefscope.information.bounds import (
    LN2,
    NWJ,
    SMILE,
    START,
    DonskerVaradhan,
    InfoNCE,
    Samples,
    Scores,
    bootstrap_error,
    score,
)
from beliefscope.information.networks import Layers, SetCritic, VectorCritic

BOUNDS = [DonskerVaradhan(), NWJ(), SMILE(), InfoNCE()]
by_name = pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
RNG = np.random.default_rng(0)

bits_of = jax.jit(lambda bound, scores: bound.bits(scores), static_argnums=0)
gradient_of = jax.jit(lambda bound, *arguments: bound.gradient(*arguments), static_argnums=0)
each_pair = jax.jit(
    jax.vmap(jax.value_and_grad(lambda critic, x, y: critic(x[None], y[None])[0]), in_axes=(None, 0, 0))
)


def tiny_critic(scale):
    """Five hidden units, whose scores are large enough for exponentials to matter."""
    key = jax.random.key(0)
    critic = eqx.tree_at(lambda c: c.layers, VectorCritic(key, 1, 1), Layers(key, (2, 5, 1)))
    return jax.tree.map(lambda leaf: scale * leaf, critic)


def batch(number, *shape):
    return jnp.asarray(RNG.normal(size=(number, *shape)), jnp.float32)


def random_scores(number, num_shuffles, scale):
    joint, product = scale * RNG.normal(size=number) + 1, scale * RNG.normal(size=(num_shuffles, number))
    return Scores(joint.astype(np.float32), product.astype(np.float32))


def weighted(gradients, weights):
    """Σ weight · gradient of a pair, in double precision."""
    return jax.tree.map(lambda leaf: np.tensordot(weights, np.asarray(leaf, np.float64), 1), gradients)


def assert_close(ours, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, expected)


# What a bound's gradient gives to ∇T of a pair, and takes for ∇T of a shuffled pair. The average is that of e^T.
WEIGHTS = {
    "MINE": (lambda t: np.ones_like(t), lambda t, average: np.exp(t) / average),
    "NWJ": (lambda t: np.ones_like(t), lambda t, average: np.exp(t - 1)),
    "SMILE": (lambda t: expit(-t), lambda t, average: expit(t)),
}


@pytest.mark.parametrize("bound", [DonskerVaradhan(), DonskerVaradhan(rate=0.3), NWJ(), SMILE()], ids=str)
def test_the_gradient_is_its_definition_pair_by_pair_over_three_batches(bound):
    """G = mean_p(u ∇T) − mean_q(d ∇T); MINE's moving average of e^T starts at the first batch's mean."""
    critic, average, carry = tiny_critic(2.0), None, jnp.asarray(START)
    up, down = WEIGHTS[bound.name]
    for _ in range(3):
        pairs, product = Samples(batch(6, 1), batch(6, 1)), Samples(3 * batch(6, 1), 3 * batch(6, 1))
        joint, joint_gradients = each_pair(critic, *pairs)
        shuffled, shuffled_gradients = each_pair(critic, *product)
        joint, shuffled = np.asarray(joint, np.float64), np.asarray(shuffled, np.float64)
        mean = np.mean(np.exp(shuffled))
        if bound.name == "MINE":
            average = mean if average is None else (1 - bound.rate) * average + bound.rate * mean
        gradient, carry = gradient_of(bound, critic, pairs, product, carry)
        expected = jax.tree.map(
            np.subtract,
            weighted(joint_gradients, up(joint) / 6),
            weighted(shuffled_gradients, down(shuffled, average) / 6),
        )
        assert_close(gradient, expected)
        if average is None:
            assert carry == START
        else:
            np.testing.assert_allclose(np.exp(carry), average, rtol=1e-5)


@pytest.fixture(scope="module", params=["vectors", "sets"])
def crossed(request):
    """Five pairs, the scores T of every x with every y of them, and ∇T of these 25."""
    sets = request.param == "sets"
    critic = SetCritic(jax.random.key(0), 1, 1) if sets else tiny_critic(2.0)
    samples = Samples(batch(5, 1), batch(5, 3, 1) if sets else batch(5, 1))
    scores, gradients = each_pair(critic, jnp.repeat(samples.x, 5, axis=0), jnp.concatenate([samples.y] * 5))
    return critic, samples, np.asarray(scores, np.float64).reshape(5, 5), gradients


def test_the_gradient_of_info_nce_is_its_definition_over_every_x_with_every_y(crossed):
    """Σ_i ∇T(x_i, y_i) − Σ_j softmax_j T(x_i, y_j) ∇T(x_i, y_j), over the batch's size."""
    critic, samples, table, gradients = crossed
    product = samples._replace(y=samples.y[::-1])
    gradient, carry = gradient_of(InfoNCE(), critic, samples, product, jnp.asarray(START))
    assert_close(gradient, weighted(gradients, (np.eye(5) - softmax(table, axis=1)).ravel() / 5))
    assert carry == START


def test_scores_are_those_of_each_pair_and_do_not_depend_on_how_many_are_scored_together(crossed, monkeypatch):
    critic, samples, table, _ = crossed
    orders = np.stack([RNG.permutation(5) for _ in range(3)])
    for number in (2, 1000):
        monkeypatch.setattr(bounds, "_AT_ONCE", number)
        scores = score(critic, samples, jnp.asarray(orders))
        np.testing.assert_allclose(scores.joint, np.diagonal(table), atol=1e-6)
        np.testing.assert_allclose(scores.product, table[np.arange(5), orders], atol=1e-6)


def test_a_critic_whose_scores_overflow_still_has_a_finite_gradient_and_bound():
    critic = tiny_critic(100.0)
    pairs, product = Samples(batch(6, 1), batch(6, 1)), Samples(3 * batch(6, 1), 3 * batch(6, 1))
    gradient, carry = gradient_of(DonskerVaradhan(), critic, pairs, product, jnp.asarray(START))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((gradient, carry)))
    joint, shuffled = (each_pair(critic, *samples)[0] for samples in (pairs, product))
    assert np.max(shuffled) > 100  # e^89 is beyond single precision
    for bound in (DonskerVaradhan(), SMILE(), InfoNCE()):
        assert np.isfinite(bits_of(bound, Scores(joint, shuffled[None])))


def exact_bits(name, joint, product):
    mean = np.mean(joint)
    return {
        "MINE": mean - np.log(np.mean(np.exp(product))),
        "NWJ": mean - np.mean(np.exp(product)) / np.e,
        "SMILE": mean - np.log(np.mean(np.clip(np.exp(product), np.exp(-5), np.exp(5)))),
        "InfoNCE": np.mean(joint - logsumexp(np.vstack([joint, product]), axis=0) + np.log(len(product) + 1)),
    }[name] / np.log(2)


@by_name
def test_the_bits_are_the_formula(bound):
    """The scores reach beyond ±5, so that the clip of SMILE matters."""
    for scores in (random_scores(50, 3, 1.0), random_scores(50, 3, 4.0)):
        expected = exact_bits(bound.name, *(np.asarray(part, np.float64) for part in scores))
        np.testing.assert_allclose(bits_of(bound, scores), expected, rtol=1e-5, atol=1e-6)
    assert np.max(np.abs(scores.product)) > 5


@by_name
def test_a_critic_that_tells_nothing_apart_proves_no_bits(bound):
    """The same score everywhere; that of NWJ must be 1."""
    scores = Scores(np.ones(50, np.float32), np.ones((3, 50), np.float32))
    assert bits_of(bound, scores) == pytest.approx(0, abs=1e-6)


def test_a_perfect_critic_gives_info_nce_its_ceiling():
    """Equal scores of all pairs, far above those of the shuffled pairs."""
    scores = Scores(np.full(50, 40, np.float32), np.full((7, 50), -40, np.float32))
    assert bits_of(InfoNCE(), scores) == pytest.approx(np.log2(7 + 1), abs=1e-6)
    assert InfoNCE().ceiling(10_000, 8) == np.log2(8)
    assert InfoNCE().num_shuffles(8) == 7


@pytest.mark.parametrize("bound", BOUNDS[:3], ids=lambda bound: bound.name)
def test_the_other_bounds_are_believed_up_to_the_logarithm_of_the_samples(bound):
    assert bound.ceiling(10_000, 8) == np.log2(10_000)
    assert bound.num_shuffles(8) == 1


@by_name
@pytest.mark.parametrize("bits", [0.5, 1.0])
def test_the_log_density_ratio_of_gaussians_has_their_information(bound, bits):
    """The best critic of all four; NWJ wants one more. InfoNCE has 63 shuffles: 6 bits at most."""
    number, num_shuffles = (4000, 63) if bound.name == "InfoNCE" else (100_000, 2)
    square = 1 - 2 ** (-2 * bits)
    x, noise = np.random.default_rng(1).normal(size=(2, number))
    y = np.sqrt(square) * x + np.sqrt(1 - square) * noise

    def log_ratio(y):
        quadratic = square * x**2 - 2 * np.sqrt(square) * x * y + square * y**2
        return bits * np.log(2) - quadratic / (2 * (1 - square)) + (bound.name == "NWJ")

    product = [log_ratio(np.random.default_rng(seed).permutation(y)) for seed in range(num_shuffles)]
    scores = Scores(np.asarray(log_ratio(y), np.float32), np.asarray(product, np.float32))
    assert bits_of(bound, scores) == pytest.approx(bits, abs=0.04)


DRAW = np.random.default_rng(0)


def fold(deviation):
    """Scores of which Donsker and Varadhan's bound is the mean, in bits."""
    joint = (deviation * DRAW.normal(size=400)).astype(np.float32)
    return Scores(joint, np.zeros((2, 400), np.float32))


def error(*folds):
    return bootstrap_error(DonskerVaradhan(), folds)


def test_the_error_of_a_mean_is_the_deviation_over_the_root_of_the_number():
    scores = fold(3.0)
    assert error(scores) == pytest.approx(np.std(scores.joint) / 20 / LN2, rel=0.15)


def test_the_error_of_a_mean_over_folds_adds_their_variances():
    folds = [fold(1.0), fold(2.0)]
    expected = np.sqrt(sum(np.var(scores.joint) / 400 for scores in folds)) / 2 / LN2
    assert error(*folds) == pytest.approx(expected, rel=0.15)


def test_a_pair_is_drawn_with_its_shuffled_scores():
    """Here both are the same numbers, so that what InfoNCE compares never varies."""
    joint = fold(3.0).joint
    assert bootstrap_error(InfoNCE(), [Scores(joint, np.tile(joint, (2, 1)))]) == pytest.approx(0, abs=1e-6)


def test_the_same_scores_always_have_the_same_error():
    scores = fold(1.0)
    assert error(scores) == error(scores)
