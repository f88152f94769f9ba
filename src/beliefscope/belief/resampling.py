"""Resampling: weights → the indices of the particles that live on, each as often as its weight says on average."""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.errors import require

Resampling = Literal["multinomial", "systematic"]

_BLOCK = 32


def resampler(scheme: Resampling) -> Callable[[PRNGKeyArray, Array], Array]:
    """The function (key, weights [M] that sum to 1) → ancestors [M] of that name."""
    require(
        scheme in get_args(Resampling),
        rule=f"resampling is one of {', '.join(get_args(Resampling))}",
        received=scheme,
        advice="the paper uses multinomial",
    )
    return {"multinomial": multinomial, "systematic": systematic}[scheme]


def multinomial(key: PRNGKeyArray, weights: Float[Array, " M"]) -> Int[Array, " M"]:
    """M independent draws, as in the paper."""
    cumulative = _running_share(weights)
    levels = jax.random.uniform(key, weights.shape, dtype=weights.dtype)
    # The same binary search, as a loop where loops are cheap and written out where each turn is a launch.
    loop, unrolled = (partial(jnp.searchsorted, side="right", method=method) for method in ("scan", "scan_unrolled"))
    return jax.lax.platform_dependent(cumulative, levels, cpu=loop, default=unrolled)


def systematic(key: PRNGKeyArray, weights: Float[Array, " M"]) -> Int[Array, " M"]:
    """One draw u for the whole set: levels (u + 0)/M, (u + 1)/M, …, whose spread is smaller.

    Particle i answers for the levels below its running share c_i, the first ⌈M c_i − u⌉ of them. Counting for each
    level how many particles end at or before it gives the ancestor without a search.
    """
    count = len(weights)
    offset = jax.lax.optimization_barrier(jax.random.uniform(key, dtype=weights.dtype))
    end = jnp.ceil(count * _running_share(weights) - offset).astype(int)
    ending = jnp.zeros(count, weights.dtype).at[end].add(1, mode="drop")
    return _running_sum(ending).astype(int)


def _running_share(weights: Float[Array, " M"]) -> Float[Array, " M"]:
    """Running sums of the weights as shares of their total.

    Rounding the weights first, to multiples of 2⁻²³ in single precision, makes the sums exact, hence non-decreasing,
    whatever order they are taken in: a particle of weight zero is never drawn.
    """
    grain = 2.0 ** -jnp.finfo(weights.dtype).nmant
    sums = _running_sum(jnp.round(weights / grain) * grain)
    return sums / sums[-1]


def _running_sum(values: Float[Array, " M"]) -> Float[Array, " M"]:
    """Prefix sums by blocks: a product with a triangle inside each, then the blocks' totals (three times as fast)."""
    count = len(values)
    blocks = jnp.pad(values, (0, -count % _BLOCK)).reshape(-1, _BLOCK)
    triangle = jnp.triu(jnp.ones((_BLOCK, _BLOCK), values.dtype))
    inside = jnp.matmul(blocks, triangle, precision="highest")
    before = jnp.cumsum(inside[:, -1]) - inside[:, -1]
    return (inside + before[:, None]).reshape(-1)[:count]
