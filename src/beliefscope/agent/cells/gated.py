"""The five cells of the paper share one form, which the fast sequence pass (layer.py) knows.

A step of a gated cell with input x and memory h (for the LSTM: h and c) has two parts:

1. products: p = W x + b, one block of n numbers for each gate, plus U h on the first blocks (U is a matrix, or a vector
   that multiplies h elementwise);
2. gates: everything else, elementwise. The MGU alone needs one more product, V v, in the middle of it.

A cell writes its gates forward, and backward from the activations it has kept. Products are done outside, so that
those of all steps (W x, and the gradients of all weights) become one large product.
"""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.interface import Cell

Blocks = tuple[Float[Array, "*batch n"], ...]
Product = Callable[[Array], Array]


class GatedCell(Cell):
    """A cell made of products and elementwise gates."""

    blocks: ClassVar[int]  # how many products of n numbers each
    memory_parts: ClassVar[int] = 1  # 2 for the LSTM's (h, c)
    hidden_size: eqx.AbstractVar[int]  # n
    input_weights: eqx.AbstractVar[Float[Array, "inputs columns"]]  # W
    bias: eqx.AbstractVar[Float[Array, " columns"]]  # b
    recurrent_weights: eqx.AbstractVar[Float[Array, "n columns"] | Float[Array, " columns"]]  # U
    inner_weights: eqx.AbstractVar[Float[Array, "n n"] | None]  # V

    @staticmethod
    @abc.abstractmethod
    def gates(products: Blocks, memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        """The new memory, and the activations to keep for `gates_backward`: as many blocks as there are products.

        `inner` multiplies by V. Where a cell uses it, what it multiplies is the first block kept ⊙ h, and what comes
        out is added to the last product.
        """

    @staticmethod
    @abc.abstractmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        """The gradients with respect to the products and to the memory (less what flows through U h).

        `memory` is the one before the step, `d_memory` the gradient with respect to the one after it, and `inner`
        multiplies by the transpose of V.
        """

    def init_memory(self) -> Blocks:
        return (jnp.zeros(self.hidden_size, self.bias.dtype),) * self.memory_parts

    def step(self, memory: Blocks, inputs: Float[Array, " inputs"]) -> Blocks:
        products = add_recurrent(inputs @ self.input_matrix() + self.bias, memory[0], self.recurrent_weights)
        return self.gates(split(products, self.hidden_size), memory, product_with(self.inner_weights))[0]

    def input_matrix(self) -> Float[Array, "inputs columns"]:
        """W with a column for every product."""
        return self.input_weights


def add_recurrent(
    projected: Float[Array, "*batch columns"], hidden: Float[Array, "*batch n"], weights: Float[Array, "..."]
) -> Float[Array, "*batch columns"]:
    """Add U h to the first blocks."""
    if weights.ndim == 2:
        product = hidden @ weights
    else:
        product = jnp.concatenate([hidden] * (weights.size // hidden.shape[-1]), axis=-1) * weights
    width = weights.shape[-1]
    if width == projected.shape[-1]:
        return projected + product
    return jnp.concatenate([projected[..., :width] + product, projected[..., width:]], axis=-1)


def product_with(matrix: Float[Array, "n m"] | None) -> Product:
    """v ↦ v M; cells without an inner product have no M, and never ask."""
    return lambda vector: vector @ jnp.asarray(matrix)


def split(blocks: Float[Array, "*batch columns"], size: int) -> Blocks:
    """Cut into blocks of `size` numbers."""
    return tuple(blocks[..., start : start + size] for start in range(0, blocks.shape[-1], size))


def sigmoid(x: Array) -> Array:
    """σ by the hyperbolic tangent, for which XLA has the faster code on CPU."""
    return 0.5 + 0.5 * jnp.tanh(0.5 * x)


def uniform(key: PRNGKeyArray, shape: tuple[int, ...], limit: float) -> Array:
    """Numbers drawn uniformly between ±limit."""
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def glorot(key: PRNGKeyArray, inputs: int, outputs: int, *, blocks: int) -> Float[Array, "inputs columns"]:
    """Glorot-uniform matrices [inputs, outputs], one for each block, side by side."""
    return uniform(key, (inputs, blocks * outputs), (6 / (inputs + outputs)) ** 0.5)
