"""The trusted estimator against known information, and against changes that must not matter."""

import inspect

import jax
import numpy as np
import pytest
from information.samples import samples

from beliefscope.information import Estimator, Trusted, known_cases

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(1003, 2))
FOUR = "Gaussian, d = 4, 2 bits"


def test_a_constant_memory_or_belief_has_exactly_no_information():
    """All pairs are scored but those that would make folds of different sizes."""
    assert isinstance(Trusted(), Estimator)
    for x, y in ((np.full((1003, 3), 0.1), ROWS), (ROWS, np.full((1003, 5, 2), 7.0))):
        estimate = Trusted().estimate(KEY, x, y)
        assert (estimate.bits, estimate.standard_error, estimate.num_samples) == (0, 0, 1000)
        assert estimate.num_particles == (5 if y.ndim == 3 else None)
        assert estimate.estimator == "trusted"


def test_a_sampler_without_information_has_none():
    estimate = Trusted().estimate_sampler(KEY, lambda key, n: (np.zeros((n, 2)), ROWS[:n]), num_samples=1000)
    assert (estimate.bits, estimate.num_samples) == (0, 1000)


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (ROWS * np.nan, ROWS, "every number in x is finite"),
        (ROWS, ROWS[:1001], r"the same number of samples, one pair a row, but got \(1003, 1001\)"),
        (ROWS[:999], ROWS[:999], "the trusted estimate needs at least 1000 pairs, but got 999"),
    ],
)
def test_bad_input_is_named_in_one_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        Trusted().estimate(KEY, x, y)
    assert "\n" not in str(error.value)


def test_a_bad_sampler_is_named_in_one_sentence():
    unchecked = inspect.unwrap(Trusted.estimate_sampler)  # else the run-time check of types speaks first
    with pytest.raises(ValueError, match=r"the number of samples is a whole number, but got 1000\.0"):
        unchecked(Trusted(), KEY, lambda key, n: (ROWS, ROWS), num_samples=1000.0)
    with pytest.raises(ValueError, match="needs at least 1000 pairs, but got 999"):
        Trusted().estimate_sampler(KEY, lambda key, n: (ROWS[:n], ROWS[:n]), num_samples=999)
    with pytest.raises(ValueError, match=r"sample\(key, 1000\) returns 1000 pairs, but got \[500, 500\]"):
        Trusted().estimate_sampler(KEY, lambda key, n: (ROWS[:500], ROWS[:500]), num_samples=1000)


# From here on real fits: one fold, which costs a fifth of five; those of five are in the tests of mutual_information.
NUMBER = 4000


def measure(x, y):
    """The first half of the rows trains, the second is judged."""
    halves = iter([(x[:NUMBER], y[:NUMBER]), (x[NUMBER:], y[NUMBER:])])
    return Trusted().estimate_sampler(KEY, lambda key, n: next(halves), num_samples=NUMBER)


@pytest.fixture(scope="module")
def measured():
    return measure(*samples(FOUR, 2 * NUMBER))


@pytest.mark.slow
def test_two_bits_of_gaussian_vectors_are_found_within_a_quarter_of_a_bit(measured):
    assert measured.bits == pytest.approx(2, abs=0.25)
    assert 0 < measured.standard_error < 0.1
    assert measured.num_samples == NUMBER
    assert measured.ceiling == pytest.approx(np.log2(NUMBER))
    assert len(measured.curve) >= 40
    assert not measured.near_ceiling


@pytest.mark.slow
def test_a_sampler_is_asked_for_two_draws_by_different_keys(measured):
    sample, keys = jax.jit(known_cases()[FOUR].sample, static_argnums=1), []

    def recorded(key, num_samples):
        keys.append(jax.random.key_data(key).tolist())
        return sample(key, num_samples)

    estimate = Trusted().estimate_sampler(KEY, recorded, num_samples=NUMBER)
    assert estimate.bits == pytest.approx(2, abs=0.25)
    assert len(keys) == 2
    assert keys[0] != keys[1]


@pytest.mark.slow
def test_independent_data_share_nothing():
    assert measure(*samples("independent, 4 and 4", 2 * NUMBER)).bits == pytest.approx(0, abs=0.05)


@pytest.mark.slow
def test_an_independent_column_of_the_memory_changes_little(measured):
    x, y = samples(FOUR, 2 * NUMBER)
    wider = np.column_stack([x, 50 * np.random.default_rng(2).normal(size=len(x))])
    assert measure(wider, y).bits == pytest.approx(measured.bits, abs=0.1)


@pytest.mark.slow
def test_growing_maps_of_the_columns_change_nothing(measured):
    """Bit for bit: the same numbers enter the fit, and the same fit comes out."""
    x, y = samples(FOUR, 2 * NUMBER)
    assert measure(np.exp(x.astype(float)), y.astype(float) ** 3).bits == measured.bits


@pytest.mark.slow
def test_sets_of_particles_are_measured_whatever_their_order():
    name, half = "set of 100 particles, 2 bits", 2000
    x, y = samples(name, 2 * half)
    order = np.argsort(np.random.default_rng(3).random(size=y.shape[:2]), axis=1)
    found = []
    for sets in (y, np.take_along_axis(y, order[:, :, None], axis=1)):
        halves = iter([(x[:half], sets[:half]), (x[half:], sets[half:])])
        found.append(Trusted().estimate_sampler(KEY, lambda key, n, halves=halves: next(halves), num_samples=half))
    assert found[0].bits == pytest.approx(known_cases()[name].bits, abs=0.25)
    assert (found[0].num_samples, found[0].num_particles) == (half, 100)
    assert found[1].bits == pytest.approx(found[0].bits, abs=0.03)
