"""The numbers beside the best bound: against known information, and left out where they are undefined."""

import jax
import numpy as np
import pytest

from beliefscope.information import Gaussian
from beliefscope.information.cross_checks import cross_checks

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
