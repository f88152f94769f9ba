"""The bootstrap against the closed form of the error of a mean."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.bootstrap import bootstrap_error
from beliefscope.information.scores import Scores

RNG = np.random.default_rng(0)
mean_of = jax.jit(lambda scores: jnp.mean(scores.joint))
difference_of = jax.jit(lambda scores: jnp.mean(scores.joint) - jnp.mean(scores.product))


def fold(deviation):
    joint = deviation * RNG.normal(size=400)
    return Scores(joint.astype(np.float32), np.tile(joint, (2, 1)).astype(np.float32))


def test_the_error_of_a_mean_is_the_deviation_over_the_root_of_the_number():
    scores = fold(3.0)
    assert bootstrap_error(mean_of, [scores]) == pytest.approx(np.std(scores.joint) / 20, rel=0.15)


def test_the_error_of_a_mean_over_folds_adds_their_variances():
    folds = [fold(1.0), fold(2.0)]
    expected = np.sqrt(sum(np.var(scores.joint) / 400 for scores in folds)) / 2
    assert bootstrap_error(mean_of, folds) == pytest.approx(expected, rel=0.15)


def test_a_pair_is_drawn_with_its_shuffled_scores():
    """Here both are the same numbers, so that their difference never varies."""
    assert bootstrap_error(difference_of, [fold(3.0)]) == pytest.approx(0, abs=1e-6)


def test_the_same_scores_always_have_the_same_error():
    scores = fold(1.0)
    assert bootstrap_error(mean_of, [scores]) == bootstrap_error(mean_of, [scores])
