"""Particles counted in cells, against NumPy's histograms."""

import numpy as np
import pytest

from beliefscope.information.probe import binned, coarser, histogram


def by_numpy(sets, bins):
    """Each set in np.histogramdd over the range of all particles; cells that stay empty are dropped."""
    ends = list(zip(sets.min(axis=(0, 1)), sets.max(axis=(0, 1)), strict=True))
    counts = np.stack([np.histogramdd(one, bins, range=ends)[0].ravel() for one in sets])
    return counts[:, counts.sum(axis=0) > 0] / sets.shape[1]


@pytest.mark.parametrize(("dimension", "bins"), [(1, 7), (2, 10), (3, 4)])
def test_the_histogram_is_that_of_numpy_whatever_the_order_of_the_particles(dimension, bins):
    sets = np.random.default_rng(1).normal(size=(30, 15, dimension))
    rows = histogram(sets, bins=bins)
    np.testing.assert_allclose(rows, by_numpy(sets, bins), atol=1e-7)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(histogram(sets[:, ::-1], bins=bins), rows)


def test_a_long_batch_is_counted_in_chunks_without_a_seam():
    sets = np.random.default_rng(2).normal(size=(2345, 3, 1)).astype(np.float32)
    np.testing.assert_allclose(histogram(sets), by_numpy(sets.astype(np.float64), 10), atol=1e-7)


def test_columns_of_two_values_are_divided_by_value_and_constant_ones_not_at_all():
    """A place and a one-hot orientation: cell by cell the histogram of the places of each orientation."""
    rng = np.random.default_rng(3)
    place, orientation = rng.uniform(-1, 1, size=(40, 25)), rng.integers(0, 4, size=(40, 25))
    sets = np.concatenate([place[..., None], np.eye(4)[orientation], np.full((40, 25, 1), 0.3)], axis=2)
    edges = np.linspace(place.min(), place.max(), 6)
    # As rows of digits 0001 comes before 1000, so the last orientation has the first cell.
    counts = [
        [np.histogram(one[turned == turn], edges)[0] for turn in (3, 2, 1, 0)]
        for one, turned in zip(place, orientation, strict=True)
    ]
    expected = np.swapaxes(counts, 1, 2).reshape(40, 20) / 25
    np.testing.assert_allclose(histogram(sets, bins=5), expected, atol=1e-7)


def test_many_columns_cost_only_the_cells_that_occur():
    codes = np.random.default_rng(5).integers(0, 2, size=(3, 200))
    codes = codes[np.lexsort(codes.T[::-1])]  # the cells are numbered in this order
    rows = histogram(codes[[[0, 1], [1, 2], [0, 0]]])
    np.testing.assert_array_equal(rows, [[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]])


def test_a_coarser_grid_has_what_half_as_many_bins_would_have():
    draw = np.random.default_rng(4)
    sets = np.concatenate([draw.normal(size=(20, 50, 2)), np.eye(3)[draw.integers(0, 3, size=(20, 50))]], axis=2)
    found, expected = coarser(binned(sets, bins=8)), binned(sets, bins=4)
    np.testing.assert_allclose(found.frequencies, expected.frequencies, atol=1e-6)
    np.testing.assert_array_equal(found.parts, expected.parts)
    np.testing.assert_allclose(found.centres, expected.centres, atol=1e-6)


@pytest.mark.parametrize(
    ("sets", "bins", "sentence"),
    [
        (np.zeros((5, 2)), 10, r"particle sets have the shape \[N, M, d\]"),
        (np.zeros((5, 3, 2)), 0, "a whole number from 1 to 1000, but got 0"),
        (np.random.default_rng(6).random(size=(20, 1000, 5)), 10, "at most 10000 cells, but got '1.*use fewer bins"),
    ],
)
def test_bad_histograms_are_named_in_one_sentence(sets, bins, sentence):
    with pytest.raises(ValueError, match=sentence):
        histogram(sets, bins=bins)
