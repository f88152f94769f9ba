"""The features of sets of particles against their means and moments in NumPy."""

import numpy as np

from beliefscope.information.columns import set_features

RNG = np.random.default_rng(0)
# Particles on axes of very different scale, around a centre that differs from set to set.
SETS = (RNG.normal(size=(503, 1, 3)) + 0.5 * RNG.normal(size=(503, 20, 3))) * [1, 100, 0.01] + [5, -300, 0]


def standardised(sets):
    return (sets - sets.mean(axis=(0, 1))) / sets.std(axis=(0, 1))


def test_the_first_features_are_the_means_and_second_moments():
    """503 sets, so that the last chunk is not a whole one."""
    features, z = set_features(SETS, SETS), standardised(SETS)
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
    shuffled = RNG.permuted(np.arange(20 * 503).reshape(503, 20), axis=1) % 20
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
    many = RNG.standard_normal(size=(20, 100_000, 1), dtype=np.float32) + 100
    features = set_features(many[:4], many)
    np.testing.assert_allclose(features[:, 0], 0, atol=0.02)
    np.testing.assert_allclose(features[:, 1], 1, atol=0.02)
