"""The sum over each set of ψ's hidden layers as one GPU kernel for each direction, written in Pallas.

    S = Σ_p relu(W2ᵀ relu(W1ᵀ y_p + b1) + b2)        for the particles y_p of a set

XLA writes a layer's output for two million particles to memory and reads it again. Here it stays in registers, and the
backward pass computes it again. Two facts make that cheap. First, the gradient s of S is the same for all particles of
a set, so with the mask m_p = 1[second layer > 0] the gradient of W2 is (Σ_p h_p ⊗ m_p) diag(s), and that of h_p is
W2 diag(s) m_p. Second, one factor of both products is 0 or 1, which bfloat16 represents exactly.

Products are taken on tensor cores, of factors in bfloat16. Forward each factor is the sum of two such numbers, which
together keep 16 bits, and a product is three. Backward, factors are rounded to 8 bits: a gradient is off by about
1 % of its largest entry. No score is computed from what is rounded so.
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

_TILE = 64  # particles at a time: more do not fit in registers in the backward pass
_SETS = 4  # for each program of the backward pass, which adds up their gradients
_PARAMETERS = triton.CompilerParams(num_warps=4, num_stages=2)
_HIGH = np.uint32(0xFFFF0000)  # the bits of a number that bfloat16 keeps


class Weights(NamedTuple):
    """Of two layers; a matrix is [inputs, outputs]."""

    matrices: tuple[Float[Array, "inputs outputs"], ...]
    biases: tuple[Float[Array, " outputs"], ...]


def fits(wide: int, wider: int) -> bool:
    """Can the kernels take a second layer of this shape?"""
    return all(size >= 16 and size & (size - 1) == 0 for size in (wide, wider))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def sum_hidden(
    weights: Weights, sets: Float[Array, "sets members inputs"], interpret: bool = False
) -> Float[Array, "sets wider"]:
    """S of each set."""
    rows, wider = _rows(sets), len(weights.biases[1])
    return pl.pallas_call(
        partial(_forward_kernel, sets.shape[1]),
        out_shape=jax.ShapeDtypeStruct((len(sets), wider), jnp.float32),
        grid=(len(sets),),
        in_specs=[_over(rows, 1), *map(_whole, _columns(weights))],
        out_specs=pl.BlockSpec((1, wider), lambda program: (program, 0)),
        compiler_params=_PARAMETERS,
        interpret=interpret,
    )(rows, *_columns(weights))


def _forward(weights: Weights, sets: Float[Array, "sets members inputs"], interpret: bool):
    return sum_hidden(weights, sets, interpret), (weights, sets)


def _backward(interpret: bool, kept, d_sum: Float[Array, "sets wider"]):
    weights, sets = kept
    extra = -len(sets) % _SETS
    rows, d_sum = (jnp.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)) for array in (_rows(sets), d_sum))
    columns, programs = _columns(weights), len(rows) // _SETS
    gradients = [jax.ShapeDtypeStruct((programs, *array.shape), jnp.float32) for array in columns]
    found = pl.pallas_call(
        partial(_backward_kernel, sets.shape[1]),
        out_shape=gradients,
        grid=(programs,),
        in_specs=[_over(rows, _SETS), _over(d_sum, _SETS), *map(_whole, columns)],
        out_specs=[_over(gradient, 1) for gradient in gradients],
        compiler_params=_PARAMETERS,
        interpret=interpret,
    )(rows, d_sum, *columns)
    first, first_bias, second, second_bias = (jnp.sum(each, axis=0) for each in found)
    return Weights((first.T, second.T), (first_bias, second_bias)), jnp.zeros_like(sets)


sum_hidden.defvjp(_forward, _backward)


def _rows(sets: Float[Array, "sets members inputs"]) -> Float[Array, "sets inputs padded"]:
    """A row for each coordinate, in whole tiles."""
    return jnp.pad(sets, ((0, 0), (0, -sets.shape[1] % _TILE), (0, 0))).swapaxes(1, 2)


def _columns(weights: Weights) -> tuple[Array, ...]:
    """Particles are columns, so that matrices stand on their left."""
    (first, second), (first_bias, second_bias) = weights
    return first.T, first_bias, second.T, second_bias


def _forward_kernel(members: int, rows, first, first_bias, second, second_bias, out):
    high, low = split(second[...])

    def step(tile, total):
        upper, lower = split(_first_layer(_coordinates(rows, 0, tile), first, first_bias))
        below = _dot(high, upper) + (_dot(high, lower) + _dot(low, upper)) + second_bias[...][:, None]
        return total + jnp.where(_inside(tile, members), jnp.maximum(below, 0), 0)

    total = lax.fori_loop(0, rows.shape[2] // _TILE, step, jnp.zeros((second.shape[0], _TILE), jnp.float32))
    out[0, :] = jnp.sum(total, axis=1)


def _backward_kernel(members: int, rows, d_sum, first, first_bias, second, second_bias, *gradients):
    (wider, wide), inputs = second.shape, first.shape[1]
    matrix = second[...]

    def of_set(number, sums):
        slope = d_sum[number, :]
        back = _rounded((matrix * slope[:, None]).T)

        def step(tile, sums):
            coordinates = _coordinates(rows, number, tile)
            hidden = _first_layer(coordinates, first, first_bias)
            below = _dot(_rounded(matrix), _rounded(hidden)) + second_bias[...][:, None]
            mask = jnp.where(_inside(tile, members) & (below > 0), 1.0, 0.0)
            d_hidden = jnp.where(hidden > 0, _dot(back, _rounded(mask)), 0)
            d_first = tuple(jnp.sum(d_hidden * row[None], axis=1) for row in coordinates)
            seen = _dot(_rounded(mask), _rounded(hidden).T)
            return _added(sums, (d_first, jnp.sum(d_hidden, axis=1), seen, jnp.sum(mask, axis=1)))

        d_first, d_first_bias, seen, active = lax.fori_loop(0, rows.shape[2] // _TILE, step, empty)
        return _added(sums, (d_first, d_first_bias, seen * slope[:, None], active * slope))

    column = jnp.zeros(wide, jnp.float32)
    empty = (column,) * inputs, column, jnp.zeros((wider, wide), jnp.float32), jnp.zeros(wider, jnp.float32)
    d_first, *others = lax.fori_loop(0, _SETS, of_set, empty)
    for place, each in enumerate(d_first):
        gradients[0][0, :, place] = each
    for out, each in zip(gradients[1:], others, strict=True):
        out[0, ...] = each


def _coordinates(rows, number, tile) -> list[Array]:
    return [rows[number, place, pl.ds(tile * _TILE, _TILE)] for place in range(rows.shape[1])]


def _inside(tile, members: int) -> Array:
    """Which columns of a tile are particles."""
    return (tile * _TILE + lax.broadcasted_iota(jnp.int32, (1, _TILE), 1)) < members


def _first_layer(coordinates: list[Array], first, first_bias) -> Float[Array, "wide tile"]:
    below = first_bias[...][:, None]
    for place, row in enumerate(coordinates):
        below = below + first[:, place][:, None] * row[None]
    return jnp.maximum(below, 0)


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
