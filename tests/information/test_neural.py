"""The neural estimators and their fit: what they promise, what they refuse, what they find where the truth is known."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from information.samples import samples

from beliefscope.information import KSG, MINE, NWJ, SMILE, Estimate, Estimator, Gaussian, InfoNCE, NeuralEstimator
from beliefscope.information import bounds as bound_of
from beliefscope.information.bounds import DonskerVaradhan, Samples, score
from beliefscope.information.neural import FitSettings, fit, shuffled_orders

KEY = jax.random.key(0)
TINY = FitSettings(epochs=2, batch_size=64)
SMALL_MINE = NeuralEstimator(bound_of.DonskerVaradhan(), TINY)
NEURAL = [
    SMALL_MINE,
    *(NeuralEstimator(bound, TINY) for bound in (bound_of.NWJ(), bound_of.SMILE(), bound_of.InfoNCE())),
]
RNG = np.random.default_rng(0)
# All quick tests share these shapes, since each estimator is compiled anew for another.
X = RNG.normal(size=(200, 2))
Y = X + RNG.normal(size=(200, 2))


def facts(estimate):
    return estimate.bits, estimate.standard_error, estimate.curve.tolist()


@pytest.mark.parametrize("estimator", [KSG(), Gaussian(), *NEURAL], ids=lambda e: getattr(e, "name", type(e).__name__))
def test_every_estimator_returns_a_finite_estimate_with_its_facts(estimator):
    assert isinstance(estimator, Estimator)
    estimate = estimator.estimate(KEY, X, Y)
    assert isinstance(estimate, Estimate)
    assert np.isfinite([estimate.bits, estimate.standard_error]).all()
    assert estimate.standard_error > 0
    neural = estimator in NEURAL
    assert (estimate.num_samples, estimate.num_particles) == (200, None)
    assert estimate.curve.shape == (2 if neural else 0,)
    assert estimate.estimator in str(estimate)
    assert f"N = {estimate.num_samples}" in str(estimate)
    assert estimate.shuffled is None


def test_a_fit_is_bit_identical_alone_and_in_a_batch_and_differs_with_the_key():
    keys, ys = [jax.random.key(seed) for seed in (0, 1, 2)], [Y, Y, Y[::-1]]
    together = SMALL_MINE.estimate_each(keys, [X] * 3, ys)
    for key, y, estimate in zip(keys, ys, together, strict=True):
        assert facts(SMALL_MINE.estimate(key, X, y)) == facts(estimate)
    assert together[0].bits != together[1].bits
    assert not np.array_equal(together[0].curve, together[1].curve)


def test_a_constant_memory_or_belief_has_exactly_no_information():
    for x, y in ((np.full_like(X, 0.1), Y), (X, np.full_like(Y, -3.0))):
        estimate = SMALL_MINE.estimate(KEY, x, y)
        assert (estimate.bits, estimate.standard_error, estimate.num_samples) == (0, 0, 200)


def test_sets_are_read_whatever_the_order_of_the_particles():
    sets = Y[:, None] + RNG.normal(size=(200, 5, 2))
    estimate, turned = (SMALL_MINE.estimate(KEY, X, y) for y in (sets, sets[:, ::-1]))
    assert (estimate.num_samples, estimate.num_particles) == (200, 5)
    assert "N = 200, M = 5" in str(estimate)
    assert estimate.bits == pytest.approx(turned.bits, abs=1e-4)


def test_names_say_the_bound_the_epochs_and_what_the_bits_are_read_off():
    assert MINE().name == "MINE, 200 epochs, fresh pairs"
    assert MINE("code").name == "MINE, 100 epochs, fresh pairs"
    assert MINE("printed").name == "MINE on its own training pairs, 200 epochs"
    assert NWJ().name == "NWJ, 200 epochs, fresh pairs"
    assert SMILE().name == "SMILE, 200 epochs, fresh pairs"
    assert InfoNCE().name == "InfoNCE, 20 epochs, fresh pairs"
    assert InfoNCE().bound.ceiling(10_000, InfoNCE().settings.batch_size) == 7


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (np.full_like(X, np.nan), Y, "every number in x is finite, but got '400 NaN or infinite of 400'"),
        (X, Y[:199], r"the same number of samples, one pair a row, but got \(200, 199\)"),
        (X[:159], Y[:159], "batches of 64 pairs need at least 160 pairs: half of them train.* but got 159"),
        (X[:, None], Y, r"x is a batch of vectors \[N, d\] here and not of sets"),
    ],
)
def test_bad_input_is_named_in_one_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        SMALL_MINE.estimate(KEY, x, y)
    assert "\n" not in str(error.value)


def test_measurements_of_different_shapes_are_refused_as_one_batch():
    with pytest.raises(ValueError, match="measurements in one batch have arrays of one shape, but got"):
        SMALL_MINE.estimate_each([KEY, KEY], [X, X[:160]], [Y, Y[:160]])


def test_another_variant_is_named_in_one_sentence():
    unchecked = inspect.unwrap(MINE)  # else the run-time check of types speaks first
    with pytest.raises(ValueError, match="the variants 'text', 'code' and 'printed', but got 'paper'"):
        unchecked("paper")


def test_the_printed_variant_needs_a_batch_and_warns_before_it_is_fitted():
    """Warnings are errors in these tests, so that nothing is fitted here."""
    printed = NeuralEstimator(bound_of.DonskerVaradhan(), TINY, printed=True)
    with pytest.raises(ValueError, match="batches of 64 pairs need at least 64 pairs, but got 63"):
        printed.estimate(KEY, X[:63], Y[:63])
    with pytest.raises(
        UserWarning, match="MINE on its own training pairs, 2 epochs: a critic that is evaluated on its"
    ):
        printed.estimate(KEY, X, Y)


# From here on real fits: 1000 training pairs, of which 200 choose, and 1000 fresh.
FIT = FitSettings(epochs=50, batch_size=200)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [estimator.bound for estimator in NEURAL], ids=lambda bound: bound.name)
def test_the_information_of_gaussians_is_found_and_is_gone_when_pairs_are_broken_up(bound):
    x, y = samples("Gaussian, d = 1, 1 bits", 2000)
    shuffled = np.random.default_rng(1).permutation(y)
    # InfoNCE scores every x of a batch with every y: smaller batches, and fewer epochs of more steps.
    settings = FitSettings(epochs=10, batch_size=64) if bound.name == "InfoNCE" else FIT
    found, nothing = NeuralEstimator(bound, settings).estimate_each([KEY, KEY], [x, x], [y, shuffled])
    assert found.bits == pytest.approx(1, abs=0.25)
    assert nothing.bits == pytest.approx(0, abs=0.06)


@pytest.mark.slow
def test_the_printed_variant_finds_bits_in_independent_data_and_the_others_do_not():
    x, y = np.random.default_rng(2).normal(size=(2, 2000, 16))
    printed = NeuralEstimator(bound_of.DonskerVaradhan(), FIT, printed=True)
    with pytest.warns(UserWarning, match="overfits"):
        by_heart = printed.estimate(KEY, x, y)
    assert by_heart.bits > 1
    assert by_heart.num_samples == 2000
    assert abs(NeuralEstimator(bound_of.DonskerVaradhan(), FIT).estimate(KEY, x, y).bits) < 0.1


@pytest.mark.slow
def test_a_critic_of_sets_finds_what_they_tell():
    x, y = samples("set of 100 particles, 2 bits", 2000)
    estimate = NeuralEstimator(bound_of.DonskerVaradhan(), FIT._replace(epochs=30)).estimate(KEY, x, y)
    assert 1 < estimate.bits < 2.3


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
