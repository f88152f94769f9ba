"""Known information made from one's own beliefs, and what an estimator reads of it."""

import jax
import numpy as np
import pytest

from beliefscope.information import Estimate, calibrate
from beliefscope.information.entropy import exact_entropy

RNG = np.random.default_rng(0)
BELIEFS = np.eye(12)[RNG.choice(12, size=3000, p=np.arange(1, 13) / 78)]


class Recorder:
    """Writes down what it is asked, and always reads one bit."""

    def __init__(self):
        self.asked = []

    def estimate(self, key, x, y):
        self.asked.append((x, y))
        return Estimate(bits=1.0, standard_error=0.0, num_samples=len(x), num_particles=None, estimator="recorder")


def test_without_noise_the_truth_is_the_entropy_of_the_beliefs():
    recorder = Recorder()
    found = calibrate(BELIEFS, 7, estimator=recorder, noises=(0.0, 0.5))
    assert found.num_atoms == 12
    assert not found.in_cells
    noisy, clean = found.points
    assert clean.truth == pytest.approx(exact_entropy(BELIEFS.mean(axis=0)))
    assert 0.3 < noisy.truth < clean.truth - 0.1
    for x, y in recorder.asked:
        assert x.shape == (3000, 7)
        np.testing.assert_array_equal(y, BELIEFS)


def test_the_truth_is_that_of_bayes_on_the_memories_that_were_made():
    """The codes are recovered as means of the noisy memories; their posterior gives I(h; atom) anew."""
    recorder = Recorder()
    (point,) = calibrate(BELIEFS, 3, estimator=recorder, noises=(0.3,)).points
    (x, y) = recorder.asked[0]
    atoms, weights = y.argmax(axis=1), y.mean(axis=0)
    codes = np.stack([x[atoms == atom].mean(axis=0) for atom in range(12)])
    log_joint = -np.sum((x[:, None] - codes) ** 2, axis=2) / (2 * 0.3**2 * 3) + np.log(weights)
    log_posterior = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    bits = (log_posterior[np.arange(3000), atoms] - np.log(weights[atoms])) / np.log(2)
    assert point.truth == pytest.approx(bits.mean(), abs=4 * bits.std() / 3000**0.5 + 0.02)


def test_beliefs_that_seldom_recur_are_put_into_cells():
    recorder = Recorder()
    sets = RNG.normal(size=(2000, 1, 2)) + 0.1 * RNG.normal(size=(2000, 20, 2))
    found = calibrate(sets, 5, estimator=recorder, noises=(0.0,))
    assert found.in_cells
    assert 100 < found.num_atoms <= 128
    assert 6 < found.points[0].truth <= 7
    np.testing.assert_array_equal(recorder.asked[0][1], sets)


def test_the_curve_is_told_in_a_sentence():
    found = calibrate(BELIEFS, 7, estimator=Recorder(), noises=(0.0, 0.5))
    assert found.sentence(3.0).startswith("reads 1.0 at most, where the truth is ")
    assert "reads  1.00" in str(found)


@pytest.mark.slow
def test_the_default_estimator_reads_these_beliefs():
    found = calibrate(BELIEFS, 16, key=jax.random.key(1))
    for point in found.points:
        assert point.read.bits == pytest.approx(point.truth, abs=max(0.1, 0.07 * point.truth))
