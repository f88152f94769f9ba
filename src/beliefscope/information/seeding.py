"""NumPy's generator from a JAX key: for sampling on arrays of many shapes, each of which JAX would compile anew."""

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """The same generator for the same key, as good as independent for different keys."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
