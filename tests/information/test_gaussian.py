"""The Gaussian estimator against closed forms, known cases and its own spread over seeds."""

import jax
import numpy as np
import pytest
from information.samples import samples
from scipy.stats import ortho_group

from beliefscope.information import Gaussian, gaussian_bits, known_cases

KEY = jax.random.key(0)
GAUSSIAN_CASES = [name for name in known_cases() if name.startswith("Gaussian") and name.endswith("bits")]


@pytest.mark.parametrize("name", GAUSSIAN_CASES)
def test_it_is_within_a_tenth_of_a_bit_of_the_known_cases(name):
    estimate = Gaussian().estimate(KEY, *samples(name, 10_000))
    assert estimate.bits == pytest.approx(known_cases()[name].bits, abs=min(0.1, 4 * estimate.standard_error))
    assert (estimate.num_samples, estimate.estimator, estimate.ceiling) == (10_000, "Gaussian", None)


@pytest.mark.parametrize(
    ("name", "num_samples"),
    [
        ("Gaussian, d = 1, 1 bits", 500),
        ("Gaussian, d = 4, 6 bits", 500),
        ("Gaussian, d = 16, 4 bits", 500),
        ("independent, 4 and 4", 500),
        ("independent, 64 and 106", 500),
    ],
)
def test_the_reported_standard_error_is_the_spread_over_seeds(name, num_samples):
    estimates = [Gaussian().estimate(KEY, *samples(name, num_samples, block=seed)) for seed in range(20)]
    spread = np.std([estimate.bits for estimate in estimates], ddof=1)
    reported = np.sqrt(np.mean([estimate.standard_error**2 for estimate in estimates]))
    assert spread / 2 < reported < 2 * spread


def test_no_bias_is_left_where_samples_are_few():
    """40 samples of 4 + 4 columns: the plug-in number is 0.4 bits too high."""
    rng = np.random.default_rng(0)
    rho, bits, plug_in = 0.6, [], []
    for _ in range(600):
        x, noise = rng.normal(size=(2, 40, 4))
        y = rho * x + np.sqrt(1 - rho**2) * noise
        bits.append(Gaussian().estimate(KEY, x, y).bits)
        plug_in.append(gaussian_bits(np.cov(np.concatenate([x, y], axis=1).T), 4))
    truth, error = -2 * np.log2(1 - rho**2), np.std(bits) / np.sqrt(len(bits))
    assert abs(np.mean(bits) - truth) < 3 * error
    assert np.mean(plug_in) - truth > 10 * error


def test_linear_maps_change_nothing_and_the_two_sides_are_alike():
    x, y = (rows.astype(float) for rows in samples("Gaussian, d = 4, 4 bits", 300))
    y = y[:, :2]
    mixed = x @ np.random.default_rng(0).normal(size=(4, 4)) + 100
    bits = Gaussian().estimate(KEY, x, y).bits
    assert Gaussian().estimate(KEY, mixed, 1e-6 * y).bits == pytest.approx(bits, abs=1e-9)
    assert Gaussian().estimate(KEY, y, x).bits == pytest.approx(bits, abs=1e-9)


def test_many_bits_are_measured_without_loss():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 5000, 1))
    estimate = Gaussian().estimate(KEY, x, x + 1e-9 * noise)
    assert estimate.bits == pytest.approx(9 * np.log2(10), abs=0.1)


def test_a_known_covariance_gives_the_sum_over_canonical_pairs():
    rhos = np.array([0.9, 0.5, 0.0])
    canonical = np.block([[np.eye(3), np.diag(rhos)], [np.diag(rhos), np.eye(3)]])
    turn = np.zeros((6, 6))
    turn[:3, :3], turn[3:, 3:] = (ortho_group.rvs(3, random_state=seed) @ np.diag([1, 5, 0.1]) for seed in (0, 1))
    expected = -0.5 * np.log2(1 - rhos**2).sum()
    assert gaussian_bits(canonical, 3) == pytest.approx(expected)
    assert gaussian_bits(turn @ canonical @ turn.T, 3) == pytest.approx(expected)


def test_singular_covariances_are_named():
    x, y = samples("Gaussian, d = 2, 2 bits", 100)
    for bad, sentence in [
        (
            np.concatenate([x, np.full((100, 1), 0.1, np.float32)], axis=1),
            "constant, which .* got '1 constant of 3 columns'",
        ),
        (np.concatenate([x, x[:, :1]], axis=1), "linearly independent, so .* got '2 independent of 3 columns'"),
        (np.concatenate([x, 1 - x.sum(1, keepdims=True)], axis=1), "got '2 independent of 3 columns'"),
        (2 * y[:, :1] + 1, "x does not determine a column of y linearly"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            Gaussian().estimate(KEY, bad, y)
    with pytest.raises(ValueError, match=r"2 \+ 2 columns needs more than 4 samples, but got 4"):
        Gaussian().estimate(KEY, x[:4], y[:4])


def test_bad_covariances_are_named():
    for covariance, dx, sentence in [
        (np.ones((2, 3)), 1, "symmetric"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), 1, "symmetric"),
        (np.eye(3), 3, "at least one and not all, but got 3"),
        (np.ones((2, 2)), 1, "positive definite"),
        (np.diag([1.0, -1.0]), 1, "positive definite"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            gaussian_bits(covariance, dx)
