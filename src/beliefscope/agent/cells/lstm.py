"""Long short-term memory: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).

    i = σ(W_i x + U_i h + b_i)      f = σ(W_f x + U_f h + b_f)      o = σ(W_o x + U_o h + b_o)
    g = tanh(W_g x + U_g h + b_g)   c' = f ⊙ c + i ⊙ g              h' = o ⊙ tanh(c')

The memory is (h, c). Every parameter starts uniform in ±1/√n; the forget bias is like any other.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.gated import Blocks, ElementwiseCell, sigmoid, uniform


class LSTM(ElementwiseCell):
    """Blocks: i, f, o, g."""

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
