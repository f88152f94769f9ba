"""Recurrently neuromodulated bistable cell: Vecoven, Ernst and Drion (2021).

    c = σ(U_c x + W_c h + b_c)      a = 1 + tanh(U_a x + W_a h + b_a)
    h' = c ⊙ h + (1 − c) ⊙ tanh(U x + a ⊙ h + b)

The bistable cell with matrices W_c and W_a: the gates read every unit. Matrices start Glorot-uniform, biases at 0.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.agent.cells.brc import bistable_backward, bistable_gates
from beliefscope.agent.cells.gated import Blocks, GatedCell, Product, glorot


class NBRC(GatedCell):
    """Blocks: c, a, U x + b."""

    blocks: ClassVar[int] = 3
    hidden_size: int = eqx.field(static=True)
    input_weights: Float[Array, "inputs products_of_x"]  # 3 blocks
    bias: Float[Array, " products"]  # 3 blocks
    recurrent_weights: Float[Array, "n products_of_h"]  # 2 blocks
    inner_weights: None

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent = jax.random.split(key)
        self.hidden_size = hidden_size
        self.input_weights = glorot(key_input, input_size, hidden_size, blocks=3)
        self.bias = jnp.zeros(3 * hidden_size)
        self.recurrent_weights = glorot(key_recurrent, hidden_size, hidden_size, blocks=2)
        self.inner_weights = None

    @staticmethod
    def gates(products: Blocks, memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        return bistable_gates(products, memory)

    @staticmethod
    def gates_backward(kept: Blocks, memory: Blocks, d_memory: Blocks, inner: Product) -> tuple[Blocks, Blocks]:
        return bistable_backward(kept, memory, d_memory)
