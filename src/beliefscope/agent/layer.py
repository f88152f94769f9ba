"""One layer over many steps of a batch of rows, with a backward pass of its own.

The time axis comes first. Only the first `steps` of it count, a number known when the program runs; what follows must
not be read. A row may hold several sequences, one behind the other: `fresh` says where a new one begins and the memory
is empty again.

For gated cells the input products of all steps are one product before the walk through time, and the gradients of the
weights one after it; the walk is a loop (loop.py) or a GPU kernel (fused.py). Other cells run as a plain scan, which
JAX differentiates.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from beliefscope.agent import fused, loop
from beliefscope.agent.cells.gated import GatedCell, split
from beliefscope.agent.cells.interface import Cell
from beliefscope.agent.loop import Fresh, Steps

Weights = tuple[Array, Array, Array, Array | None]  # W, b, U, V


def run_layer(
    cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Fresh, steps: Steps
) -> Float[Array, "time rows n"]:
    """The hidden states after each step."""
    if not isinstance(cell, GatedCell):
        return _plain(cell, inputs, fresh)
    weights = (cell.input_matrix(), cell.bias, cell.recurrent_weights, cell.inner_weights)
    whole = fresh is None and isinstance(steps, int) and steps == len(inputs)
    in_kernels = jax.default_backend() == "gpu" and whole and fused.fits(inputs.shape[1], cell.hidden_size)
    return _gated(type(cell), in_kernels, inputs, weights, fresh, steps)


def _plain(cell: Cell, inputs: Float[Array, "time rows inputs"], fresh: Fresh) -> Float[Array, "time rows n"]:
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


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gated(kind: type[GatedCell], in_kernels: bool, inputs, weights: Weights, fresh, steps):
    return _gated_forward(kind, in_kernels, inputs, weights, fresh, steps)[0]


def _gated_forward(kind: type[GatedCell], in_kernels: bool, inputs, weights: Weights, fresh, steps):
    matrix, bias, recurrent, inner = weights
    if in_kernels:
        memories, kept = fused.walk_forward(kind, inputs @ matrix + bias, recurrent, inner)
    else:
        computed = jnp.arange(len(inputs))[:, None, None] < steps
        projected = jnp.where(computed, inputs @ matrix + bias, 0)
        memories, kept = loop.walk_forward(kind, projected, recurrent, inner, fresh, steps)
    return memories[0][1:], (inputs, memories, kept, weights, fresh, steps)


def _gated_backward(kind: type[GatedCell], in_kernels: bool, residuals, d_hidden):
    inputs, memories, kept, (matrix, _, recurrent, inner), fresh, steps = residuals
    hidden, size = memories[0][:-1], d_hidden.shape[-1]
    if in_kernels:
        before = tuple(part[:-1] for part in memories)
        d_products = fused.walk_backward(kind, kept, before, d_hidden, recurrent, inner)
    else:
        d_products = loop.walk_backward(kind, kept, memories, d_hidden, recurrent, inner, fresh, steps)
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
