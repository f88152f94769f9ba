"""What makes an estimate doubtful: each sign where it should be seen, and not where it should not."""

import jax
import numpy as np
import pytest

from beliefscope.information import MINE, mutual_information
from beliefscope.information.interface import in_single_precision
from beliefscope.information.neural import FitSettings, NeuralEstimator
from beliefscope.warning_signs import (
    bound_warning,
    ceiling_warning,
    dominated,
    entropy_warning,
    fit_warnings,
)

RNG = np.random.default_rng(0)
FLAT = 3 + 0.01 * RNG.normal(size=200)


def test_a_curve_that_still_rises_has_not_converged():
    rising = np.linspace(0, 3, 200)
    (warning,) = fit_warnings(3.0, rising)
    assert warning.startswith("not converged: the held-out bits still rose by 0.30")
    assert fit_warnings(3.0, FLAT) == ()


def test_noise_is_not_taken_for_a_rise():
    found = [fit_warnings(3.0, 3 + 0.2 * np.random.default_rng(seed).normal(size=200)) for seed in range(50)]
    assert sum(len(each) for each in found) <= 4


def test_held_out_and_fresh_pairs_far_apart_are_a_failed_fit():
    (warning,) = fit_warnings(-4.0, FLAT)
    assert warning.startswith("failed fit: 3.0")
    assert warning.endswith("bits on held-out pairs, -4.00 on fresh ones")
    assert fit_warnings(2.5, FLAT) == ()
    assert fit_warnings(2.5, np.zeros(0)) == ()


def test_one_shuffled_pair_that_dominates_is_a_failed_fit():
    scores = np.zeros((1, 1000))
    assert dominated(scores) == ()
    scores[0, 7] = 12.0
    (warning,) = dominated(scores)
    assert warning == "failed fit: one shuffled pair has 99% of the mean of e^T"


def test_ceilings_entropies_and_bounds_are_held_against_the_number():
    assert ceiling_warning(7.0, None) == ()
    assert ceiling_warning(7.0, 8.0) == ()
    assert ceiling_warning(7.6, 8.0) == ("near the ceiling of 8.0 bits: a lower bound at best",)
    assert entropy_warning(3.0, 0.1, None) == ()
    assert entropy_warning(3.0, 0.1, 2.8) == ()
    assert entropy_warning(3.2, 0.1, 2.8) == ("above H(b) = 2.80 bits, which it cannot be",)
    assert bound_warning(3.0, 0.1, 3.2) == ()
    assert bound_warning(1.06, 0.01, 4.38) == ("below a decoder's bound: at least 4.38 bits are there",)


def test_a_fit_that_is_cut_short_says_so():
    symbols = RNG.integers(0, 64, size=4000)
    x, y = np.eye(64)[symbols] + 0.1 * RNG.normal(size=(4000, 64)), np.eye(64)[symbols]
    short = NeuralEstimator(MINE().bound, FitSettings(epochs=10, batch_size=256))
    found = short.estimate(jax.random.key(0), x, y)
    assert any(warning.startswith("not converged") for warning in found.warnings)
    assert "warning: not converged" in str(found)
    assert found.num_samples == 4000


@pytest.mark.slow
def test_a_number_below_what_a_classifier_proves_says_so():
    """187 beliefs of very unequal frequency, which the memory tells apart: the separable critic reads a fraction."""
    beliefs = RNG.dirichlet(np.ones(3), size=187)
    weights = 1 / np.arange(1, 188) ** 0.8
    atoms = RNG.choice(187, size=4000, p=weights / weights.sum())
    found = mutual_information(beliefs[atoms], beliefs[atoms])
    assert found.bits > 5 or any("below a decoder's bound" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (RNG.normal(size=(100, 2)) * 1e30, "below 1e\\+15 in size"),
        (RNG.normal(size=(100, 2)) + 1e16, "below 1e\\+15 in size"),
        (RNG.normal(size=(100, 2)) + 1e12, "single precision tells the numbers in a column of x apart"),
    ],
)
def test_what_single_precision_cannot_tell_apart_is_refused(array, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        in_single_precision("x", array)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("array", [RNG.normal(size=(100, 2)) + 100, np.ones((100, 2)), np.full((9, 2, 1), 0.1)])
def test_usual_numbers_pass(array):
    np.testing.assert_allclose(in_single_precision("x", array), array, rtol=1e-6)
