"""Recurrent cells: LSTM, GRU, BRC, nBRC and MGU. gated.py has the form that they share, and the interface for your own.

σ is the logistic function, ⊙ multiplies elementwise, and n is the size of h.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.gated import (
    Blocks,
    Cell,
    ElementwiseCell,
    GatedCell,
    Matrices,
    Product,
    glorot,
    sigmoid,
    sum_of_outer_products,
    uniform,
)

__all__ = ["BRC", "CELLS", "GRU", "LSTM", "MGU", "NBRC", "Cell", "GatedCell"]


class LSTM(ElementwiseCell):
    """Long short-term memory: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).

        i = σ(W_i x + U_i h + b_i)      f = σ(W_f x + U_f h + b_f)      o = σ(W_o x + U_o h + b_o)
        g = tanh(W_g x + U_g h + b_g)   c' = f ⊙ c + i ⊙ g              h' = o ⊙ tanh(c')

    The memory is (h, c). Every parameter starts uniform in ±1/√n; the forget bias is like any other.

    Blocks: i, f, o, g.
    """

    blocks: ClassVar[int] = 4
    memory_parts: ClassVar[int] = 2
    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 4 blocks
    bias: Float[Array, " products"]  # 4 blocks
    recurrent_weights: Float[Array, "n products_of_h"]  # 4 blocks

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent, key_bias = jax.random.split(key, 3)
        limit = hidden_size**-0.5
        self.hidden_size = hidden_size
        self.input_weights = uniform(key_input, (input_size, 4 * hidden_size), limit)
        self.recurrent_weights = uniform(key_recurrent, (hidden_size, 4 * hidden_size), limit)
        self.bias = uniform(key_bias, (4 * hidden_size,), limit)

    @staticmethod
    def gates(products: Blocks, memory: Blocks) -> tuple[Blocks, Blocks]:
        i, f, o = (sigmoid(product) for product in products[:3])
        g = jnp.tanh(products[3])
        c = f * memory[1] + i * g
        return (o * jnp.tanh(c), c), (i, f, o, g)

    @staticmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks) -> tuple[Blocks, Blocks]:
        (i, f, o, g), (_, c), (d_h, d_c) = kept, memory, d_memory
        tanh_c = jnp.tanh(f * c + i * g)
        d_c = d_c + d_h * o * (1 - tanh_c**2)
        d_i, d_f, d_o = d_c * g * i * (1 - i), d_c * c * f * (1 - f), d_h * tanh_c * o * (1 - o)
        return (d_i, d_f, d_o, d_c * i * (1 - g**2)), (jnp.zeros_like(d_h), d_c * f)


class GRU(ElementwiseCell):
    """Gated recurrent unit: Cho et al. (2014), with the reset gate applied after the recurrent product.

        r = σ(W_r x + U_r h + b_r)                    z = σ(W_z x + U_z h + b_z)
        n = tanh(W_n x + b_n + r ⊙ (U_n h + b'_n))    h' = (1 − z) ⊙ n + z ⊙ h

    Every parameter starts uniform in ±1/√n (here n is the size of h).

    Blocks: r, z, U_n h + b'_n, W_n x + b_n; the third has no W.
    """

    blocks: ClassVar[int] = 4
    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 3 blocks
    bias: Float[Array, " products"]  # 4 blocks
    recurrent_weights: Float[Array, "n products_of_h"]  # 3 blocks

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent, key_bias = jax.random.split(key, 3)
        limit = hidden_size**-0.5
        self.hidden_size = hidden_size
        self.input_weights = uniform(key_input, (input_size, 3 * hidden_size), limit)
        self.recurrent_weights = uniform(key_recurrent, (hidden_size, 3 * hidden_size), limit)
        self.bias = uniform(key_bias, (4 * hidden_size,), limit)

    def input_matrix(self) -> Float[Array, "inputs products"]:
        gates, new = self.input_weights[:, : 2 * self.hidden_size], self.input_weights[:, 2 * self.hidden_size :]
        return jnp.concatenate([gates, jnp.zeros_like(new), new], axis=1)

    @staticmethod
    def gates(products: Blocks, memory: Blocks) -> tuple[Blocks, Blocks]:
        r, z, recurrent = sigmoid(products[0]), sigmoid(products[1]), products[2]
        n = jnp.tanh(products[3] + r * recurrent)
        return (n + z * (memory[0] - n),), (r, z, recurrent, n)

    @staticmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks) -> tuple[Blocks, Blocks]:
        r, z, recurrent, n = kept
        (d_h,) = d_memory
        d_n = d_h * (1 - z) * (1 - n**2)
        d_r, d_z = d_n * recurrent * r * (1 - r), d_h * (memory[0] - n) * z * (1 - z)
        return (d_r, d_z, d_n * r, d_n), (d_h * z,)


class _BistableCell(ElementwiseCell):
    """The bistable cell (BRC) and its recurrently neuromodulated form (nBRC): Vecoven, Ernst and Drion (2021).

        c = σ(U_c x + w_c ⊙ h + b_c)    a = 1 + tanh(U_a x + w_a ⊙ h + b_a)
        h' = c ⊙ h + (1 − c) ⊙ tanh(U x + a ⊙ h + b)

    A unit of the BRC reads no other unit's memory. The nBRC has matrices in place of the vectors w_c and w_a, so that
    its gates read every unit:

        c = σ(U_c x + W_c h + b_c)      a = 1 + tanh(U_a x + W_a h + b_a)

    Matrices start Glorot-uniform, biases at 0, w_c and w_a at 1.

    The gates of both cells, which differ in w ⊙ h or W h alone. Blocks: c, a, U x + b.
    """

    blocks: ClassVar[int] = 3

    @staticmethod
    def gates(products: Blocks, memory: Blocks) -> tuple[Blocks, Blocks]:
        (h,) = memory
        c, a = sigmoid(products[0]), 1 + jnp.tanh(products[1])
        n = jnp.tanh(products[2] + a * h)
        return (n + c * (h - n),), (c, a, n)

    @staticmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks) -> tuple[Blocks, Blocks]:
        """The derivative of 1 + tanh is a (2 − a)."""
        c, a, n = kept
        (h,), (d_h,) = memory, d_memory
        d_n = d_h * (1 - c) * (1 - n**2)
        d_c, d_a = d_h * (h - n) * c * (1 - c), d_n * h * a * (2 - a)
        return (d_c, d_a, d_n), (d_h * c + d_n * a,)


class BRC(_BistableCell):
    """The bistable cell: w_c and w_a are vectors."""

    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 3 blocks
    bias: Float[Array, " products"]  # 3 blocks
    recurrent_weights: Float[Array, " products_of_h"]  # 2 blocks

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        self.hidden_size = hidden_size
        self.input_weights = glorot(key, input_size, hidden_size, blocks=3)
        self.bias = jnp.zeros(3 * hidden_size)
        self.recurrent_weights = jnp.ones(2 * hidden_size)


class NBRC(_BistableCell):
    """The neuromodulated bistable cell: W_c and W_a are matrices."""

    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 3 blocks
    bias: Float[Array, " products"]  # 3 blocks
    recurrent_weights: Float[Array, "n products_of_h"]  # 2 blocks

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent = jax.random.split(key)
        self.hidden_size = hidden_size
        self.input_weights = glorot(key_input, input_size, hidden_size, blocks=3)
        self.bias = jnp.zeros(3 * hidden_size)
        self.recurrent_weights = glorot(key_recurrent, hidden_size, hidden_size, blocks=2)


class MGU(GatedCell):
    """Minimal gated unit: Zhou, Wu, Zhang and Zhou (2016).

        f = σ(W_f x + U_f h + b_f)    n = tanh(W x + U (f ⊙ h) + b)    h' = (1 − f) ⊙ h + f ⊙ n

    One gate both forgets and resets. Matrices start Glorot-uniform, biases at 0.

    Blocks: f, W x + b. The gates multiply by U, here `inner_weights`: U (f ⊙ h) needs f first.
    """

    blocks: ClassVar[int] = 2
    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 2 blocks
    bias: Float[Array, " products"]  # 2 blocks
    recurrent_weights: Float[Array, "n n"]
    inner_weights: Float[Array, "n n"]

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent, key_inner = jax.random.split(key, 3)
        self.hidden_size = hidden_size
        self.input_weights = glorot(key_input, input_size, hidden_size, blocks=2)
        self.bias = jnp.zeros(2 * hidden_size)
        self.recurrent_weights = glorot(key_recurrent, hidden_size, hidden_size, blocks=1)
        self.inner_weights = glorot(key_inner, hidden_size, hidden_size, blocks=1)

    def gate_matrices(self) -> Matrices:
        return (self.inner_weights,)

    @classmethod
    def apply_gates(cls, products: Blocks, memory: Blocks, multiply: tuple[Product, ...]) -> tuple[Blocks, Blocks]:
        (h,), (multiply_by_u,) = memory, multiply
        f = sigmoid(products[0])
        n = jnp.tanh(products[1] + multiply_by_u(f * h))
        return (h + f * (n - h),), (f, n)

    @classmethod
    def apply_gates_backward(
        cls, kept: Blocks, memory: Blocks, d_memory: Blocks, multiply_transposed: tuple[Product, ...]
    ) -> tuple[Blocks, Blocks]:
        f, n = kept
        (h,), (d_h,), (multiply_by_u_transposed,) = memory, d_memory, multiply_transposed
        d_n = d_h * f * (1 - n**2)
        d_fh = multiply_by_u_transposed(d_n)
        d_f = (d_h * (n - h) + d_fh * h) * f * (1 - f)
        return (d_f, d_n), (d_h * (1 - f) + d_fh * f,)

    @staticmethod
    def gate_matrix_gradients(
        hidden: Float[Array, "time rows n"], kept: Float[Array, "time rows columns"], d_products: Float[Array, "..."]
    ) -> Matrices:
        """Of U, which multiplies f ⊙ h; the gradient of the product is that of the last block."""
        size = hidden.shape[-1]
        return (sum_of_outer_products(hidden * kept[..., :size], d_products[..., -size:]),)


CELLS = {cell.__name__: cell for cell in (LSTM, GRU, BRC, NBRC, MGU)}  # by the names that stored runs have
