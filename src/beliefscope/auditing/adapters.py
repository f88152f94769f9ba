"""Agents of any framework as `AuditedAgent`s: functions, Equinox modules, agents in JAX (for PyTorch: torch_agents.py).

`as_agent` finds the adapter by what an agent has. `sees_actions` says whether the agent is to be shown its last
action beside the observation, as the wrapper `beliefscope.gymnasium.LastAction` does.
"""

import sys
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from beliefscope.agent.network import RecurrentAgent
from beliefscope.auditing.arrays import inputs_of
from beliefscope.auditing.interface import AuditedAgent
from beliefscope.errors import require
from beliefscope.pomdp import POMDP


class FunctionAgent:
    """A plain callable `(memory, observations) -> memory, actions` on batches; memory is None at the first step."""

    def __init__(
        self, function: Callable[[Any, np.ndarray], Any], *, num_actions: int, sees_actions: bool = False
    ) -> None:
        self._function, self._num_actions, self._sees_actions = function, num_actions, sees_actions

    def start(self, num_episodes: int) -> None:
        self._memory = None

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        inputs = inputs_of(previous_actions, observations, self._num_actions, self._sees_actions)
        returned = self._function(self._memory, inputs)
        require(
            isinstance(returned, tuple) and len(returned) == 2,
            rule="a function that is an agent returns its new memory and its actions",
            received=type(returned).__name__,
            advice="return memory, actions",
        )
        self._memory, actions = returned
        return actions, self._memory


class JAXAgent:
    """An agent in JAX (`init_memory`, `step`, `memory_vector`), all episodes in one compiled call; it acts greedily."""

    def __init__(self, agent: RecurrentAgent) -> None:
        self._agent = agent

    def start(self, num_episodes: int) -> None:
        self._memory = _broadcast(self._agent.init_memory(), num_episodes)

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        self._memory, vectors, values = _step_all(
            self._agent, self._memory, jnp.asarray(previous_actions), jnp.asarray(observations)
        )
        return values, vectors


class EquinoxAgent:
    """An Equinox module that is called for one episode and one step: `module(inputs, memory) -> memory, logits`.

    `initial` is its memory before the first observation, an array or a tree of arrays; `call` is another way to call
    it, `call(module, inputs, memory)`.
    """

    def __init__(
        self,
        module: Any,
        initial: Any,
        *,
        num_actions: int,
        sees_actions: bool = False,
        call: Callable[[Any, Array, Any], tuple[Any, Array]] | None = None,
    ) -> None:
        self._module, self._initial = module, jax.tree.map(jnp.asarray, initial)
        self._num_actions, self._sees_actions = num_actions, sees_actions
        self._call = call or _call

    def start(self, num_episodes: int) -> None:
        self._memory = _broadcast(self._initial, num_episodes)

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        inputs = inputs_of(previous_actions, observations, self._num_actions, self._sees_actions)
        self._memory, logits = _call_all(self._module, self._call, jnp.asarray(inputs), self._memory)
        return logits, self._memory


def as_agent(agent: Any, pomdp: POMDP, *, sees_actions: bool | None = None, initial: Any = None) -> AuditedAgent:
    """The agent itself where it has `start` and `step`, else by the adapter that fits it."""
    facts = {"num_actions": pomdp.num_actions, "sees_actions": bool(sees_actions)}
    _refuse_unless(not isinstance(agent, type), agent)
    if isinstance(agent, RecurrentAgent):
        return JAXAgent(agent)
    if isinstance(agent, AuditedAgent):
        return agent
    if hasattr(agent, "policy") and hasattr(agent.policy, "lstm_actor"):
        from beliefscope.auditing.torch_agents import RecurrentPPOAgent

        return RecurrentPPOAgent(agent, pomdp)
    if hasattr(agent, "get_action_and_value"):
        from beliefscope.auditing.torch_agents import CleanRLAgent

        return CleanRLAgent(agent, **facts)
    if "torch" in sys.modules and isinstance(agent, sys.modules["torch"].nn.Module):
        from beliefscope.auditing.torch_agents import TorchAgent

        return TorchAgent(agent, **facts)
    if isinstance(agent, eqx.Module):
        require(
            initial is not None,
            rule="an Equinox module that is audited has a memory before the first observation",
            received=type(agent).__name__,
            advice="pass initial=…, an array or a tree of arrays, or give it init_memory, step and memory_vector",
        )
        return EquinoxAgent(agent, initial, **facts)
    _refuse_unless(callable(agent), agent)
    return FunctionAgent(agent, **facts)


def _refuse_unless(holds: bool, agent: Any) -> None:
    require(
        holds,
        rule="an audited agent is a RecurrentPPO, a PyTorch or Equinox module, a callable (memory, observations) -> "
        "memory, actions, or has start and step",
        received=agent.__name__ if isinstance(agent, type) else type(agent).__name__,
        advice="pass an instance and not its class" if isinstance(agent, type) else "docs/audit.md has recipes",
    )


def _broadcast(memory: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (number, *jnp.shape(leaf))), memory)


@eqx.filter_jit
def _step_all(agent: RecurrentAgent, memory: Any, actions: Int[Array, " n"], observations: Float[Array, "n o"]):
    memory, values = jax.vmap(agent.step)(memory, actions, observations)
    return memory, jax.vmap(agent.memory_vector)(memory), values


def _call(module: Any, inputs: Array, memory: Any) -> tuple[Any, Array]:
    return module(inputs, memory)


@eqx.filter_jit
def _call_all(module: Any, call: Callable, inputs: Float[Array, "n inputs"], memory: Any) -> tuple[Any, Array]:
    return jax.vmap(lambda one, before: call(module, one, before))(inputs, memory)
