"""Recurrent layers over many steps of a batch of rows, with their own backward pass.

The time axis comes first. Only its first `steps` entries count, a number known when the program runs; the rest must not
be read. A row may hold several sequences, one after the other: `fresh` says where a new one begins and the memory is
empty again. `lay_out` puts the histories of sampled transitions into such rows.

For gated cells the input products of all steps are one product before the steps, and the gradients of the weights one
after them. The steps are a loop that XLA compiles (here) or a GPU kernel (sequence_kernel.py). Other cells run as a
plain scan, which JAX differentiates.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from beliefscope.agent import sequence_kernel
from beliefscope.agent.gated import (
    Blocks,
    Cell,
    GatedCell,
    Matrices,
    add_recurrent,
    products_with,
    split,
    sum_of_outer_products,
)

Steps = int | Int[Array, ""]
Fresh = Bool[Array, "time rows"] | None


class Rows(NamedTuple):
    """The positions of the histories of a batch of sampled transitions."""

    numbers: Int[Array, "time rows"]  # the transition whose input x_t stands there
    fresh: Bool[Array, "time rows"] | None  # does the first history of a row end before?
    row: Int[Array, " batch"]  # the row of each history
    last: Int[Array, " batch"]  # the time of its last input


def pairing(lengths: Int[Array, " batch"]) -> Int[Array, " batch"]:
    """The order in which to lay histories out two to a row: falling to the middle, then rising from the shortest.

    So the longest shares a row with the shortest, the second longest with the second shortest, and so on. The lengths
    of sampled histories spread from 1 to H, so that half as many rows need hardly more steps.
    """
    half = len(lengths) // 2
    falling = jnp.argsort(-lengths)
    return jnp.concatenate([falling[: len(lengths) - half], falling[::-1][:half]])


def steps_needed(lengths: Int[Array, " batch"], *, per_row: int) -> Int[Array, ""]:
    """Time steps of the longest row."""
    rows = -(-len(lengths) // per_row)
    first, second = lengths[:rows], lengths[rows:]
    return jnp.max(first.at[: len(second)].add(second))


def lay_out(starts: Int[Array, " batch"], lengths: Int[Array, " batch"], *, per_row: int, time: int) -> Rows:
    """Rows of `time` steps with one or two histories; history i begins at transition `starts[i]`.

    Steps after a row's last input read the transitions that follow, which does no harm.
    """
    clock = jnp.arange(time)[:, None]
    if per_row == 1:
        return Rows(numbers=starts + clock, fresh=None, row=jnp.arange(len(lengths)), last=lengths - 1)
    # Histories 0 … rows − 1 come first in their rows, the others second; an odd batch leaves one row without a second.
    rows = -(-len(lengths) // 2)
    seconds = len(lengths) - rows
    first_start, first_length = starts[:rows], lengths[:rows]
    second_start = jnp.zeros(rows, int).at[:seconds].set(starts[rows:])
    in_first = clock < first_length
    begins = jnp.concatenate([jnp.zeros_like(first_length), first_length[:seconds]])
    return Rows(
        numbers=clock + jnp.where(in_first, first_start, second_start - first_length),
        fresh=clock == first_length,
        row=jnp.arange(len(lengths)) % rows,
        last=begins + lengths - 1,
    )


def run_layer(
    cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Fresh, steps: Steps
) -> Float[Array, "time rows n"]:
    """The hidden states after each step."""
    if not isinstance(cell, GatedCell):
        return _scan(cell, inputs, fresh)
    weights = _Weights(cell.input_matrix(), cell.bias, cell.recurrent_weights, cell.gate_matrices())
    whole = fresh is None and isinstance(steps, int) and steps == len(inputs)
    fits = sequence_kernel.fits(inputs.shape[1], cell.hidden_size)
    in_kernels = jax.default_backend() == "gpu" and whole and fits
    return _gated(type(cell), in_kernels, inputs, weights, fresh, steps)


def _scan(cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Fresh) -> Float[Array, "time rows n"]:
    """Any cell, step by step."""
    empty = jax.tree.map(jnp.asarray, cell.init_memory())
    rows = inputs.shape[1]
    if fresh is None:
        fresh = jnp.zeros(inputs.shape[:2], bool)

    def step_row(memory, x, new):
        memory = jax.tree.map(lambda old, start: jnp.where(new, start, old), memory, empty)
        return cell.step(memory, x)

    def step(memory, seen):
        memory = jax.vmap(step_row)(memory, *seen)
        return memory, jax.tree.leaves(memory)[0]

    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows, *leaf.shape)), empty)
    return lax.scan(step, start, (inputs, fresh))[1]


class _Weights(NamedTuple):
    """The weights of a gated cell, or their gradients."""

    inputs: Array  # W
    bias: Array  # b
    recurrent: Array  # U
    matrices: Matrices  # those that the gates multiply by


class _Residuals(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    inputs: Array
    memories: Blocks  # before the first and after every step [time + 1, rows, n]
    kept: Array  # the activations of every step [time, rows, columns]
    weights: _Weights
    fresh: Fresh
    steps: Steps


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gated(kind: type[GatedCell], in_kernels: bool, inputs, weights: _Weights, fresh, steps):
    return _gated_forward(kind, in_kernels, inputs, weights, fresh, steps)[0]


def _gated_forward(kind: type[GatedCell], in_kernels: bool, inputs, weights: _Weights, fresh, steps):
    projected = inputs @ weights.inputs + weights.bias
    if in_kernels:
        memories, kept = sequence_kernel.run_forward(kind, projected, weights.recurrent, weights.matrices)
    else:
        computed = jnp.arange(len(inputs))[:, None, None] < steps
        projected = jnp.where(computed, projected, 0)
        memories, kept = loop_forward(kind, projected, weights.recurrent, weights.matrices, fresh, steps)
    return memories[0][1:], _Residuals(inputs, memories, kept, weights, fresh, steps)


def _gated_backward(kind: type[GatedCell], in_kernels: bool, residuals: _Residuals, d_hidden):
    """The gradients with respect to the inputs and the weights, from those of the products of every step."""
    inputs, memories, kept, weights, fresh, steps = residuals
    if in_kernels:
        before = tuple(part[:-1] for part in memories)
        d_products = sequence_kernel.run_backward(kind, kept, before, d_hidden, weights.recurrent, weights.matrices)
    else:
        d_products = loop_backward(kind, kept, memories, d_hidden, weights.recurrent, weights.matrices, fresh, steps)
    hidden = memories[0][:-1]  # h before each step
    if fresh is not None:
        hidden = jnp.where(fresh[..., None], 0, hidden)
    d_weights = _Weights(
        inputs=sum_of_outer_products(inputs, d_products),
        bias=jnp.sum(d_products, axis=(0, 1)),
        recurrent=_recurrent_gradient(hidden, d_products, weights.recurrent),
        matrices=kind.gate_matrix_gradients(hidden, kept, d_products),
    )
    return d_products @ weights.inputs.T, d_weights, None, None


_gated.defvjp(_gated_forward, _gated_backward)


def _recurrent_gradient(
    hidden: Float[Array, "time rows n"], d_products: Float[Array, "time rows columns"], recurrent: Float[Array, "..."]
) -> Float[Array, "..."]:
    size, width = hidden.shape[-1], recurrent.shape[-1]
    if recurrent.ndim == 2:
        return sum_of_outer_products(hidden, d_products[..., :width])
    blocks = split(d_products[..., :width], size)
    return jnp.concatenate([jnp.sum(hidden * block, axis=(0, 1)) for block in blocks])


def loop_forward(
    kind: type[GatedCell],
    projected: Float[Array, "time rows columns"],
    recurrent: Float[Array, "..."],
    matrices: Matrices,
    fresh: Fresh,
    steps: Steps,
) -> tuple[Blocks, Float[Array, "time rows columns"]]:
    """The memories before the first and after every step [time + 1, rows, n], and the activations of every step.

    The array of products becomes the array of activations in place. XLA copies the whole array at every step unless a
    step's row is read after the previous row was written. For this reason the loop carries the next row.
    """
    (time, rows, columns), dtype = projected.shape, projected.dtype
    size = columns // kind.blocks

    def body(carry):
        t, row, memory, memories, slab = carry
        memory = _emptied(memory, fresh, t)
        products = add_recurrent(row, memory[0], recurrent)
        memory, kept = kind.apply_gates(split(products, size), memory, products_with(matrices))
        memories = tuple(_put(record, part, t + 1) for record, part in zip(memories, memory, strict=True))
        slab = _write(slab, t, kept)
        return t + 1, _at(slab, t + 1), memory, memories, slab

    empty = (jnp.zeros((rows, size), dtype),) * kind.memory_parts
    memories = tuple(jnp.zeros((time + 1, rows, size), dtype) for _ in empty)
    start = (0, projected[0], empty, memories, projected)
    *_, memories, kept = lax.while_loop(lambda carry: carry[0] < steps, body, start)
    return memories, kept


def loop_backward(
    kind: type[GatedCell],
    kept: Float[Array, "time rows columns"],
    memories: Blocks,
    d_hidden: Float[Array, "time rows n"],
    recurrent: Float[Array, "..."],
    matrices: Matrices,
    fresh: Fresh,
    steps: Steps,
) -> Float[Array, "time rows columns"]:
    """The gradient with respect to the products of every step, from that with respect to the hidden states.

    The array of activations becomes the array of gradients in place, from the last step to the first.
    """
    _, rows, size = d_hidden.shape
    # On CPU a product with a transposed matrix is slower than one with a matrix written out the other way round.
    recurrent_t = lax.optimization_barrier(recurrent.T)
    multiply_transposed = products_with(tuple(lax.optimization_barrier(matrix.T) for matrix in matrices))

    def through_recurrent(slab, t, blocks):
        """What the products' gradient at t gives to the memory's through U h."""
        if recurrent.ndim == 2:
            return _at(slab, t)[:, : recurrent.shape[1]] @ recurrent_t
        return sum(block * w for block, w in zip(blocks, split(recurrent, size), strict=False))

    def body(carry):
        t, activations, d_memory, slab = carry
        before = _emptied(tuple(_at(part, t) for part in memories), fresh, t)
        d_memory = _with_first(d_memory, d_memory[0] + _at(d_hidden, t))
        blocks, d_memory = kind.apply_gates_backward(split(activations, size), before, d_memory, multiply_transposed)
        slab = _write(slab, t, blocks)
        d_memory = _with_first(d_memory, d_memory[0] + through_recurrent(slab, t, blocks))
        return t - 1, _at(slab, t - 1), _emptied(d_memory, fresh, t), slab

    none = (jnp.zeros((rows, size), d_hidden.dtype),) * kind.memory_parts
    last = jnp.asarray(steps - 1)
    *_, d_products = lax.while_loop(lambda carry: carry[0] >= 0, body, (last, _at(kept, last), none, kept))
    return d_products


def _with_first(memory: Blocks, first: Array) -> Blocks:
    """The memory with another first part, h or its gradient."""
    return first, *memory[1:]


def _emptied(memory: Blocks, fresh: Fresh, t: Steps) -> Blocks:
    """The memory, or zero in rows where a new sequence begins at t."""
    if fresh is None:
        return memory
    return tuple(jnp.where(_at(fresh, t)[:, None], 0, part) for part in memory)


def _write(slab: Float[Array, "time rows columns"], t: Steps, blocks: Blocks) -> Float[Array, "time rows columns"]:
    """Put the blocks side by side at time t."""
    for number, block in enumerate(blocks):
        where = (t, 0, number * block.shape[-1])
        slab = lax.dynamic_update_slice(slab, block[None], where, allow_negative_indices=False)
    return slab


def _at(record: Array, t: Steps) -> Array:
    """What stands at time t; unlike `record[t]` without the work for an index that might be negative."""
    return lax.dynamic_index_in_dim(record, t, keepdims=False, allow_negative_indices=False)


def _put(record: Array, value: Array, t: Steps) -> Array:
    return lax.dynamic_update_index_in_dim(record, value, t, 0, allow_negative_indices=False)
