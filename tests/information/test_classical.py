"""KSG and the Gaussian formula against their definitions, closed forms and data whose information is known."""

import jax
import numpy as np
import pytest
from information.samples import samples
from scipy.special import digamma
from scipy.stats import norm, ortho_group, rankdata

from beliefscope.information import KSG, Gaussian, gaussian_bits, known_cases
from beliefscope.information.classical import cross_checks

KEY = jax.random.key(0)


def ksg_by_loops(x, y, k):
    """Equation 8 of the paper, every distance written out."""
    x, y = (norm.ppf((rankdata(rows, axis=0) - 0.5) / len(rows)).astype(np.float32).astype(float) for rows in (x, y))
    terms = []
    for i in range(len(x)):
        far_x, far_y = np.abs(x - x[i]).max(1), np.abs(y - y[i]).max(1)
        radius = np.sort(np.delete(np.maximum(far_x, far_y), i))[k - 1]
        num_x, num_y = (int(np.sum(np.delete(far, i) < radius)) for far in (far_x, far_y))
        terms.append(digamma(num_x + 1) + digamma(num_y + 1))
    return (digamma(k) + digamma(len(x)) - np.mean(terms)) / np.log(2)


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("name", ["Gaussian, d = 1, 2 bits", "Student t(3), d = 2, 2 bits of correlation"])
def test_it_is_the_formula_of_the_paper(name, k):
    x, y = samples(name, 300)
    y = np.concatenate([y, 100 * np.sin(5 * x)], axis=1)
    assert KSG(k).estimate(KEY, x, y).bits == pytest.approx(ksg_by_loops(x, y, k), abs=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "Gaussian, d = 1, 0.5 bits",
        "Gaussian, d = 1, 2 bits",
        "Gaussian, d = 2, 4 bits",
        "Gaussian, d = 2, 2 bits, cubed",
    ],
)
def test_it_is_within_a_tenth_of_a_bit_in_few_dimensions(name):
    estimate = KSG().estimate(KEY, *samples(name, 10_000))
    assert estimate.bits == pytest.approx(known_cases()[name].bits, abs=0.1)
    assert (estimate.num_samples, estimate.num_particles, estimate.estimator) == (10_000, None, "KSG, k = 3")
    assert not estimate.near_ceiling
    assert estimate.curve.shape == (0,)


def test_independent_data_have_no_information():
    estimate = KSG().estimate(KEY, *samples("independent, 4 and 4", 3000))
    assert abs(estimate.bits) < 4 * estimate.standard_error < 0.1


def test_the_standard_error_of_ksg_is_the_spread_over_seeds():
    name = "Gaussian, d = 1, 1 bits"
    estimates = [KSG().estimate(KEY, *samples(name, 1000, block=seed)) for seed in range(20)]
    spread = np.std([estimate.bits for estimate in estimates], ddof=1)
    reported = np.sqrt(np.mean([estimate.standard_error**2 for estimate in estimates]))
    assert spread / 2 < reported < 2 * spread


def test_few_samples_have_no_standard_error():
    assert np.isnan(KSG().estimate(KEY, *samples("Gaussian, d = 1, 1 bits", 199)).standard_error)


def test_a_copy_reaches_the_ceiling():
    x, _ = samples("Gaussian, d = 1, 1 bits", 100)
    estimate = KSG().estimate(KEY, x, x)
    assert estimate.bits == pytest.approx(estimate.ceiling)
    assert estimate.near_ceiling


def test_scale_offset_and_a_constant_column_change_nothing():
    x, y = (rows.astype(float) for rows in samples("Gaussian, d = 2, 2 bits", 500))
    wide = np.concatenate([1000 * x + 7, np.ones((500, 1))], axis=1)
    assert KSG().estimate(KEY, wide, 0.001 * y).bits == pytest.approx(KSG().estimate(KEY, x, y).bits, abs=1e-9)


def test_discrete_data_are_refused_with_the_fraction_found():
    x, y = samples("code of 102 symbols with noise 1.0", 2000)
    with pytest.raises(ValueError, match=r"at most 1% of the rows of y may repeat, but got 1\.0; use AtomsBound"):
        KSG().estimate(KEY, x, y)
    x, y = (rows.copy() for rows in samples("Gaussian, d = 2, 2 bits", 1000))
    x[:30] = x[0]
    with pytest.raises(ValueError, match=r"rows of x may repeat, but got 0\.03"):
        KSG().estimate(KEY, x, y)


def test_few_repeats_are_measured():
    x, y = (rows.copy() for rows in samples("Gaussian, d = 1, 1 bits", 2000))
    before = KSG().estimate(KEY, x, y).bits
    x[:8], y[:8] = x[0], y[0]
    assert KSG().estimate(KEY, x, y).bits == pytest.approx(before, abs=0.05)


def test_bad_numbers_of_neighbours_are_named():
    for bad in (0, -1, True):
        with pytest.raises(ValueError, match="whole number of at least 1"):
            KSG(bad)
    with pytest.raises(ValueError, match="5 neighbours need at least 6 samples, but got 5"):
        KSG(5).estimate(KEY, np.arange(5.0), np.arange(5.0))


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
        pytest.param("independent, 64 and 106", 500, marks=pytest.mark.slow),
    ],
)
def test_the_standard_error_of_the_formula_is_the_spread_over_seeds(name, num_samples):
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


DRAW = np.random.default_rng(0)
X, NOISE = DRAW.normal(size=(2, 4000, 2))
Y = 0.8 * X + 0.6 * NOISE  # −½ log2(1 − 0.64) bits in each column


def test_both_find_the_information_of_gaussian_columns():
    found = cross_checks(X, Y)
    assert list(found) == ["KSG of 2000 pairs", "Gaussian formula"]
    for bits in found.values():
        assert bits == pytest.approx(-np.log2(0.36), abs=0.15)
    exact = Gaussian().estimate(jax.random.key(0), X, Y).bits
    assert found["Gaussian formula"] == pytest.approx(exact, abs=1e-6)


def test_columns_that_others_determine_add_nothing():
    """Beliefs sum to 1: their covariance has no inverse."""
    more = np.column_stack([Y, 1 - Y.sum(axis=1)])
    assert cross_checks(X, more)["Gaussian formula"] == pytest.approx(cross_checks(X, Y)["Gaussian formula"], abs=1e-6)


def test_what_one_side_determines_is_infinite():
    assert cross_checks(X, X @ [[1.0, 2.0], [0.0, 1.0]])["Gaussian formula"] == np.inf


def test_ksg_is_left_out_where_rows_repeat_or_columns_are_many():
    assert list(cross_checks(X, np.round(Y[:, :1]))) == ["Gaussian formula"]
    assert list(cross_checks(np.tile(X, 3), np.tile(Y, 2) + np.tile(NOISE, 2))) == ["Gaussian formula"]
