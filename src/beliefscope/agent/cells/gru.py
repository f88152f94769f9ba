"""Gated recurrent unit: Cho et al. (2014), with the reset gate applied after the recurrent product.

    r = σ(W_r x + U_r h + b_r)                    z = σ(W_z x + U_z h + b_z)
    n = tanh(W_n x + b_n + r ⊙ (U_n h + b'_n))    h' = (1 − z) ⊙ n + z ⊙ h

Every parameter starts uniform in ±1/√n (here n is the size of h).
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.gated import Blocks, ElementwiseCell, sigmoid, uniform


class GRU(ElementwiseCell):
    """Blocks: r, z, U_n h + b'_n, W_n x + b_n; the third has no W."""

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
