"""Minimal gated unit: Zhou, Wu, Zhang and Zhou (2016).

    f = σ(W_f x + U_f h + b_f)    n = tanh(W x + U (f ⊙ h) + b)    h' = (1 − f) ⊙ h + f ⊙ n

One gate both forgets and resets. Matrices start Glorot-uniform, biases at 0.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.gated import (
    Blocks,
    GatedCell,
    Matrices,
    Product,
    glorot,
    sigmoid,
    sum_of_outer_products,
)


class MGU(GatedCell):
    """Blocks: f, W x + b. The gates multiply by U, here `inner_weights`: U (f ⊙ h) needs f first."""

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
