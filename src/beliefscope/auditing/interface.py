"""What an audited agent is: a batch of episodes at a time, with the parts of its memory by name."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from numpy import ndarray


@runtime_checkable
class AuditedAgent(Protocol):
    """`start` and `step`, as `beliefscope.play` asks for them; a memory may be several arrays by name."""

    def start(self, num_episodes: int) -> None:
        """Forget everything: N = `num_episodes` episodes begin."""
        ...

    def step(self, previous_actions: Int[ndarray, " n"], observations: Float[ndarray, "n observation"]) -> Any:
        """The actions a_t [N], or a number for each action [N, A] of which the greatest is done; and the memory.

        A memory is an array [N, …], or a dictionary, a tuple or a list of such, however deep. `previous_actions` are
        those that were done (−1 at the first step), which need not be those that this agent chose.
        """
        ...
