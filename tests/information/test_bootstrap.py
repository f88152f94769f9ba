"""The bootstrap against the closed form of the error of a mean."""

import numpy as np
import pytest

from beliefscope.information.bounds import LN2, DonskerVaradhan, InfoNCE, Scores, bootstrap_error

RNG = np.random.default_rng(0)


def fold(deviation):
    """Scores of which Donsker and Varadhan's bound is the mean, in bits."""
    joint = (deviation * RNG.normal(size=400)).astype(np.float32)
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
