"""One layer over many steps of a batch of rows, with a backward pass of its own.

The time axis comes first. Only the first `steps` of it are computed, a number known when the program runs; what follows is
zero, and so is its gradient. A row may hold several sequences, one behind the other: `fresh` says where a new one begins
and the memory is empty again.

For gated cells the input products of all steps are one product before the loop, and the gradients of the weights one after
it. Other cells run as a plain scan and are differentiated by JAX.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from beliefscope.agent.cells.gated import Blocks, GatedCell, add_recurrent, split
from beliefscope.agent.cells.interface import Cell

Steps = int | Int[Array, ""]
Weights = tuple[Array, Array, Array, Array | None]  # W, b, U, V


def run_layer(
    cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Bool[Array, "time rows"] | None, steps: Steps
) -> Float[Array, "time rows n"]:
    """The hidden states after each step."""
    if isinstance(cell, GatedCell):
        weights = (cell.input_matrix(), cell.bias, cell.recurrent_weights, cell.inner_weights)
        return _gated(type(cell), inputs, weights, fresh, steps)
    return _plain(cell, inputs, fresh)


def _plain(
    cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Bool[Array, "time rows"] | None
) -> Float[Array, "time rows n"]:
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


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _gated(kind: type[GatedCell], inputs, weights: Weights, fresh, steps):
    return _gated_forward(kind, inputs, weights, fresh, steps)[0]


def _gated_forward(kind: type[GatedCell], inputs, weights: Weights, fresh, steps):
    """The hidden states, and for the way back: the memories before the first and after every step, the activations."""
    matrix, bias, recurrent, inner = weights
    (time, rows, _), size = inputs.shape, bias.shape[0] // kind.blocks
    computed = jnp.arange(time)[:, None, None] < steps
    projected = jnp.where(computed, inputs @ matrix + bias, 0)

    def body(carry):
        # The slab of products becomes the slab of activations, in place: a row is read after the last one was written.
        t, row, memory, memories, slab = carry
        memory = _emptied(memory, fresh, t)
        products = add_recurrent(row, memory[0], recurrent)
        memory, kept = kind.gates(split(products, size), memory, lambda v: v @ inner)
        memories = tuple(_put(record, part, t + 1) for record, part in zip(memories, memory, strict=True))
        slab = _write(slab, t, kept)
        return t + 1, _at(slab, t + 1), memory, memories, slab

    empty = (jnp.zeros((rows, size), bias.dtype),) * kind.memory_parts
    memories = tuple(jnp.zeros((time + 1, rows, size), bias.dtype) for _ in empty)
    start = (0, projected[0], empty, memories, projected)
    *_, memories, kept = lax.while_loop(lambda carry: carry[0] < steps, body, start)
    return memories[0][1:], (inputs, memories, kept, weights, fresh, steps)


def _gated_backward(kind: type[GatedCell], residuals, d_hidden):
    inputs, memories, kept, (matrix, _, recurrent, inner), fresh, steps = residuals
    _, rows, size = d_hidden.shape
    # On CPU a product with a transposed matrix is slower than one with a matrix written out the other way round.
    recurrent_t, inner_t = (None if w is None else lax.optimization_barrier(w.T) for w in (recurrent, inner))

    def body(carry):
        t, row, d_memory, slab = carry
        before = _emptied(tuple(_at(part, t) for part in memories), fresh, t)
        d_memory = (d_memory[0] + _at(d_hidden, t), *d_memory[1:])
        blocks, d_memory = kind.gates_backward(split(row, size), before, d_memory, lambda d: d @ inner_t)
        slab = _write(slab, t, blocks)
        if recurrent.ndim == 2:
            through = _at(slab, t)[:, : recurrent.shape[1]] @ recurrent_t
        else:
            through = sum(block * w for block, w in zip(blocks, split(recurrent, size), strict=False))
        return t - 1, _at(slab, t - 1), _emptied((d_memory[0] + through, *d_memory[1:]), fresh, t), slab

    none = (jnp.zeros((rows, size), d_hidden.dtype),) * kind.memory_parts
    *_, d_products = lax.while_loop(lambda carry: carry[0] >= 0, body, (steps - 1, kept[steps - 1], none, kept))
    hidden = memories[0][:-1]
    if fresh is not None:
        hidden = jnp.where(fresh[..., None], 0, hidden)
    d_weights = (
        _outer(inputs, d_products),
        jnp.sum(d_products, axis=(0, 1)),
        _recurrent_gradient(hidden, d_products, recurrent),
        None if inner is None else _outer(hidden * kept[..., :size], d_products[..., -size:]),
    )
    return d_products @ matrix.T, d_weights, None, None


_gated.defvjp(_gated_forward, _gated_backward)


def _recurrent_gradient(
    hidden: Float[Array, "time rows n"], d_products: Float[Array, "time rows columns"], recurrent: Float[Array, "..."]
) -> Float[Array, "..."]:
    size, width = hidden.shape[-1], recurrent.shape[-1]
    if recurrent.ndim == 2:
        return _outer(hidden, d_products[..., :width])
    blocks = split(d_products[..., :width], size)
    return jnp.concatenate([jnp.sum(hidden * block, axis=(0, 1)) for block in blocks])


def _outer(left: Float[Array, "time rows n"], right: Float[Array, "time rows m"]) -> Float[Array, "n m"]:
    """Sum of outer products over time and rows."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])


def _emptied(memory: Blocks, fresh: Bool[Array, "time rows"] | None, t: Steps) -> Blocks:
    """The memory, or zero in rows where a new sequence begins at t."""
    if fresh is None:
        return memory
    return tuple(jnp.where(_at(fresh, t)[:, None], 0, part) for part in memory)


def _write(
    slab: Float[Array, "time rows columns"], t: Steps, blocks: Blocks
) -> Float[Array, "time rows columns"]:
    """Put the blocks side by side at time t."""
    for number, block in enumerate(blocks):
        slab = lax.dynamic_update_slice(slab, block[None], (t, 0, number * block.shape[-1]), allow_negative_indices=False)
    return slab


def _at(record: Array, t: Steps) -> Array:
    """What stands at time t; unlike `record[t]` without the work of an index that might be negative."""
    return lax.dynamic_index_in_dim(record, t, keepdims=False, allow_negative_indices=False)


def _put(record: Array, value: Array, t: Steps) -> Array:
    return lax.dynamic_update_index_in_dim(record, value, t, 0, allow_negative_indices=False)
