"""Normal scores against SciPy's ranks and quantiles, features of sets against their means and moments in NumPy."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from beliefscope.information.columns import independent_directions, normal_scores, set_features, standardised

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


DRAW = np.random.default_rng(0)
# Particles on axes of very different scale, around a centre that differs from set to set.
SETS = (DRAW.normal(size=(503, 1, 3)) + 0.5 * DRAW.normal(size=(503, 20, 3))) * [1, 100, 0.01] + [5, -300, 0]


def in_deviations(sets):
    return (sets - sets.mean(axis=(0, 1))) / sets.std(axis=(0, 1))


def test_the_first_features_are_the_means_and_second_moments():
    """503 sets, so that the last chunk is not a whole one."""
    features, z = set_features(SETS, SETS), in_deviations(SETS)
    upper = np.triu_indices(3)
    np.testing.assert_allclose(features[:, :3], z.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(features[:, 3:9], (z.swapaxes(1, 2) @ z / 20)[:, *upper], rtol=1e-3, atol=1e-4)


def test_the_other_features_are_means_of_sines_and_cosines_of_the_same_waves():
    """Of sets of equal particles their squares sum to one; of the mean particle all sines are 0, all cosines 1."""
    equal = np.repeat(SETS[:, :1], 20, axis=1)
    equal[-1] = SETS.mean(axis=(0, 1))
    features = set_features(equal, SETS)
    sines, cosines = np.split(features[:, 9:], 2, axis=1)
    np.testing.assert_allclose(sines**2 + cosines**2, 1, atol=1e-5)
    np.testing.assert_allclose(sines[-1], 0, atol=1e-3)
    np.testing.assert_allclose(cosines[-1], 1, atol=1e-5)
    assert np.std(sines[:-1], axis=0).min() > 0.1


def test_the_order_of_the_particles_changes_nothing():
    shuffled = DRAW.permuted(np.arange(20 * 503).reshape(503, 20), axis=1) % 20
    features = set_features(SETS[np.arange(503)[:, None], shuffled], SETS)
    np.testing.assert_allclose(features, set_features(SETS, SETS), atol=1e-5)


def test_a_set_has_the_same_features_wherever_it_stands():
    turned = np.roll(SETS, 250, axis=0)
    np.testing.assert_allclose(set_features(turned, SETS), np.roll(set_features(SETS, SETS), 250, axis=0), atol=1e-5)


def test_a_constant_coordinate_adds_nothing():
    sets = SETS.copy()
    sets[:, :, 1] = 7.0
    features = set_features(sets, sets)
    assert np.all(np.isfinite(features))
    np.testing.assert_array_equal(features[:, 1], 0)


def test_millions_of_particles_in_single_precision_are_centred_and_scaled():
    """The sum of so many numbers of one sign, in single precision, would be far off."""
    many = DRAW.standard_normal(size=(20, 100_000, 1), dtype=np.float32) + 100
    features = set_features(many[:4], many)
    np.testing.assert_allclose(features[:, 0], 0, atol=0.02)
    np.testing.assert_allclose(features[:, 1], 1, atol=0.02)
