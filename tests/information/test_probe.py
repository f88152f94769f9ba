"""The decoder probe against beliefs whose best reading is known, and particles in cells against NumPy's histograms."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import entropy

from beliefscope.information.probe import binned, coarser, decode, histogram

KEY = jax.random.key(0)
# All memories and beliefs that are decoded have these shapes, since each new shape is compiled anew.
N = 500
UNTRAINED = 9  # the number of a row that is held out under this key
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(N, 4))
SYMBOLS = RNG.integers(0, 4, size=N)
ONE_HOT = np.eye(4)[SYMBOLS]


def scores(decoding):
    return np.array([decoding.cross_entropy, decoding.kl, decoding.total_variation])


def baseline(decoding):
    return np.array([decoding.baseline_cross_entropy, decoding.baseline_kl, decoding.baseline_total_variation])


def test_beliefs_that_the_memory_determines_are_read():
    decoding = decode(KEY, 3 * ONE_HOT + 0.1 * NOISE, ONE_HOT)
    assert np.all(scores(decoding) < 0.01)
    assert decoding.baseline_cross_entropy == pytest.approx(2, abs=0.05)
    assert decoding.baseline_total_variation == pytest.approx(0.75, abs=0.02)
    assert (decoding.probe, decoding.num_samples, decoding.num_held_out) == ("linear", N, 100)
    assert decoding.num_particles is None


@pytest.mark.parametrize("probe", ["linear", pytest.param("MLP", marks=pytest.mark.slow)])
def test_a_memory_independent_of_the_belief_adds_nothing_to_the_known_baseline(probe):
    """Two beliefs, the first with probability 1/4: the scores of their mean are written out."""
    two, weights = np.array([[0.7, 0.1, 0.1, 0.1], [0.0, 0.2, 0.5, 0.3]]), np.array([0.25, 0.75])
    mean = weights @ two
    decoding = decode(KEY, NOISE, two[(SYMBOLS > 0).astype(int)], probe=probe)
    exact_kl = entropy(mean, base=2) - weights @ entropy(two, base=2, axis=1)
    exact = [entropy(mean, base=2), exact_kl, weights @ np.abs(two - mean).sum(axis=1) / 2]
    np.testing.assert_allclose(baseline(decoding), exact, atol=0.1)
    np.testing.assert_allclose(scores(decoding), baseline(decoding), atol=0.03)


def test_a_posterior_that_is_logistic_in_the_memory_is_read_exactly_by_the_linear_probe():
    """Four classes, centres c with unit Gaussian noise: p(class | memory) is a softmax of c·memory − |c|²/2."""
    centres = np.array([[1.0, 0.5, 0.0, -0.5], [-1, 0, 0.5, 0], [0, -1, 0, 1], [0.5, 0, -1, 0]])
    memory = centres[SYMBOLS] + NOISE
    decoding = decode(KEY, memory, softmax(memory @ centres.T - np.sum(centres**2, axis=1) / 2, axis=1))
    assert -1e-6 <= decoding.kl < 1e-4
    assert decoding.total_variation < 0.003
    assert decoding.baseline_kl > 0.3


@pytest.mark.slow
def test_an_exclusive_or_is_read_by_the_network_and_not_by_the_linear_probe():
    """Four states: the first bit is the exclusive or of two signs, the second bit another sign."""
    signs = NOISE > 0
    memory, belief = np.sign(NOISE) + 0.1 * NOISE, np.eye(4)[2 * (signs[:, 0] ^ signs[:, 1]) + signs[:, 2]]
    assert decode(KEY, memory, belief).cross_entropy == pytest.approx(1, abs=0.05)
    by_network = decode(KEY, memory, belief, probe="MLP")
    assert by_network.cross_entropy < 0.05
    assert by_network.probe == "MLP"


def test_a_constant_memory_gives_the_baseline():
    decoding = decode(KEY, np.full((N, 4), 0.1), RNG.dirichlet(np.ones(4), size=N))
    np.testing.assert_allclose(scores(decoding), baseline(decoding), atol=0.005)


@pytest.mark.parametrize("row", [[1.0, 0.0, 0.0, 0.0], [0.6, 0.3, 0.1, 0.0], [0.26, 0.25, 0.25, 0.24]])
def test_the_cross_entropy_is_the_entropy_of_the_beliefs_and_a_divergence_of_at_least_zero(row):
    """Every belief is a shift of one row, so that their entropy is known whichever pairs are held out."""
    belief = np.stack([np.roll(row, shift) for shift in SYMBOLS])
    decoding = decode(KEY, 2 * ONE_HOT + NOISE, belief.astype(np.float32))
    for cross_entropy, kl, _ in (scores(decoding), baseline(decoding)):
        assert kl >= -1e-6
        assert cross_entropy - kl == pytest.approx(entropy(row, base=2), abs=1e-5)
    assert decoding.kl < decoding.baseline_kl


def test_states_never_seen_in_training_cost_a_known_and_finite_number_of_bits():
    """One pair alone has the last state; the 300 training beliefs count with one uniform row: 1 / (4 · 301)."""
    states = np.zeros(N, int)
    states[UNTRAINED] = 3
    decoding = decode(KEY, NOISE, np.eye(4)[states])
    seen, unseen = np.log2(301 / 300.25), np.log2(4 * 301)
    assert decoding.baseline_cross_entropy == pytest.approx((99 * seen + unseen) / 100)
    assert 0.01 * unseen < decoding.cross_entropy < np.inf


def test_scale_offset_and_a_constant_column_change_nothing():
    memory = np.concatenate([ONE_HOT[:, :3] + NOISE[:, :3], np.zeros((N, 1))], axis=1)
    expected = scores(decode(KEY, memory, ONE_HOT))
    np.testing.assert_allclose(scores(decode(KEY, 1000 * memory + 0.1, ONE_HOT)), expected, atol=1e-3)


def test_the_key_alone_decides_whatever_the_kind_of_array():
    memory = (ONE_HOT + NOISE).astype(np.float32)
    once, other = decode(KEY, memory, ONE_HOT), decode(jax.random.key(1), memory, ONE_HOT)
    assert decode(KEY, jnp.asarray(memory), ONE_HOT.astype(int).tolist()) == once
    assert other.baseline_cross_entropy != once.baseline_cross_entropy
    assert other.cross_entropy == pytest.approx(once.cross_entropy, abs=0.4)


@pytest.mark.slow
def test_particle_sets_are_decoded_as_their_histograms():
    """Two coordinates of two values, so that there are four cells; the memory shows how likely each value is."""
    sets = RNG.random(size=(N, 200, 2)) < expit(NOISE[:, None, :2])
    decoding = decode(KEY, NOISE, sets)
    assert decoding.num_particles == 200
    by_rows = decode(KEY, NOISE, np.eye(4)[sets @ [2, 1]].mean(axis=1))
    np.testing.assert_allclose(scores(decoding), scores(by_rows), atol=1e-4)
    # Of the frequencies of 200 draws from their chances, to first order: one for each of three free cells.
    sampling_kl = 3 / (2 * 200 * np.log(2))
    assert sampling_kl / 2 < decoding.kl < 2 * sampling_kl < decoding.baseline_kl / 5


ROWS = np.full((60, 2), 0.5)


@pytest.mark.parametrize(
    ("memory", "belief", "sentence"),
    [
        (ROWS * np.nan, ROWS, "every number in memory is finite"),
        (ROWS, ROWS * np.nan, "every number in belief is finite"),
        (ROWS, np.full((60, 3, 2), np.inf), "every number in sets is finite"),
        (ROWS, ROWS[:55], r"same number of samples, one pair a row, but got \(60, 55\)"),
        (ROWS[:49], ROWS[:49], "the number of rows of memory is at least 50, but got 49"),
        (ROWS, 2 * ROWS, "a row of probabilities, non-negative and of sum 1, but got 'sums from 2 to 2.*Kalman"),
        (ROWS, ROWS + np.array([1, -1]), "a row of probabilities.*the smallest entry -0.5"),
        (ROWS, np.zeros((60, 0, 2)), r"at least one particle each, but got \(60, 0, 2\)"),
        (ROWS, np.zeros((60, 1, 1, 2)), r"belief has the shape \[N, d\] or \[N, M, d\], but got \(60, 1, 1, 2\)"),
        (ROWS, None, r"belief has the shape \[N, d\] or \[N, M, d\], but got \(\)"),
    ],
)
def test_bad_input_is_named_in_one_sentence(memory, belief, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        decode(KEY, memory, belief)
    assert "\n" not in str(error.value)


def test_another_probe_is_named_in_one_sentence():
    unchecked = inspect.unwrap(decode)  # else the run-time check of types speaks first
    for bad in ("quadratic", 3, ["linear"]):
        with pytest.raises(ValueError, match="a probe is 'linear' or 'MLP', but got"):
            unchecked(KEY, ROWS, ROWS, probe=bad)


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
