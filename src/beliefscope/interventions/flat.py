"""An agent whose memory is one vector: all that it carries from step to step, end to end.

Of an LSTM these are h and c of every layer. An affine map may be applied to the vector after each step, before it is
carried into the next one: so an agent without some of its memory is an agent too, and can be played and measured.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from beliefscope.agent.network import RecurrentAgent
from beliefscope.errors import require


class Removal(eqx.Module):
    """x ↦ x − M (x − c): takes the component M (x − c) out of a memory x.

    What is left stays within `reach` of c. A memory that has been erased at every step is no longer one of those that M
    was fitted to, and M may amplify what hardly varied there; without a bound it would grow from step to step.
    """

    matrix: Float[Array, "w w"]  # M
    centre: Float[Array, " w"]  # c
    reach: Float[Array, " w"]

    def __call__(self, memory: Float[Array, " w"]) -> Float[Array, " w"]:
        left = memory - self.centre - self.matrix @ (memory - self.centre)
        return self.centre + jnp.clip(left, -self.reach, self.reach)


class FlatAgent(eqx.Module):
    """The same agent with one vector of w numbers as its memory; `removal` acts on it after each step."""

    agent: RecurrentAgent
    removal: Removal | None = None

    def __check_init__(self) -> None:
        require(
            isinstance(self.agent, RecurrentAgent) and not isinstance(self.agent, type),
            rule="interventions need an agent with init_memory, step and memory_vector, written in JAX",
            received=type(self.agent).__name__,
            advice="see beliefscope.agent.network.RecurrentAgent",
        )
        leaves = jax.tree.leaves(jax.eval_shape(self.agent.init_memory))
        require(
            bool(leaves) and all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves),
            rule="interventions act on memories of real numbers",
            received=[str(leaf.dtype) for leaf in leaves],
            advice="let the agent carry arrays of floating-point numbers only",
        )

    def init_memory(self) -> Float[Array, " w"]:
        return ravel_pytree(self.agent.init_memory())[0]

    def step(
        self, memory: Float[Array, " w"], previous_action: Int[Array, ""], observation: Float[Array, " observation"]
    ) -> tuple[Float[Array, " w"], Float[Array, " actions"]]:
        carried = ravel_pytree(self.agent.init_memory())[1](memory)
        carried, values = self.agent.step(carried, previous_action, observation)
        after = ravel_pytree(carried)[0]
        return after if self.removal is None else self.removal(after), values

    def memory_vector(self, memory: Float[Array, " w"]) -> Float[Array, " w"]:
        return memory


def memory_parts(agent: RecurrentAgent) -> dict[str, slice]:
    """Where each array that the agent carries lies in the vector, by its path: `['first']`, `[0][1]`, …"""
    found, start = {}, 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.eval_shape(agent.init_memory)):
        found[jax.tree_util.keystr(path)] = slice(start, start + leaf.size)
        start += leaf.size
    return found
