"""Look at a cell before it is trained, so that a mistake in one's own gets a sentence rather than a trace of JAX."""

import inspect

import jax
import jax.numpy as jnp

from beliefscope.agent.cells.interface import Cell
from beliefscope.errors import require


def check_cell(cell: type[Cell], *, input_size: int, hidden_size: int) -> None:
    """Refuse a class that is not a whole cell, or whose step changes the memory's structure, shapes or types."""
    require(
        not inspect.isabstract(cell),
        rule="a cell has the methods __init__, init_memory and step",
        received=f"{cell.__name__} without {', '.join(sorted(cell.__abstractmethods__))}",
        advice="see examples/own_cell.py",
    )

    def one_step(key, inputs):
        built = cell(key, input_size, hidden_size)
        before = jax.tree.map(jnp.asarray, built.init_memory())
        return before, built.step(before, inputs)

    before, after = jax.eval_shape(
        one_step, jax.random.key(0), jax.ShapeDtypeStruct((input_size,), jnp.zeros(()).dtype)
    )
    require(
        _form(before) == _form(after),
        rule=f"a step of {cell.__name__} keeps the memory's structure, shapes and types, here {_form(before)}",
        received=_form(after),
        advice="return the new memory in the form of init_memory's",
    )
    first = jax.tree.leaves(before)[:1]
    require(
        [leaf.shape for leaf in first] == [(hidden_size,)],
        rule=f"the first array of the memory of {cell.__name__} is the hidden state, of shape ({hidden_size},)",
        received=_form(before),
        advice="make it the first of jax.tree.leaves(memory), with hidden_size numbers",
    )


def _form(memory: object) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", memory))
