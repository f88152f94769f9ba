"""What a recurrent cell is: a memory for the start of an episode, and one step of one agent.

A cell is an Equinox module built as `Cell(key, input_size, hidden_size)`. Its memory is any pytree of arrays; the
first leaf is the hidden state h, the vector that the next layer (or the linear layer) reads. The caller does batches,
time and stacking.
"""

import abc

import equinox as eqx
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
