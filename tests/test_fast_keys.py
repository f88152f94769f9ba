"""The faster generator draws the very numbers of JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.fast_keys import fast_key

KEY = jax.random.key(7)
DRAWS = {
    "normal": lambda key: jax.random.normal(key, (3, 5)),
    "uniform": lambda key: jax.random.uniform(key),
    "randint": lambda key: jax.random.randint(key, (11,), 0, 6),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (9,)),
    "bits of a byte": lambda key: jax.random.bits(key, (9,), "uint8"),
    "nothing": lambda key: jax.random.bits(key, (0,)),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 12345)),
    "chain": lambda key: jax.random.normal(jax.random.fold_in(jax.random.split(key, 4)[3], 2), (2,)),
    "batch": lambda key: jax.vmap(jax.random.normal)(jax.random.split(key, 6)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_jax(name):
    expected = DRAWS[name](KEY)
    np.testing.assert_array_equal(DRAWS[name](fast_key(KEY)), expected)
    np.testing.assert_array_equal(jax.jit(lambda key: DRAWS[name](fast_key(key)))(KEY), expected)


def test_double_precision_numbers_are_those_of_jax():
    with jax.enable_x64(True):
        expected = jax.random.normal(KEY, (5,), "float64")
        np.testing.assert_array_equal(jax.random.normal(fast_key(KEY), (5,), "float64"), expected)


def test_raw_keys_are_taken_and_other_generators_left_alone():
    raw = jax.random.key_data(KEY)
    np.testing.assert_array_equal(jax.random.bits(fast_key(raw), (4,)), jax.random.bits(KEY, (4,)))
    other = jax.random.key(0, impl="rbg")
    assert fast_key(other) is other
    assert jnp.issubdtype(fast_key(fast_key(KEY)).dtype, jax.dtypes.prng_key)
