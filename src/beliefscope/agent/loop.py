"""The steps of a gated layer as loops that XLA compiles: forward, and backward from what the forward loop kept.

Time comes first. Only the first `steps` are walked, a number known when the program runs. A row may hold several
sequences one behind the other: `fresh` says where a new one begins, with an empty memory.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from beliefscope.agent.cells.gated import Blocks, GatedCell, add_recurrent, product_with, split

Steps = int | Int[Array, ""]
Fresh = Bool[Array, "time rows"] | None


def walk_forward(
    kind: type[GatedCell],
    projected: Float[Array, "time rows columns"],
    recurrent: Float[Array, "..."],
    inner: Float[Array, "n n"] | None,
    fresh: Fresh,
    steps: Steps,
) -> tuple[Blocks, Float[Array, "time rows columns"]]:
    """The memories before the first and after every step [time + 1, rows, n], and the activations of every step."""
    (time, rows, columns), dtype = projected.shape, projected.dtype
    size = columns // kind.blocks

    def body(carry):
        # The slab of products becomes the slab of activations in place: a step's row is read when the last is written.
        t, row, memory, memories, slab = carry
        memory = _emptied(memory, fresh, t)
        products = add_recurrent(row, memory[0], recurrent)
        memory, kept = kind.gates(split(products, size), memory, product_with(inner))
        memories = tuple(_put(record, part, t + 1) for record, part in zip(memories, memory, strict=True))
        slab = _write(slab, t, kept)
        return t + 1, _at(slab, t + 1), memory, memories, slab

    empty = (jnp.zeros((rows, size), dtype),) * kind.memory_parts
    memories = tuple(jnp.zeros((time + 1, rows, size), dtype) for _ in empty)
    start = (0, projected[0], empty, memories, projected)
    *_, memories, kept = lax.while_loop(lambda carry: carry[0] < steps, body, start)
    return memories, kept


def walk_backward(
    kind: type[GatedCell],
    kept: Float[Array, "time rows columns"],
    memories: Blocks,
    d_hidden: Float[Array, "time rows n"],
    recurrent: Float[Array, "..."],
    inner: Float[Array, "n n"] | None,
    fresh: Fresh,
    steps: Steps,
) -> Float[Array, "time rows columns"]:
    """The gradient with respect to the products of every step, from that with respect to the hidden states."""
    _, rows, size = d_hidden.shape
    # On CPU a product with a transposed matrix is slower than one with a matrix written out the other way round.
    recurrent_t = lax.optimization_barrier(recurrent.T)
    inner_t = None if inner is None else lax.optimization_barrier(inner.T)

    def body(carry):
        t, row, d_memory, slab = carry
        before = _emptied(tuple(_at(part, t) for part in memories), fresh, t)
        d_memory = (d_memory[0] + _at(d_hidden, t), *d_memory[1:])
        blocks, d_memory = kind.gates_backward(split(row, size), before, d_memory, product_with(inner_t))
        slab = _write(slab, t, blocks)
        if recurrent.ndim == 2:
            through = _at(slab, t)[:, : recurrent.shape[1]] @ recurrent_t
        else:
            through = sum(block * w for block, w in zip(blocks, split(recurrent, size), strict=False))
        d_memory = _emptied((d_memory[0] + through, *d_memory[1:]), fresh, t)
        return t - 1, _at(slab, t - 1), d_memory, slab

    none = (jnp.zeros((rows, size), d_hidden.dtype),) * kind.memory_parts
    last = jnp.asarray(steps - 1)
    *_, d_products = lax.while_loop(lambda carry: carry[0] >= 0, body, (last, _at(kept, last), none, kept))
    return d_products


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
