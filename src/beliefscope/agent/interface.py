"""What a recurrent agent is for sampling, filtering and measuring: a memory, a step, a vector.

It does not matter how the agent learnt.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float, Int, PyTree


@runtime_checkable
class RecurrentAgent(Protocol):
    """One agent, one step."""

    def init_memory(self) -> PyTree:
        """The memory before the first observation."""
        ...

    def step(
        self, memory: PyTree, previous_action: Int[Array, ""], observation: Float[Array, " observation"]
    ) -> tuple[PyTree, Float[Array, " actions"]]:
        """The memory h_t after o_t (encoded as a vector), and the value of each action; NO_ACTION precedes o_0."""
        ...

    def memory_vector(self, memory: PyTree) -> Float[Array, " memory"]:
        """The memory as one vector: what is compared with the belief."""
        ...
