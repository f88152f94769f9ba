"""Normal scores against SciPy's ranks and quantiles."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from beliefscope.information.columns import independent_directions, normal_scores, standardised

RNG = np.random.default_rng(0)
ROWS = RNG.standard_t(3, size=(300, 2))


@pytest.mark.parametrize("rows", [ROWS, ROWS.round(), ROWS.astype(np.float32)], ids=["distinct", "ties", "single"])
def test_each_column_is_the_quantile_of_the_middle_of_its_ranks(rows):
    expected = ndtri((rankdata(rows, axis=0) - 0.5) / len(rows))
    scores = normal_scores(rows, rows)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-7)
    assert scores.dtype == np.float32


def test_equal_numbers_stay_equal_and_different_ones_different():
    rows = ROWS.round()
    for column, scores in zip(rows.T, normal_scores(rows, rows).T, strict=True):
        assert 5 < len(np.unique(column)) == len(np.unique(scores)) < 50
        assert len(np.unique(np.column_stack([column, scores]), axis=0)) == len(np.unique(column))


@pytest.mark.parametrize("rows", [ROWS, ROWS.round()], ids=["distinct", "ties"])
def test_growing_maps_of_the_columns_change_nothing(rows):
    for grown in (np.exp(rows / 4), rows**3 + rows, 1e6 * rows - 3):
        np.testing.assert_array_equal(normal_scores(grown, grown), normal_scores(rows, rows))


def test_a_column_whose_reference_is_constant_becomes_zeros():
    reference = np.column_stack([ROWS[:, 0], np.full(300, 0.1)])
    np.testing.assert_array_equal(normal_scores(ROWS, reference)[:, 1], 0)


def test_numbers_beyond_the_reference_get_its_outermost_scores():
    scores = normal_scores(np.array([[-1e9, 1e9], [1e9, -1e9]]), ROWS)
    extreme = ndtri(0.5 / 300)
    np.testing.assert_allclose(scores, [[extreme, -extreme], [-extreme, extreme]], rtol=1e-6)


def test_independent_directions_are_the_numbers_that_were_mixed():
    """Each direction is one of the sources, up to its sign, whatever their shape."""
    sources = np.column_stack([RNG.uniform(-1, 1, 20_000), RNG.standard_normal(20_000) ** 3, RNG.laplace(size=20_000)])
    mixed = sources @ RNG.normal(size=(3, 3)) + 5
    correlations = np.abs(np.corrcoef(independent_directions(mixed), sources, rowvar=False)[:3, 3:])
    assert sorted(correlations.argmax(axis=1)) == [0, 1, 2]
    assert correlations.max(axis=1).min() > 0.98


def test_columns_are_standardised_whatever_their_offset():
    columns = standardised(np.column_stack([1e9 + ROWS[:, 0], np.full(300, 7.1)]))
    np.testing.assert_allclose(columns[:, 0], (ROWS[:, 0] - ROWS[:, 0].mean()) / ROWS[:, 0].std(), atol=1e-5)
    np.testing.assert_array_equal(columns[:, 1], 0)
