"""KSG against its formula written with loops, and against data whose information is known."""

import jax
import numpy as np
import pytest
from information.samples import samples
from scipy.special import digamma
from scipy.stats import norm, rankdata

from beliefscope.information import KSG, known_cases

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


def test_the_reported_standard_error_is_the_spread_over_seeds():
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
