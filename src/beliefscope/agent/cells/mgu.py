"""Minimal gated unit: Zhou, Wu, Zhang and Zhou (2016).

    f = σ(W_f x + U_f h + b_f)    n = tanh(W x + U (f ⊙ h) + b)    h' = (1 − f) ⊙ h + f ⊙ n

One gate both forgets and resets. Matrices start Glorot-uniform, biases at 0.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.gated import Blocks, GatedCell, Product, glorot, sigmoid


class MGU(GatedCell):
    """Blocks: f, W x + b; the inner product is U (f ⊙ h)."""

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

    @staticmethod
    def gates(products: Blocks, memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        (h,) = memory
        f = sigmoid(products[0])
        n = jnp.tanh(products[1] + inner(f * h))
        return (h + f * (n - h),), (f, n)

    @staticmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        f, n = kept
        (h,), (d_h,) = memory, d_memory
        d_n = d_h * f * (1 - n**2)
        d_fh = inner(d_n)
        d_f = (d_h * (n - h) + d_fh * h) * f * (1 - f)
        return (d_f, d_n), (d_h * (1 - f) + d_fh * f,)
