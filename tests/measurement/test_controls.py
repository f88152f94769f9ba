"""Each control compares the belief with what its name says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information import Estimate
from beliefscope.measurement import Pairs
from beliefscope.measurement.checkpoints import controls, given_time

N, HORIZON = 50, 6
RNG = np.random.default_rng(0)
BELIEF = RNG.random((N, 3)).astype(np.float32)
PAIRS = Pairs(
    memory=jnp.asarray(RNG.random((N, 4)), jnp.float32),
    belief=BELIEF,
    time=jnp.asarray(RNG.integers(HORIZON, size=N)),
    observation=jnp.asarray(RNG.random((N, 2)), jnp.float32),
    recent=jnp.asarray(RNG.random((N, 16)), jnp.float32),
    replayed=jnp.asarray(RNG.random((N, 5)), jnp.float32),
    health=None,
    returns=None,
)


class Recorder:
    """An estimator that keeps what it is asked to compare and answers with the number of columns."""

    def __init__(self):
        self.asked = []

    def estimate(self, key, x, y):
        self.asked.append((np.asarray(x), np.asarray(y)))
        bits = float(x.shape[1])
        return Estimate(bits=bits, standard_error=0.0, num_samples=N, num_particles=None, estimator="recorder")


def test_the_controls_are_those_of_their_names_on_the_same_beliefs():
    recorder = Recorder()
    found = controls(jax.random.key(0), recorder, PAIRS, BELIEF, horizon=HORIZON)
    assert {name: int(one.bits) for name, one in found.items()} == {
        "shuffled": 4,
        "untrained": 5,
        "time": HORIZON,
        "observation": 2,
        "recent": 16,
        "memory and time": 4 + HORIZON,
    }
    assert given_time(found) == 4  # (4 + H) − H
    by_size = {x.shape[1]: x for x, _ in recorder.asked}
    np.testing.assert_array_equal(np.argmax(by_size[HORIZON], axis=1), PAIRS.time)
    np.testing.assert_array_equal(by_size[4 + HORIZON][:, :4], PAIRS.memory)
    assert all(np.array_equal(y, BELIEF) for _, y in recorder.asked)
    shuffled = by_size[4]
    assert not np.array_equal(shuffled, PAIRS.memory)
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), np.sort(PAIRS.memory, axis=0))


def test_without_the_untrained_network_there_is_no_telling():
    with pytest.raises(ValueError, match="pass replay=network_before_training"):
        controls(jax.random.key(0), Recorder(), PAIRS._replace(replayed=None), BELIEF, horizon=HORIZON)
