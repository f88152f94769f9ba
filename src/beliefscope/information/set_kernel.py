"""The sum over each set of ψ's hidden layers as one GPU kernel for each direction, written in Pallas.

    S = Σ_p relu(W2ᵀ relu(W1ᵀ y_p + b1) + b2)        for the particles y_p of a set

XLA writes a layer's output for two million particles to memory and reads it again. Here it stays in registers, and the
backward pass computes it again. Two facts make that cheap. First, the gradient s of S is the same for all particles of
a set, so with the mask m_p = 1[second layer > 0] the gradient of W2 is (Σ_p h_p ⊗ m_p) diag(s), and that of h_p is
W2 diag(s) m_p. Second, one factor of both products is 0 or 1, which bfloat16 represents exactly.

Products are taken on tensor cores, of factors in bfloat16. Forward each factor is the sum of two such numbers, its
halves, which together keep 16 bits, and a product is three. The first layer is a product too: a particle is given as
the halves of its numbers beside two ones, which stand before the halves of b1. Particles are rows, so that a layer's
output is the left factor of the next product, which may stay in registers. Backward, factors are rounded to 8 bits: a
gradient is off by about 1 % of its largest entry. No score is computed from what is rounded so.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

_TILE, _TILE_BACK = 128, 64  # particles at a time
_FORWARD = triton.CompilerParams(num_warps=4, num_stages=2)
_BACKWARD = triton.CompilerParams(num_warps=2, num_stages=2)
_SETS = 4  # for each program of the backward pass, which adds up their gradients
_MOST_INPUTS = 31  # more do not fit in a product of depth 64
_HIGH = np.uint32(0xFFFF0000)  # the bits of a number that bfloat16 keeps


class Weights(NamedTuple):
    """Of some layers; a matrix is [inputs, outputs]."""

    matrices: tuple[Float[Array, "inputs outputs"], ...]
    biases: tuple[Float[Array, " outputs"], ...]


def fits(inputs: int, wide: int, wider: int) -> bool:
    """Can the kernels take layers of these sizes?"""
    return inputs <= _MOST_INPUTS and all(size >= 16 and size & (size - 1) == 0 for size in (wide, wider))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def sum_hidden(
    weights: Weights, sets: Float[Array, "sets members inputs"], interpret: bool = False
) -> Float[Array, "sets wider"]:
    """S of each set."""
    rows, layers, wider = _rows(sets), _layers(weights), len(weights.biases[1])
    return pl.pallas_call(
        partial(_forward_kernel, sets.shape[1]),
        out_shape=jax.ShapeDtypeStruct((len(sets), wider), jnp.float32),
        grid=(len(sets),),
        in_specs=[_over(rows, 1), *map(_whole, layers)],
        out_specs=pl.BlockSpec((1, wider), lambda program: (program, 0)),
        compiler_params=_FORWARD,
        interpret=interpret,
    )(rows, *layers)


def _forward(weights: Weights, sets: Float[Array, "sets members inputs"], interpret: bool):
    return sum_hidden(weights, sets, interpret), (weights, sets)


def _backward(interpret: bool, kept, d_sum: Float[Array, "sets wider"]):
    weights, sets = kept
    extra = -len(sets) % _SETS
    rows, d_sum = (jnp.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)) for array in (_rows(sets), d_sum))
    layers, programs, inputs = _layers(weights), len(rows) // _SETS, sets.shape[2]
    (wide, wider), depth = weights.matrices[1].shape, rows.shape[2]
    shapes = (wide, depth), (wide, wider), (wider,)
    gradients = [jax.ShapeDtypeStruct((programs, *shape), jnp.float32) for shape in shapes]
    found = pl.pallas_call(
        partial(_backward_kernel, sets.shape[1]),
        out_shape=gradients,
        grid=(programs,),
        in_specs=[_over(rows, _SETS), _over(d_sum, _SETS), *map(_whole, layers)],
        out_specs=[_over(gradient, 1) for gradient in gradients],
        compiler_params=_BACKWARD,
        interpret=interpret,
    )(rows, d_sum, *layers)
    first, second, second_bias = (jnp.sum(each, axis=0) for each in found)
    upper, lower, first_bias = first[:, :inputs], first[:, inputs : 2 * inputs], first[:, 2 * inputs]
    return Weights(((upper + lower).T, second), (first_bias, second_bias)), jnp.zeros_like(sets)


sum_hidden.defvjp(_forward, _backward)


def _rows(sets: Float[Array, "sets members inputs"]) -> Float[Array, "sets padded depth"]:
    """Of each particle the halves of its numbers and two ones, in whole tiles."""
    ones = jnp.ones((*sets.shape[:2], 2), jnp.bfloat16)
    rows = jnp.concatenate([*split(sets), ones], axis=2)
    return jnp.pad(rows, ((0, 0), (0, -sets.shape[1] % _TILE), (0, _unused(sets.shape[2]))))


def _layers(weights: Weights) -> tuple[Array, ...]:
    """The first layer as two matrices for such rows, and the second."""
    (first, second), (first_bias, second_bias) = weights
    (upper, lower), (bias_upper, bias_lower) = split(first), split(first_bias)
    one = jnp.concatenate([upper, upper, bias_upper[None], bias_lower[None]])
    padded = jnp.pad(one, ((0, _unused(len(first))), (0, 0)))
    return padded, jnp.pad(lower, ((0, len(padded) - len(lower)), (0, 0))), second, second_bias


def _unused(inputs: int) -> int:
    """Columns to fill up the rows: the depth of a product is a power of two."""
    depth = 2 * inputs + 2
    return max(16, 1 << (depth - 1).bit_length()) - depth


def _forward_kernel(members: int, rows, first, first_low, second, second_bias, out):
    high, low = split(second[...])

    def step(tile, total):
        upper, lower = split(_first_layer(rows[0, pl.ds(tile * _TILE, _TILE), :], first, first_low))
        below = _dot(upper, high) + (_dot(lower, high) + _dot(upper, low)) + second_bias[...][None]
        return total + jnp.where(_inside(tile, _TILE, members), jnp.maximum(below, 0), 0)

    total = lax.fori_loop(0, rows.shape[1] // _TILE, step, jnp.zeros((_TILE, second.shape[1]), jnp.float32))
    out[0, :] = jnp.sum(total, axis=0)


def _backward_kernel(members: int, rows, d_sum, first, first_low, second, second_bias, *gradients):
    (wide, wider), depth = second.shape, rows.shape[2]
    matrix = second[...]
    rounded = _rounded(matrix)

    def of_set(number, sums):
        slope = d_sum[number, :]
        back = _rounded((matrix * slope[None]).T)

        def step(tile, sums):
            given = rows[number, pl.ds(tile * _TILE_BACK, _TILE_BACK), :]
            hidden = _first_layer(given, first, first_low)
            below = _dot(_rounded(hidden), rounded) + second_bias[...][None]
            mask = jnp.where(_inside(tile, _TILE_BACK, members) & (below > 0), 1.0, 0.0)
            active = _rounded(mask)
            d_hidden = jnp.where(hidden > 0, _dot(active, back), 0)
            seen = _dot(_rounded(hidden).T, active)
            return _added(sums, (_dot(_rounded(d_hidden).T, given), seen, jnp.sum(mask, axis=0)))

        d_first, seen, active = lax.fori_loop(0, rows.shape[1] // _TILE_BACK, step, empty)
        return _added(sums, (d_first, seen * slope[None], active * slope))

    empty = tuple(jnp.zeros(shape, jnp.float32) for shape in ((wide, depth), (wide, wider), (wider,)))
    for out, each in zip(gradients, lax.fori_loop(0, _SETS, of_set, empty), strict=True):
        out[0, ...] = each


def _inside(tile, size: int, members: int) -> Array:
    """Which rows of a tile are particles."""
    return (tile * size + lax.broadcasted_iota(jnp.int32, (size, 1), 0)) < members


def _first_layer(given: Float[Array, "tile depth"], first, first_low) -> Float[Array, "tile wide"]:
    return jnp.maximum(_dot(given, first[...]) + _dot(given, first_low[...]), 0)


def split(number: Float[Array, "*shape"]) -> tuple[Array, Array]:
    """Two bfloat16 numbers whose sum equals it to one part in 2^15."""
    high = lax.bitcast_convert_type(lax.bitcast_convert_type(number, jnp.uint32) & _HIGH, jnp.float32)
    return high.astype(jnp.bfloat16), (number - high).astype(jnp.bfloat16)


def _rounded(number: Float[Array, "*shape"]) -> Array:
    return number.astype(jnp.bfloat16)


def _dot(left, right):
    if jax.default_backend() == "cpu":  # where the kernels are interpreted, and not all such products are known
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.dot(left, right, preferred_element_type=jnp.float32)


def _added(left, right):
    return jax.tree.map(jnp.add, left, right)


def _whole(array: Array) -> pl.BlockSpec:
    return pl.BlockSpec(array.shape, lambda program: (0,) * array.ndim)


def _over(array: Array | jax.ShapeDtypeStruct, count: int) -> pl.BlockSpec:
    """So many entries of the first axis for each program."""
    return pl.BlockSpec((count, *array.shape[1:]), lambda program: (program,) + (0,) * (len(array.shape) - 1))
