"""Agents of any framework as `AuditedAgent`s: functions, Equinox modules, agents in JAX (for PyTorch: torch_agents.py).

`as_agent` finds the adapter by what an agent has. `sees_actions` says whether the agent is to be shown its last
action beside the observation, as the wrapper `beliefscope.gymnasium.LastAction` does. What agents return becomes NumPy
arrays here: actions [N], and the parts of a memory by name, each [N, m].

A `SettableAgent` can be given another memory between two steps, which interventions need. Every adapter here is one, as
far as what its agent carries is arrays of real numbers (settable.py finds out).
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from beliefscope.agent.network import RecurrentAgent
from beliefscope.errors import require
from beliefscope.pomdp import POMDP

WHOLE = "memory"  # the name of a memory that has no parts

Parts = dict[str, np.ndarray]


@runtime_checkable
class AuditedAgent(Protocol):
    """`start` and `step`, as `beliefscope.play` asks for them; a memory may be several arrays by name."""

    def start(self, num_episodes: int) -> None:
        """Forget everything: N = `num_episodes` episodes begin."""
        ...

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        """The actions a_t [N], or a number for each action [N, A] of which the greatest is done; and the memory.

        A memory is an array [N, …], or a dictionary, a tuple or a list of such, however deep. `previous_actions` are
        those that were done (−1 at the first step), which need not be those that this agent chose.
        """
        ...


@runtime_checkable
class SettableAgent(AuditedAgent, Protocol):
    """An agent whose memory can be set. Where `step` draws its actions, it also has `scores`, a step that returns a
    number for each action [N, A] in place of the two.
    """

    def get_memory(self) -> Any:
        """All that is carried on to the next step: an array [N, …], or a dictionary, tuple or list of such."""
        ...

    def set_memory(self, memory: Any) -> None:
        """Carry on this instead; it is as `get_memory` returned it, of as many episodes as `start` was told of."""
        ...


def to_numpy(given: Any) -> np.ndarray:
    """Any array; PyTorch's are detached and brought to the CPU."""
    for method in ("detach", "cpu"):
        given = getattr(given, method)() if hasattr(given, method) else given
    return np.asarray(given)


def memory_parts(memory: Any, number: int) -> Parts:
    """Every array of a memory by name, a row for each of so many episodes."""
    found = {name or WHOLE: to_numpy(array) for name, array in _leaves(memory, "").items()}
    for name, array in found.items():
        require(
            array.ndim >= 1 and len(array) == number and array.dtype.kind in "fiub",
            rule=f"each part of a memory has a row of numbers for each of the {number} episodes, [{number}, …]",
            received=f"{name}: {array.dtype} of shape {array.shape}",
            advice="put the episodes first; of an LSTM's (layers, N, n) take state.swapaxes(0, 1)",
        )
    require(
        bool(found),
        rule="an agent's memory is an array, or several by name",
        received=memory,
        advice="return the memory after the observation beside the actions",
    )
    return {name: array.reshape(number, -1).astype(np.float32) for name, array in found.items()}


def _leaves(memory: Any, name: str) -> dict[str, Any]:
    if memory is None:
        return {}
    if isinstance(memory, Mapping):
        inside = memory.items()
    elif isinstance(memory, tuple) and hasattr(memory, "_fields"):
        inside = zip(memory._fields, memory, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(memory, tuple | list):
        inside = enumerate(memory)
    else:
        return {name: memory}
    return {
        path: leaf
        for key, value in inside
        for path, leaf in _leaves(value, f"{name}.{key}" if name else str(key)).items()
    }


def chosen_actions(given: Any, number: int, num_actions: int) -> Int[np.ndarray, " n"]:
    """Actions [N] as they are; of numbers for each action [N, A] the greatest."""
    array = to_numpy(given)
    if array.shape == (number, num_actions) and array.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(array.max(axis=1)))  # what an agent never does may have −∞
        require(
            len(wrong) == 0,
            rule="the greatest of an agent's logits or values is finite",
            received=array[wrong[0]].tolist() if len(wrong) else "",
            advice="look for a diverged agent",
        )
        return array.argmax(axis=1)
    if array.shape == (number, 1):
        array = array[:, 0]
    require(
        array.shape == (number,) and array.dtype.kind in "iu",
        rule=f"an agent returns {number} whole numbers as actions, or [{number}, {num_actions}] logits or values",
        received=f"{array.dtype} of shape {array.shape}",
        advice="return one action for each episode",
    )
    return array.astype(np.int64)


def joined(parts: Mapping[str, np.ndarray], names: tuple[str, ...] | list[str]) -> Float[np.ndarray, "*n m"]:
    """The named parts side by side."""
    require(
        set(names) <= set(parts),
        rule=f"all agents of an audit have the parts {list(names)} in their memories",
        received=sorted(parts),
        advice="pass agents of one kind, or name parts that all of them have as memory=…",
    )
    return np.concatenate([parts[name] for name in names], axis=-1)


def inputs_of(
    previous_actions: Int[np.ndarray, " n"],
    observations: Float[np.ndarray, "n observation"],
    num_actions: int,
    sees_actions: bool,
) -> Float[np.ndarray, "n inputs"]:
    """o_t, or (one-hot a_{t-1}, zeros at t = 0; o_t) for agents that are shown what they did."""
    if not sees_actions:
        return observations.astype(np.float32)
    codes = np.vstack([np.eye(num_actions, dtype=np.float32), np.zeros((1, num_actions), np.float32)])
    return np.concatenate([codes[previous_actions], observations], axis=1).astype(np.float32)


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

    def get_memory(self) -> Any:
        return self._memory

    def set_memory(self, memory: Any) -> None:
        self._memory = memory


class JAXAgent:
    """An agent in JAX (`init_memory`, `step`, `memory_vector`), all episodes in one compiled call; it acts greedily."""

    def __init__(self, agent: RecurrentAgent) -> None:
        self.agent = agent

    def start(self, num_episodes: int) -> None:
        self._memory = _broadcast(self.agent.init_memory(), num_episodes)

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        self._memory, vectors, values = _step_all(
            self.agent, self._memory, jnp.asarray(previous_actions), jnp.asarray(observations)
        )
        return values, vectors

    def get_memory(self) -> Any:
        return self._memory

    def set_memory(self, memory: Any) -> None:
        self._memory = memory


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

    def get_memory(self) -> Any:
        return self._memory

    def set_memory(self, memory: Any) -> None:
        self._memory = memory


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
