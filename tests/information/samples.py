"""Samples of the known cases, drawn once for all tests, since each new shape is compiled anew."""

import functools

import jax
import numpy as np

from beliefscope.information import known_cases

SEED = 5
NUM_SAMPLES = {name: 4000 if "set" in name else 20_000 for name in known_cases()}


@functools.cache
def _all_samples(name):
    return [np.asarray(part) for part in known_cases()[name].sample(jax.random.key(SEED), NUM_SAMPLES[name])]


def samples(name, num_samples, *, block=0):
    """A block of `num_samples` pairs (x, y); different blocks are independent."""
    x, y = (part[block * num_samples : (block + 1) * num_samples] for part in _all_samples(name))
    assert len(x) == num_samples
    return x, y
