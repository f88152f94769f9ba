"""What a recurrent cell is, and the one form that the five cells of the paper share.

A cell is an Equinox module built as `Cell(key, input_size, hidden_size)`: a memory for the start of an episode, and one
step of one agent. Its memory is any pytree of arrays; the first leaf is the hidden state h, the vector that the next
layer (or the linear layer) reads. The caller does batches, time and stacking.

The fast sequence pass (sequence.py) knows gated cells. A step of a gated cell with input x and memory h (for the LSTM:
h and c) has two parts:

1. products: p = W x + b, one block of n numbers for each gate, plus U h on the first blocks (U is a matrix, or a vector
   that multiplies h elementwise);
2. gates: everything else. The gates of an `ElementwiseCell` are elementwise; others multiply by matrices of their own.

A cell defines its gates forward, and backward from the stored activations. The products are computed outside the cell,
so that those of all steps (W x, and the gradients of all weights) become one large product.
"""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

Memory = PyTree[Array]


class Cell(eqx.Module):
    """One recurrent layer, one step."""

    @abc.abstractmethod
    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        """Draw the parameters."""

    @abc.abstractmethod
    def init_memory(self) -> Memory:
        """The memory before the first input; its first leaf is the hidden state [hidden_size]."""

    @abc.abstractmethod
    def step(self, memory: Memory, inputs: Float[Array, " inputs"]) -> Memory:
        """The memory after one more input x_t."""


Blocks = tuple[Float[Array, "*batch n"], ...]
Product = Callable[[Array], Array]  # v ↦ v M
Matrices = tuple[Float[Array, "n n"], ...]


class GatedCell(Cell):
    """A cell made of products and gates."""

    blocks: ClassVar[int]  # how many products of n numbers each
    memory_parts: ClassVar[int] = 1  # 2 for the LSTM's (h, c)
    hidden_size: eqx.AbstractVar[int]  # n
    input_weights: eqx.AbstractVar[Float[Array, "inputs columns"]]  # W
    bias: eqx.AbstractVar[Float[Array, " columns"]]  # b
    recurrent_weights: eqx.AbstractVar[Float[Array, "n columns"] | Float[Array, " columns"]]  # U

    @classmethod
    @abc.abstractmethod
    def apply_gates(cls, products: Blocks, memory: Blocks, multiply: tuple[Product, ...]) -> tuple[Blocks, Blocks]:
        """The new memory, and the activations to keep for `apply_gates_backward`, as many blocks as products.

        `multiply` has one product for each of `gate_matrices`.
        """

    @classmethod
    @abc.abstractmethod
    def apply_gates_backward(
        cls, kept: Blocks, memory: Blocks, d_memory: Blocks, multiply_transposed: tuple[Product, ...]
    ) -> tuple[Blocks, Blocks]:
        """The gradients with respect to the products and to the memory (less what flows through U h).

        `memory` is the one before the step, `d_memory` the gradient with respect to the one after it, and
        `multiply_transposed` has one product for the transpose of each of `gate_matrices`.
        """

    def gate_matrices(self) -> Matrices:
        """The matrices that the gates themselves multiply by."""
        return ()

    @staticmethod
    def gate_matrix_gradients(
        hidden: Float[Array, "time rows n"], kept: Float[Array, "time rows columns"], d_products: Float[Array, "..."]
    ) -> Matrices:
        """The gradients with respect to `gate_matrices`, summed over all steps and rows.

        `hidden` is h before each step, `kept` its activations and `d_products` the gradients of its products.
        """
        return ()

    def init_memory(self) -> Blocks:
        return (jnp.zeros(self.hidden_size, self.bias.dtype),) * self.memory_parts

    def step(self, memory: Blocks, inputs: Float[Array, " inputs"]) -> Blocks:
        products = add_recurrent(inputs @ self.input_matrix() + self.bias, memory[0], self.recurrent_weights)
        return self.apply_gates(split(products, self.hidden_size), memory, products_with(self.gate_matrices()))[0]

    def input_matrix(self) -> Float[Array, "inputs columns"]:
        """W with a column for every product."""
        return self.input_weights


class ElementwiseCell(GatedCell):
    """A gated cell whose gates are elementwise."""

    @staticmethod
    @abc.abstractmethod
    def gates(products: Blocks, memory: Blocks) -> tuple[Blocks, Blocks]:
        """The new memory and the activations to keep."""

    @staticmethod
    @abc.abstractmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks) -> tuple[Blocks, Blocks]:
        """The gradients with respect to the products and to the memory."""

    @classmethod
    def apply_gates(cls, products: Blocks, memory: Blocks, multiply: tuple[Product, ...]) -> tuple[Blocks, Blocks]:
        return cls.gates(products, memory)

    @classmethod
    def apply_gates_backward(
        cls, kept: Blocks, memory: Blocks, d_memory: Blocks, multiply_transposed: tuple[Product, ...]
    ) -> tuple[Blocks, Blocks]:
        return cls.gates_backward(kept, memory, d_memory)


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


def products_with(matrices: Matrices) -> tuple[Product, ...]:
    """v ↦ v M for each matrix M."""
    return tuple(lambda vector, matrix=matrix: vector @ jnp.asarray(matrix) for matrix in matrices)


def sum_of_outer_products(left: Float[Array, "time rows n"], right: Float[Array, "time rows m"]) -> Float[Array, "n m"]:
    """Σ over time and rows of left ⊗ right: the gradient of a matrix M from left and that of left M."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])


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
