"""The numbers of JAX's default random keys, drawn several times faster on CPU.

JAX compiles its Threefry generator as a loop there, with a pass over memory for each of its rounds. Here the rounds are
written out and a draw is one kernel. The numbers are bit for bit those of `jax.random.key`.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, ArrayLike, PRNGKeyArray, UInt

from beliefscope.errors import require

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def fast_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """The same key with the faster generator; keys of other generators than Threefry come back unchanged."""
    require(
        isinstance(key, jax.Array),
        rule="a random key is made by jax.random.key",
        received=key,
        advice="pass jax.random.key(0), say",
    )
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_UNROLLED)


def _threefry(key: UInt[Array, "2"], count: UInt[Array, "*shape"]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds of the block (0, count)."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    left = jnp.broadcast_to(schedule[0], count.shape)
    right = count + schedule[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            left = left + right
            turned = (right << np.uint32(distance)) | (right >> np.uint32(32 - distance))
            right = left ^ turned
        left = left + schedule[(group + 1) % 3]
        right = right + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return left, right


def _counts(shape: tuple[int, ...]) -> UInt[Array, "*shape"]:
    return jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed))


# Compiled, or a key that is split outside a program would be a hundred small ones.
@partial(jax.jit, static_argnums=1, inline=True)
def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return _whole(jnp.stack(_threefry(key, _counts(shape)), axis=-1))


@partial(jax.jit, inline=True)
def _fold_in(key: Array, data: ArrayLike) -> Array:
    return _whole(jnp.stack(_threefry(key, jnp.asarray(data).astype(jnp.uint32))))


@partial(jax.jit, static_argnums=(1, 2), inline=True)
def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    left, right = _threefry(key, _counts(shape))
    if bit_width == 64:
        return _whole((left.astype(jnp.uint64) << np.uint64(32)) | right.astype(jnp.uint64))
    return _whole((left ^ right).astype(f"uint{bit_width}"))


def _whole(bits: Array) -> Array:
    """Keep the compiler from drawing the same bits again in every kernel that reads them."""
    return jax.lax.optimization_barrier(bits)


_UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="unrolled_threefry2x32",
    tag="unrolled",
)


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """The same generator for the same key, as good as independent for different keys."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
