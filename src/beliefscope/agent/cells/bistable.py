"""The bistable recurrent cell (BRC) and its recurrently neuromodulated form (nBRC): Vecoven, Ernst and Drion (2021).

    c = σ(U_c x + w_c ⊙ h + b_c)    a = 1 + tanh(U_a x + w_a ⊙ h + b_a)
    h' = c ⊙ h + (1 − c) ⊙ tanh(U x + a ⊙ h + b)

A unit of the BRC reads no other unit's memory. The nBRC has matrices in place of the vectors w_c and w_a, so that its
gates read every unit:

    c = σ(U_c x + W_c h + b_c)      a = 1 + tanh(U_a x + W_a h + b_a)

Matrices start Glorot-uniform, biases at 0, w_c and w_a at 1.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.gated import Blocks, ElementwiseCell, glorot, sigmoid


class _BistableCell(ElementwiseCell):
    """The gates of both cells, which differ in w ⊙ h or W h alone. Blocks: c, a, U x + b."""

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
