"""The compiled programs of interventions: greedy episodes, memories at chosen steps of them, and continued episodes.

An intervention at step t replaces the memory x_t that the agent carries on after it has read o_t. Its action a_t has
been chosen by then, so that the new memory acts from step t + 1 on. The episode continues in its own world: with the
state, and with the random numbers, that it would have had.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.network import EpsilonGreedy
from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.probe import checked_probabilities
from beliefscope.interventions.flat import FlatAgent
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import Trajectory, World, rest_world, start_world, step_world, world_keys

MOMENTS = 8  # steps that are looked at of each episode


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


def play_moments(key: PRNGKeyArray, agent: FlatAgent, pomdp: POMDP, filter: Filter, *, num_episodes: int) -> Played:
    """Play N greedy episodes and keep `MOMENTS` steps of each, spread over those that have a step behind them."""
    key_play, key_times, key_filter = jax.random.split(fast_key(key), 3)
    played = rollout(key_play, pomdp, EpsilonGreedy(agent, pomdp, 0.0), num_episodes=num_episodes).trajectory
    lengths = np.asarray(played.lengths)
    draws = generator(key_times).random((num_episodes, MOMENTS))
    times = ((np.arange(MOMENTS) + draws) / MOMENTS * np.maximum(lengths - 1, 1)[:, None]).astype(int)
    # As `rollout` splits its key: the same episodes again.
    keys, keys_filter = (jax.random.split(each, num_episodes) for each in (key_play, key_filter))
    kept = _kept(keys, keys_filter, agent, pomdp, filter, jnp.asarray(times))
    behind = np.repeat(lengths >= 2, MOMENTS)
    require(
        bool(behind.any()),
        rule="an intervention needs an episode of at least two steps",
        received=f"lengths from {lengths.min()} to {lengths.max()}",
        advice="the agent ends every episode with its first action",
    )
    memory, belief, observation, world = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), kept)
    require(
        isinstance(belief, jax.Array) and belief.ndim == 2,
        rule="interventions need beliefs that are rows of probabilities",
        received=f"the features of {type(filter).__name__}",
        advice="use a POMDP with finitely many states and the ExactFilter",
    )
    seen = np.column_stack([times.ravel(), np.asarray(observation)])
    moments = Moments(
        episode=np.repeat(np.arange(num_episodes), MOMENTS),
        time=times.ravel(),
        group=np.unique(seen, axis=0, return_inverse=True)[1].ravel(),
        memory=np.asarray(memory),
        belief=checked_probabilities(np.asarray(belief)),
        world=world,
    )
    return Played(played, moments.rows(np.flatnonzero(behind)))


@eqx.filter_jit
def _kept(
    keys: Key[Array, " n"],
    keys_filter: Key[Array, " n"],
    agent: FlatAgent,
    pomdp: POMDP,
    filter: Filter,
    times: Int[Array, "n moments"],
) -> PyTree:
    """Memory, features of the belief, o_t as the agent reads it, and the world after a_t, at each of `times`."""

    def start(key: PRNGKeyArray, key_filter: PRNGKeyArray):
        world, _ = start_world(key, pomdp)
        return world, agent.init_memory(), filter.init(key_filter, world.observation, terminal=False)

    def step(world: World, memory, belief, key_filter: PRNGKeyArray, t: Int[Array, ""]):
        observation = pomdp.encode_observation(world.observation)
        memory, values = agent.step(memory, world.action, observation)
        moved = step_world(world, world_keys(world), pomdp, jnp.argmax(values))
        features = filter.features(key_filter, belief)
        after = filter.update(
            jax.random.fold_in(key_filter, t), belief, moved.action, moved.observation, terminal=False
        )
        return (moved, memory, after), (memory, features, observation, moved)

    def body(carry):
        t, now, record = carry
        now, seen = steps(*now, keys_filter, t)
        return t + 1, now, jax.tree.map(lambda old, new: _where(times == t, new[:, None], old), record, seen)

    steps: Callable[..., Any] = jax.vmap(step, in_axes=(0, 0, 0, 0, None))
    now = jax.vmap(start)(keys, keys_filter)
    _, seen = steps(*now, keys_filter, jnp.asarray(0))
    record = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], times.shape[1], axis=1), seen)
    return lax.while_loop(lambda carry: carry[0] <= jnp.max(times), body, (jnp.asarray(0), now, record))[2]


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
    agent: FlatAgent, pomdp: POMDP, played: Played, moments: Moments, memory: Float[np.ndarray, "n w"]
) -> Continued:
    """Continue the episode of each row of `moments` with this memory in place of its own."""
    episode, before = moments.episode, np.arange(played.trajectory.actions.shape[1]) <= moments.time[:, None]
    rewards = np.where(before, np.asarray(played.trajectory.rewards)[episode], 0)
    earned = rewards @ pomdp.discount ** np.arange(rewards.shape[1])
    seen = jax.tree.map(lambda leaf: leaf[episode], played.trajectory.observations)
    given = (moments.world, jnp.asarray(moments.time), seen, played.trajectory.actions[episode])
    actions, terminated, gained, values = _continued(
        agent, pomdp, jnp.asarray(memory, jnp.float32), *given, played.trajectory.lengths[episode]
    )
    later = moments.time[:, None] + 1 + np.arange(values.shape[0])
    return Continued(
        actions=np.asarray(actions).T,
        terminated=np.asarray(terminated),
        returns=earned + np.asarray(gained, np.float64),
        values=np.moveaxis(np.asarray(values), 0, 1),
        compared=later < np.asarray(played.trajectory.lengths)[episode][:, None],
    )


@eqx.filter_jit
def _continued(
    agent: FlatAgent,
    pomdp: POMDP,
    memory: Float[Array, "n w"],
    world: World,
    time: Int[Array, " n"],
    observations: PyTree,
    actions: Int[Array, "n H"],
    lengths: Int[Array, " n"],
):
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
        memory_led, values = jax.vmap(led)(memory_led, observations, actions, now)
        record = jax.tree.map(lambda old, new: old.at[s].set(new), record, (action, values))
        return s + 1, world, memory, memory_led, gained + jnp.where(action == NO_ACTION, 0, reward), record

    def running(carry):
        s, world, *_ = carry
        now = time + 1 + s
        return jnp.any((now < pomdp.horizon) & ~world.done) | jnp.any(now < lengths)

    n, most = len(time), pomdp.horizon
    blank = (jnp.full((most, n), NO_ACTION), jnp.zeros((most, n, pomdp.num_actions)))
    start = (jnp.asarray(0), world, memory, memory, jnp.zeros(n), blank)
    _, world, _, _, gained, record = lax.while_loop(running, body, start)
    return record[0], world.done, gained, record[1]


def _where(mask: Bool[Array, "n m"], new: Array, old: Array) -> Array:
    return jnp.where(mask.reshape(*mask.shape, *[1] * (old.ndim - 2)), new, old)
