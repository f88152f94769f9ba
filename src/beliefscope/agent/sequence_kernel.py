"""The steps of a gated layer as one GPU kernel for each direction, written in Pallas.

A loop that XLA compiles launches several kernels at every step, and at our sizes a GPU spends most of its time on
launches. Here one program takes sixteen rows of one agent through all the steps, with the memory in registers. The
gates are those of the cells.

The memory's size must be a power of two of at least 16, the number of rows a multiple of 16.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from beliefscope.agent.gated import Blocks, GatedCell, Matrices, Product

_ROWS = 16


def fits(rows: int, size: int) -> bool:
    """Can the kernels take this shape?"""
    return rows % _ROWS == 0 and size >= 16 and size & (size - 1) == 0


def run_forward(
    kind: type[GatedCell],
    projected: Float[Array, "time rows columns"],
    recurrent: Float[Array, "..."],
    matrices: Matrices,
    *,
    interpret: bool = False,
) -> tuple[Blocks, Float[Array, "time rows columns"]]:
    """As `sequence.loop_forward`, over all of the time axis, for rows of one sequence each."""
    (time, rows, columns), dtype = projected.shape, projected.dtype
    size = columns // kind.blocks
    memory = jax.ShapeDtypeStruct((time, rows, size), dtype)
    weights = [recurrent, *matrices]
    *memories, kept = pl.pallas_call(
        partial(_forward_kernel, kind, size, len(weights)),
        out_shape=(memory,) * kind.memory_parts + (jax.ShapeDtypeStruct(projected.shape, dtype),),
        grid=(rows // _ROWS,),
        in_specs=[_over_rows(projected), *(_whole(w) for w in weights)],
        out_specs=(_over_rows(memory),) * kind.memory_parts + (_over_rows(projected),),
        interpret=interpret,
    )(projected, *weights)
    empty = jnp.zeros((1, rows, size), dtype)
    return tuple(jnp.concatenate([empty, part]) for part in memories), kept


def run_backward(
    kind: type[GatedCell],
    kept: Float[Array, "time rows columns"],
    memories: Blocks,
    d_hidden: Float[Array, "time rows n"],
    recurrent: Float[Array, "..."],
    matrices: Matrices,
    *,
    interpret: bool = False,
) -> Float[Array, "time rows columns"]:
    """As `sequence.loop_backward`, over all of the time axis, for rows of one sequence each."""
    _, rows, size = d_hidden.shape
    weights = [recurrent.T, *(matrix.T for matrix in matrices)]
    arrays = [kept, *memories, d_hidden]
    return pl.pallas_call(
        partial(_backward_kernel, kind, size, len(weights)),
        out_shape=jax.ShapeDtypeStruct(kept.shape, kept.dtype),
        grid=(rows // _ROWS,),
        in_specs=[*(_over_rows(array) for array in arrays), *(_whole(w) for w in weights)],
        out_specs=_over_rows(kept),
        interpret=interpret,
    )(*arrays, *weights)


def _forward_kernel(kind: type[GatedCell], size: int, num_weights: int, projected, *rest):
    (recurrent, *matrices), (*memories, kept) = rest[:num_weights], rest[num_weights:]
    driven = recurrent.shape[-1] // size  # how many blocks have a recurrent product

    def step(t, memory):
        products = [projected[t, :, _block(number, size)] for number in range(kind.blocks)]
        for number in range(driven):
            products[number] += _recurrent_product(memory[0], recurrent, number, size)
        memory, activations = kind.apply_gates(tuple(products), memory, _products_with(matrices))
        for record, part in zip(memories, memory, strict=True):
            record[t, :, :] = part
        for number, block in enumerate(activations):
            kept[t, :, _block(number, size)] = block
        return memory

    empty = tuple(jnp.zeros((_ROWS, size), kept.dtype) for _ in memories)
    lax.fori_loop(0, projected.shape[0], step, empty)


def _backward_kernel(kind: type[GatedCell], size: int, num_weights: int, kept, *rest):
    *inputs, d_products = rest
    (*memories, d_hidden), (recurrent, *matrices) = inputs[:-num_weights], inputs[-num_weights:]
    time = kept.shape[0]
    driven = recurrent.shape[0] // size

    def step(number_back, d_memory):
        t = time - 1 - number_back
        activations = tuple(kept[t, :, _block(number, size)] for number in range(kind.blocks))
        before = tuple(part[t, :, :] for part in memories)
        d_memory = (d_memory[0] + d_hidden[t, :, :], *d_memory[1:])
        blocks, d_memory = kind.apply_gates_backward(activations, before, d_memory, _products_with(matrices))
        d_h = d_memory[0]
        for number, block in enumerate(blocks):
            d_products[t, :, _block(number, size)] = block
            if number < driven:
                d_h += _transposed_product(block, recurrent, number, size)
        return d_h, *d_memory[1:]

    lax.fori_loop(0, time, step, tuple(jnp.zeros((_ROWS, size), kept.dtype) for _ in memories))


def _recurrent_product(hidden, recurrent, number: int, size: int):
    """One block of U h."""
    if len(recurrent.shape) == 1:
        return hidden * recurrent[_block(number, size)][None, :]
    return _dot(hidden, recurrent[:, _block(number, size)])


def _transposed_product(block, recurrent_t, number: int, size: int):
    """What a block of the products' gradient gives to the memory's through U."""
    if len(recurrent_t.shape) == 1:
        return block * recurrent_t[_block(number, size)][None, :]
    return _dot(block, recurrent_t[_block(number, size), :])


def _products_with(matrices) -> tuple[Product, ...]:
    return tuple(lambda vector, matrix=matrix: _dot(vector, matrix[...]) for matrix in matrices)


def _dot(left, right):
    return jnp.dot(left, right, precision=lax.Precision.HIGHEST)


def _block(number: int, size: int):
    return pl.ds(number * size, size)


def _over_rows(array: Array | jax.ShapeDtypeStruct) -> pl.BlockSpec:
    """Sixteen rows for each program."""
    return pl.BlockSpec((array.shape[0], _ROWS, array.shape[2]), lambda row: (0, row, 0))


def _whole(array: Array) -> pl.BlockSpec:
    return pl.BlockSpec(array.shape, lambda row: (0,) * array.ndim)
