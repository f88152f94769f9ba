"""Interventions on agents that are called from Python, many episodes at a time: PyTorch, NumPy, anything.

What episodes.py compiles for agents in JAX is a loop over time here; the POMDP's steps are compiled. The random numbers
are the same, so that the same agent plays the same episodes, and its swaps are the same.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.network import RecurrentAgent
from beliefscope.fast_keys import fast_key
from beliefscope.interventions.episodes import After, FlatAgent, Later, Removal, VectorAgent
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import Trajectory, World, rest_world, start_world, step_world, world_keys


@runtime_checkable
class BatchAgent(Protocol):
    """An agent whose memories, of many episodes, are rows of an array that can be set."""

    def parts(self) -> dict[str, slice]:
        """Where each array that the agent carries lies in a row."""
        ...

    def step_all(
        self,
        memory: Float[np.ndarray, "n w"] | None,
        previous_actions: Int[np.ndarray, " n"],
        observations: Float[np.ndarray, "n observation"],
    ) -> tuple[Float[np.ndarray, "n w"], Int[np.ndarray, " n"], Float[np.ndarray, "n actions"]]:
        """The memories after o_t, the actions, and a number for each action (NaN where none is known).

        Without memories the episodes begin.
        """
        ...


class SteppedAgent(eqx.Module):
    """A `BatchAgent` as interventions play it; `removal` acts on its memories after each step."""

    agent: BatchAgent
    removal: Removal | None = None

    def parts(self) -> dict[str, slice]:
        return self.agent.parts()

    def losing(self, removal: Removal) -> "SteppedAgent":
        return SteppedAgent(self.agent, removal)

    def play(self, key: PRNGKeyArray, pomdp: POMDP, num_episodes: int) -> Trajectory:
        worlds, memory = _start(key, pomdp, num_episodes), None
        seen, acted = [worlds], np.zeros(num_episodes, int)
        while len(seen) <= pomdp.horizon and not np.all(worlds.done):
            memory, actions, _ = self._step(memory, worlds.action, _encoded(pomdp, worlds.observation))
            acted += ~np.asarray(worlds.done)
            worlds = _advance(pomdp, worlds, jnp.asarray(actions), worlds.done)
            seen.append(worlds)
        seen += [rest_world(worlds)] * (pomdp.horizon + 1 - len(seen))
        record: World = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *seen)
        return Trajectory(
            states=record.state,
            observations=record.observation,
            actions=record.action[:, 1:],
            rewards=record.reward[:, 1:],
            terminated=worlds.done,
            lengths=jnp.asarray(acted),
        )

    def memories(self, pomdp: POMDP, played: Trajectory, times: Int[np.ndarray, "n m"]) -> Float[np.ndarray, "n m w"]:
        seen, done = _encoded_along(pomdp, played.observations), np.asarray(played.actions)
        memory, previous = None, np.full(len(times), NO_ACTION)
        found = np.zeros((*times.shape, max(part.stop for part in self.parts().values())), np.float32)
        for t in range(int(times.max()) + 1):
            memory, *_ = self._step(memory, previous, seen[:, t])
            now, previous = times == t, done[:, t]
            found[now] = memory[np.nonzero(now)[0]]
        return found

    def carry_on(self, pomdp: POMDP, memory: Float[np.ndarray, "n w"], later: Later) -> After:
        """A call of the agent steps the episodes in their own worlds, and beside them those along what they saw."""
        n, horizon, world = len(memory), pomdp.horizon, later.world
        seen, done = _encoded_along(pomdp, later.observations), np.asarray(later.actions)
        carried = np.tile(np.asarray(memory, np.float32), (2, 1))
        gained, rows, record = np.zeros(n), np.arange(n), []
        for now in (np.asarray(later.time) + 1 + s for s in range(horizon)):
            over = np.asarray(world.done) | (now >= horizon)
            if np.all(over) and np.all(now >= np.asarray(later.lengths)):
                break
            at = np.minimum(now, horizon)
            previous = np.concatenate([np.asarray(world.action), done[rows, at - 1]])
            observed = np.concatenate([_encoded(pomdp, world.observation), seen[rows, at]])
            carried, actions, values = self._step(carried, previous, observed)
            world = _advance(pomdp, world, jnp.asarray(actions[:n]), jnp.asarray(over))
            gained += np.where(over, 0, np.asarray(world.reward) * pomdp.discount**now)
            record.append((np.where(over, NO_ACTION, actions[:n]), values[n:]))
        actions, values = (np.stack(each) for each in zip(*record, strict=True))
        return After(*map(jnp.asarray, (actions, world.done, gained, values)))

    def _step(
        self, memory: Float[np.ndarray, "n w"] | None, previous: Array | np.ndarray, seen: Float[np.ndarray, "n o"]
    ) -> tuple[Float[np.ndarray, "n w"], Int[np.ndarray, " n"], Float[np.ndarray, "n actions"]]:
        # The agent gets copies: JAX's own arrays are read-only, which PyTorch warns of.
        memory, actions, values = self.agent.step_all(memory, np.array(previous), np.array(seen))
        if self.removal is not None:
            memory = np.array(_removed(self.removal, jnp.asarray(memory)))
        return memory, actions, values


def as_vector_agent(agent: RecurrentAgent | BatchAgent | VectorAgent) -> VectorAgent:
    """Any agent that interventions take; others are refused."""
    if isinstance(agent, VectorAgent):
        return agent
    if isinstance(agent, BatchAgent) and not isinstance(agent, type):
        return SteppedAgent(agent)
    return FlatAgent(agent)  # pyright: ignore[reportArgumentType]: it refuses other agents


@eqx.filter_jit
def _start(key: PRNGKeyArray, pomdp: POMDP, num_episodes: int) -> World:
    """As `rollout` splits its key."""
    return jax.vmap(lambda each: start_world(each, pomdp)[0])(jax.random.split(fast_key(key), num_episodes))


@eqx.filter_jit
def _advance(pomdp: POMDP, worlds: World, actions: Int[Array, " n"], over: Bool[Array, " n"]) -> World:
    """One step of each episode that is not over; the others stay, and earn 0."""

    def step(world: World, action: Int[Array, ""], stays: Bool[Array, ""]) -> World:
        moved = step_world(world, world_keys(world), pomdp, action)
        return jax.tree.map(lambda new, old: jnp.where(stays, old, new), moved, rest_world(world))

    return jax.vmap(step)(worlds, actions, over)


@eqx.filter_jit
def _encode(pomdp: POMDP, observations: PyTree) -> Float[Array, "n observation"]:
    return jax.vmap(pomdp.encode_observation)(observations)


def _encoded(pomdp: POMDP, observations: PyTree) -> Float[np.ndarray, "n observation"]:
    return np.asarray(_encode(pomdp, observations), np.float32)


def _encoded_along(pomdp: POMDP, observations: PyTree) -> Float[np.ndarray, "n time observation"]:
    """Of all steps."""
    n, time = jax.tree.leaves(observations)[0].shape[:2]
    flat = jax.tree.map(lambda leaf: jnp.reshape(leaf, (n * time, *leaf.shape[2:])), observations)
    return _encoded(pomdp, flat).reshape(n, time, -1)


@eqx.filter_jit
def _removed(removal: Removal, memory: Float[Array, "n w"]) -> Float[Array, "n w"]:
    return jax.vmap(removal)(memory)
