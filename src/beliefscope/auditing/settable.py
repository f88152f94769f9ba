"""Agents of any framework for interventions: their memories, all that they carry on, as rows that can be set.

`settable(agent, pomdp)` is what `beliefscope.intervene` takes. Every adapter says by its methods whether the memory of
its agent can be set (`SettableAgent`), and here it has to show that it can: along random histories the agent has to act
the same when it is stepped on as it is, and when its memory is read and set again before each step.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.auditing.adapters import AuditedAgent, JAXAgent, SettableAgent, as_agent, chosen_actions, to_numpy
from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.interventions import Use, intervene
from beliefscope.measurement.greedy_episodes import encoded
from beliefscope.pomdp import NO_ACTION, POMDP, RandomPolicy, rollout

_EPISODES, _STEPS = 16, 10  # of random histories
_CLOSE = 1e-3  # of the largest number: batches of other sizes round differently


class VectorMemory:
    """A `SettableAgent` as a `BatchAgent` of interventions: its memory is a row of numbers for each episode."""

    def __init__(self, agent: SettableAgent, pomdp: POMDP) -> None:
        self._agent, self._num_actions = agent, pomdp.num_actions
        # One step shows what it carries. What it would do after what is no observation does not matter.
        self._like: list[Any] = []
        self._parts: dict[str, slice] = {}
        agent.start(2)
        _scores(agent, np.full(2, NO_ACTION), np.zeros((2, pomdp.observation_size), np.float32))
        paths, self._structure = jax.tree_util.tree_flatten_with_path(agent.get_memory())
        start = 0
        for path, leaf in paths:
            array, name = to_numpy(leaf), jax.tree_util.keystr(path, simple=True, separator=".") or "memory"
            require(
                array.ndim >= 1 and len(array) == 2 and array.dtype.kind == "f",
                rule="a memory that can be set is made of arrays of real numbers [N, …]",
                received=f"{name}: {array.dtype} of shape {array.shape} for two episodes",
                advice="let the agent carry real numbers only, the episodes first",
            )
            self._parts[name] = slice(start, start + array[0].size)
            self._like.append(leaf)
            start += array[0].size
        require(start > 0, rule="a memory that can be set has numbers", received="none", advice="see docs/audit.md")

    def parts(self) -> dict[str, slice]:
        return self._parts

    def step_all(
        self,
        memory: Float[np.ndarray, "n w"] | None,
        previous_actions: Int[np.ndarray, " n"],
        observations: Float[np.ndarray, "n observation"],
    ) -> tuple[Float[np.ndarray, "n w"], Int[np.ndarray, " n"], Float[np.ndarray, "n actions"]]:
        number = len(observations)
        self._agent.start(number)
        if memory is not None:
            leaves = [
                _like(memory[:, place].reshape(number, *leaf.shape[1:]), leaf)
                for place, leaf in zip(self._parts.values(), self._like, strict=True)
            ]
            self._agent.set_memory(jax.tree.unflatten(self._structure, leaves))
        actions, values = scored(self._agent, previous_actions, observations, self._num_actions)
        leaves = [to_numpy(leaf).reshape(number, -1) for leaf in jax.tree.leaves(self._agent.get_memory())]
        return np.concatenate(leaves, axis=1).astype(np.float32), actions, values


def settable(agent: Any, pomdp: POMDP, *, sees_actions: bool | None = None, initial: Any = None) -> VectorMemory:
    """The agent as `beliefscope.intervene` takes it; one whose memory cannot be set is refused."""
    found = with_vector(as_agent(agent, pomdp, sees_actions=sees_actions, initial=initial), pomdp)
    if isinstance(found, str):
        raise ValueError(f"{found}.")
    return found


def with_vector(agent: AuditedAgent, pomdp: POMDP) -> VectorMemory | str:
    """The agent for interventions, or a sentence that says why its memory cannot be set."""
    if not isinstance(agent, SettableAgent):
        return (
            "an agent whose memory can be set has the methods get_memory and set_memory, "
            f"but got {type(agent).__name__}; docs/audit.md says what they do"
        )
    try:
        found = VectorMemory(agent, pomdp)
        acts_the_same = _acts_the_same(agent, found, pomdp)
    except ValueError as error:
        return str(error).rstrip(".")
    if not acts_the_same:
        return (
            "an agent whose memory can be set acts the same when it is read and set again before each step, "
            f"but got a {type(agent).__name__} that does not; let get_memory return all that it carries, and step or "
            "scores a number for each action and no draws"
        )
    return found


def use_of(key: PRNGKeyArray, agent: AuditedAgent, pomdp: POMDP, filter: Filter, num_episodes: int) -> Use | str:
    """What interventions on the agent do, or a sentence that says why its memory cannot be set."""
    found = with_vector(agent, pomdp)
    if isinstance(found, str):
        return found
    # An agent in JAX is compiled as a whole: the same episodes and swaps, in less time.
    given = agent.agent if isinstance(agent, JAXAgent) else found
    return intervene(key, given, pomdp, filter, num_episodes=num_episodes, num_swaps=num_episodes // 2)


def scored(
    agent: AuditedAgent, previous: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n o"], num_actions: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n actions"]]:
    """One step: the actions, and a number for each action, NaN where the agent returns actions alone."""
    given = to_numpy(_scores(agent, previous, observations))
    actions = chosen_actions(given, len(observations), num_actions)
    known = given.dtype.kind == "f" and given.ndim == 2
    return actions, given.astype(np.float32) if known else np.full((len(actions), num_actions), np.nan, np.float32)


def _scores(agent: AuditedAgent, previous: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n o"]) -> Any:
    """One step: the numbers for each action that the agent gives, or its actions."""
    scores = getattr(agent, "scores", None)
    return agent.step(previous, observations)[0] if scores is None else scores(previous, observations)


def _acts_the_same(agent: AuditedAgent, vector: VectorMemory, pomdp: POMDP) -> bool:
    """The episodes change places before each step, so that nothing can be kept for one beside its memory."""
    played = rollout(jax.random.key(0), pomdp, RandomPolicy(pomdp), num_episodes=_EPISODES).trajectory
    seen, done = np.array(encoded(pomdp, played.observations), np.float32), np.array(played.actions)
    agent.start(_EPISODES)
    previous, before, found = np.full(_EPISODES, NO_ACTION), None, []
    for t in range(min(pomdp.horizon, _STEPS)):
        found.append(scored(agent, previous.copy(), seen[:, t].copy(), pomdp.num_actions))
        previous = done[:, t]
    previous = np.full(_EPISODES, NO_ACTION)
    for t, (actions, values) in enumerate(found):
        order = slice(None, None, -1 if t % 2 else 1)
        before = None if before is None else before[::-1]
        before, *again = vector.step_all(before, previous[order].copy(), seen[order, t].copy())
        if np.isnan(values).all():
            if not np.array_equal(again[0], actions[order]):
                return False
        elif not np.allclose(again[1], values[order], atol=_CLOSE * np.abs(values).max(), rtol=0):
            return False
        previous = done[:, t]
    return True


def _like(array: Float[np.ndarray, "n ..."], leaf: Any) -> Any:
    """An array of the framework, type and place of the leaf."""
    if hasattr(leaf, "new_tensor"):
        return leaf.new_tensor(np.ascontiguousarray(array))
    return jnp.asarray(array, leaf.dtype) if isinstance(leaf, jax.Array) else array.astype(leaf.dtype)
