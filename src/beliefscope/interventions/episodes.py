"""Episodes of an agent whose memory is one vector, memories at chosen steps of them, and continued episodes.

An intervention at step t replaces the memory x_t that the agent carries on after it has read o_t. Its action a_t has
been chosen by then, so that the new memory acts from step t + 1 on. The episode continues in its own world: with the
state, and with the random numbers, that it would have had.

x_t is all that the agent carries from step to step, end to end; of an LSTM these are h and c of every layer. A
`Removal` may be applied to it after each step, before it is carried into the next one: so an agent without some of its
memory is an agent too. `FlatAgent` is an agent in JAX, whose episodes are compiled programs; stepped.py has others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.network import EpsilonGreedy, RecurrentAgent
from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.probe import checked_probabilities
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import Trajectory, World, rest_world, start_world, step_world, world_keys

MOMENTS = 8  # steps that are looked at of each episode


class Later(NamedTuple):
    """Where episodes are continued: after a_t in their own worlds, beside what they saw and did when left alone."""

    world: World  # a row for each
    time: Int[Array, " n"]  # t
    observations: PyTree  # [n, H + 1, ...]
    actions: Int[Array, "n H"]
    lengths: Int[Array, " n"]


class After(NamedTuple):
    """What follows. Place s of the first axis is step t + 1 + s of the episode."""

    actions: Int[Array, "later n"]  # in the episode's own world; NO_ACTION after its end
    terminated: Bool[Array, " n"]
    gained: Float[Array, " n"]  # Σ γ^t r_t of these steps
    values: Float[Array, "later n actions"]  # along what the episode saw and did when left alone


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


@runtime_checkable
class VectorAgent(Protocol):
    """An agent whose memory is one vector of w numbers. It acts by its greatest value."""

    def parts(self) -> dict[str, slice]:
        """Where each array that the agent carries lies in the vector."""
        ...

    def losing(self, removal: Removal) -> "VectorAgent":
        """The agent whose memory goes through the removal after each step."""
        ...

    def play(self, key: PRNGKeyArray, pomdp: POMDP, num_episodes: int) -> Trajectory:
        """Greedy episodes, with the random numbers of `rollout`."""
        ...

    def memories(self, pomdp: POMDP, played: Trajectory, times: Int[np.ndarray, "n m"]) -> Float[np.ndarray, "n m w"]:
        """x_t at these steps of its episodes."""
        ...

    def carry_on(self, pomdp: POMDP, memory: Float[np.ndarray, "n w"], later: Later) -> After:
        """Continue episodes with these memories."""
        ...


class FlatAgent(eqx.Module):
    """An agent in JAX with one vector of w numbers as its memory; `removal` acts on it after each step."""

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

    def parts(self) -> dict[str, slice]:
        return memory_parts(self.agent)

    def losing(self, removal: Removal) -> "FlatAgent":
        return FlatAgent(self.agent, removal)

    def play(self, key: PRNGKeyArray, pomdp: POMDP, num_episodes: int) -> Trajectory:
        return rollout(key, pomdp, EpsilonGreedy(self, pomdp, 0.0), num_episodes=num_episodes).trajectory

    def memories(self, pomdp: POMDP, played: Trajectory, times: Int[np.ndarray, "n m"]) -> Float[np.ndarray, "n m w"]:
        return np.asarray(_memories(self, pomdp, played.observations, played.actions, jnp.asarray(times)))

    def carry_on(self, pomdp: POMDP, memory: Float[np.ndarray, "n w"], later: Later) -> After:
        return _carry_on(self, pomdp, jnp.asarray(memory, jnp.float32), later)


def memory_parts(agent: RecurrentAgent) -> dict[str, slice]:
    """Where each array that the agent carries lies in the vector, by its path: `['first']`, `[0][1]`, …"""
    found, start = {}, 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.eval_shape(agent.init_memory)):
        found[jax.tree_util.keystr(path)] = slice(start, start + leaf.size)
        start += leaf.size
    return found


class Moments(NamedTuple):
    """Some steps t of some episodes, a row for each, as plain arrays but for the worlds."""

    episode: Int[np.ndarray, " n"]
    time: Int[np.ndarray, " n"]  # t
    group: Int[np.ndarray, " n"]  # rows of the same t and the same o_t have the same number
    memory: Float[np.ndarray, "n w"]  # x_t, after o_t
    belief: Float[np.ndarray, "n d"]  # b_t, rows of probabilities
    world: World  # after a_t, a row for each

    def rows(self, which: Int[np.ndarray, " k"] | Bool[np.ndarray, " n"]) -> "Moments":
        return jax.tree.map(lambda leaf: leaf[which], self)


class Played(NamedTuple):
    """Greedy episodes and moments of them."""

    trajectory: Trajectory
    moments: Moments


def play_moments(key: PRNGKeyArray, agent: VectorAgent, pomdp: POMDP, filter: Filter, *, num_episodes: int) -> Played:
    """Play N greedy episodes and keep `MOMENTS` steps of each, spread over those that have a step behind them."""
    key_play, key_times, key_filter = jax.random.split(fast_key(key), 3)
    played = agent.play(key_play, pomdp, num_episodes)
    lengths = np.asarray(played.lengths)
    behind = np.repeat(lengths >= 2, MOMENTS)
    require(
        bool(behind.any()),
        rule="an intervention needs an episode of at least two steps",
        received=f"lengths from {lengths.min()} to {lengths.max()}",
        advice="train the agent longer, or choose a POMDP whose episodes last",
    )
    draws = generator(key_times).random((num_episodes, MOMENTS))
    times = ((np.arange(MOMENTS) + draws) / MOMENTS * np.maximum(lengths - 1, 1)[:, None]).astype(int)
    # As `rollout` splits its key: the same episodes again.
    keys, keys_filter = (jax.random.split(each, num_episodes) for each in (key_play, key_filter))
    kept = _kept(keys, keys_filter, pomdp, filter, played.actions, jnp.asarray(times))
    belief, observation, world = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), kept)
    require(
        isinstance(belief, jax.Array) and belief.ndim == 2,
        rule="interventions need beliefs that are rows of probabilities",
        received=f"the features of {type(filter).__name__}",
        advice="use a POMDP with finitely many states and the ExactFilter",
    )
    memory = agent.memories(pomdp, played, times)
    seen = np.column_stack([times.ravel(), np.asarray(observation)])
    moments = Moments(
        episode=np.repeat(np.arange(num_episodes), MOMENTS),
        time=times.ravel(),
        group=np.unique(seen, axis=0, return_inverse=True)[1].ravel(),
        memory=memory.reshape(-1, memory.shape[2]),
        belief=checked_probabilities(np.asarray(belief)),
        world=world,
    )
    return Played(played, moments.rows(np.flatnonzero(behind)))


def play_again(key: PRNGKeyArray, agent: VectorAgent, pomdp: POMDP, *, num_episodes: int) -> Trajectory:
    """Another agent's episodes in the worlds that `play_moments` has with this key."""
    return agent.play(jax.random.split(fast_key(key), 3)[0], pomdp, num_episodes)


@eqx.filter_jit
def _kept(
    keys: Key[Array, " n"],
    keys_filter: Key[Array, " n"],
    pomdp: POMDP,
    filter: Filter,
    actions: Int[Array, "n H"],
    times: Int[Array, "n m"],
) -> PyTree:
    """Features of the belief, o_t as the agent reads it, and the world after a_t, at each of `times`."""

    def start(key: PRNGKeyArray, key_filter: PRNGKeyArray):
        world, _ = start_world(key, pomdp)
        return world, filter.init(key_filter, world.observation, terminal=False)

    def step(world: World, belief, action: Int[Array, ""], key_filter: PRNGKeyArray, t: Int[Array, ""]):
        moved = step_world(world, world_keys(world), pomdp, action)
        features = filter.features(key_filter, belief)
        after = filter.update(
            jax.random.fold_in(key_filter, t), belief, moved.action, moved.observation, terminal=False
        )
        return (moved, after), (features, pomdp.encode_observation(world.observation), moved)

    all_steps: Callable[..., Any] = jax.vmap(step, in_axes=(0, 0, 0, 0, None))

    def steps(now, t: Int[Array, ""]):
        return all_steps(*now, actions[:, t], keys_filter, t)

    return _at_times(steps, jax.vmap(start)(keys, keys_filter), times)


@eqx.filter_jit
def _memories(
    agent: FlatAgent, pomdp: POMDP, observations: PyTree, actions: Int[Array, "n H"], times: Int[Array, "n m"]
) -> Float[Array, "n m w"]:
    def steps(memory, t: Int[Array, ""]):
        seen = jax.vmap(pomdp.encode_observation)(jax.tree.map(lambda leaf: leaf[:, t], observations))
        memory, _ = jax.vmap(agent.step)(memory, jnp.where(t == 0, NO_ACTION, actions[:, t - 1]), seen)
        return memory, memory

    start = agent.init_memory()
    return _at_times(steps, jnp.broadcast_to(start, (len(times), *start.shape)), times)


def _at_times(
    steps: Callable[[Any, Int[Array, ""]], tuple[Any, PyTree]], start: Any, times: Int[Array, "n m"]
) -> PyTree:
    """What is seen at these steps: `steps(now, t)` gives what comes after step t, and what is seen there."""

    def body(carry):
        t, now, record = carry
        now, seen = steps(now, t)
        return t + 1, now, jax.tree.map(lambda old, new: _where(times == t, new[:, None], old), record, seen)

    _, seen = steps(start, jnp.asarray(0))
    record = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], times.shape[1], axis=1), seen)
    return lax.while_loop(lambda carry: carry[0] <= jnp.max(times), body, (jnp.asarray(0), start, record))[2]


class Continued(NamedTuple):
    """What happened after the interventions. Place s of the second axis is step t + 1 + s of the episode."""

    actions: Int[np.ndarray, "n later"]  # in the episode's own world; NO_ACTION after its end
    terminated: Bool[np.ndarray, " n"]
    returns: Float[np.ndarray, " n"]  # discounted, of the whole episode
    values: Float[np.ndarray, "n later actions"]  # along what the episode saw and did without the intervention
    compared: Bool[np.ndarray, "n later"]  # where that episode acted, and `values` are to be read

    def decision(self) -> Int[np.ndarray, " n"]:
        """The last action of an episode that ended, NO_ACTION of one that was cut."""
        last = np.maximum((self.actions != NO_ACTION).sum(axis=1) - 1, 0)
        return np.where(self.terminated, self.actions[np.arange(len(last)), last], NO_ACTION)


def continue_episodes(
    agent: VectorAgent, pomdp: POMDP, played: Played, moments: Moments, memory: Float[np.ndarray, "n w"]
) -> Continued:
    """Continue the episode of each row of `moments` with this memory in place of its own."""
    trajectory, episode = played.trajectory, moments.episode
    before = np.arange(trajectory.actions.shape[1]) <= moments.time[:, None]
    rewards = np.where(before, np.asarray(trajectory.rewards)[episode], 0)
    earned = rewards @ pomdp.discount ** np.arange(rewards.shape[1])
    seen, actions, lengths = jax.tree.map(
        lambda leaf: leaf[episode], (trajectory.observations, trajectory.actions, trajectory.lengths)
    )
    after = agent.carry_on(pomdp, memory, Later(moments.world, jnp.asarray(moments.time), seen, actions, lengths))
    later = moments.time[:, None] + 1 + np.arange(len(after.values))
    return Continued(
        actions=np.asarray(after.actions).T,
        terminated=np.asarray(after.terminated),
        returns=earned + np.asarray(after.gained, np.float64),
        values=np.moveaxis(np.asarray(after.values), 0, 1),
        compared=later < np.asarray(lengths)[:, None],
    )


@eqx.filter_jit
def _carry_on(agent: FlatAgent, pomdp: POMDP, memory: Float[Array, "n w"], later: Later) -> After:
    time = later.time

    def free(memory, world: World, time: Int[Array, ""]):
        after, values = agent.step(memory, world.action, pomdp.encode_observation(world.observation))
        action = jnp.argmax(values)
        over = world.done | (time >= pomdp.horizon)
        moved = step_world(world, world_keys(world), pomdp, action)
        kept = jax.tree.map(lambda old, new: jnp.where(over, old, new), (memory, rest_world(world)), (after, moved))
        return *kept, jnp.where(over, NO_ACTION, action), kept[1].reward * pomdp.discount**time

    def led(memory, seen: PyTree, done: Int[Array, " H"], time: Int[Array, ""]):
        observation = jax.tree.map(lambda leaf: leaf[jnp.minimum(time, len(done))], seen)
        return agent.step(memory, done[jnp.minimum(time, len(done)) - 1], pomdp.encode_observation(observation))

    def body(carry):
        s, world, memory, memory_led, gained, record = carry
        now = time + 1 + s
        memory, world, action, reward = jax.vmap(free)(memory, world, now)
        memory_led, values = jax.vmap(led)(memory_led, later.observations, later.actions, now)
        record = jax.tree.map(lambda old, new: old.at[s].set(new), record, (action, values))
        return s + 1, world, memory, memory_led, gained + jnp.where(action == NO_ACTION, 0, reward), record

    def running(carry):
        s, world, *_ = carry
        now = time + 1 + s
        return jnp.any((now < pomdp.horizon) & ~world.done) | jnp.any(now < later.lengths)

    n, most = len(time), pomdp.horizon
    blank = (jnp.full((most, n), NO_ACTION), jnp.zeros((most, n, pomdp.num_actions)))
    start = (jnp.asarray(0), later.world, memory, memory, jnp.zeros(n), blank)
    _, world, _, _, gained, record = lax.while_loop(running, body, start)
    return After(record[0], world.done, gained, record[1])


def _where(mask: Bool[Array, "n m"], new: Array, old: Array) -> Array:
    return jnp.where(mask.reshape(*mask.shape, *[1] * (old.ndim - 2)), new, old)
