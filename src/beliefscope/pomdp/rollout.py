"""Play a batch of episodes under any policy, while an observer (such as a belief filter) sees what the agent sees.

The loop ends as soon as every episode has ended. Everything random in episode i depends on the i-th key alone, so an
episode is the same in any batch. `World` and its functions define which key decides what. Any program that plays a
POMDP with them plays the same episodes from one key.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp.interface import NO_ACTION, POMDP, Observation, check_pomdp_type


@runtime_checkable
class Policy(Protocol):
    """Chooses actions; `memory` is whatever it carries from step to step."""

    def init_memory(self) -> PyTree:
        """The memory before the first observation."""
        ...

    def act(
        self, key: PRNGKeyArray, memory: PyTree, previous_action: Int[Array, ""], observation: Observation
    ) -> tuple[PyTree, Int[Array, ""]]:
        """The new memory and the action a_t; `previous_action` is NO_ACTION at t = 0."""
        ...


@runtime_checkable
class Observer(Protocol):
    """Sees what the agent sees, and whether the episode ended, and keeps a summary of it.

    Every belief filter is an observer, whose summary is the belief.
    """

    def init(self, key: PRNGKeyArray, observation: Observation, /, *, terminal: Bool[Array, ""]) -> PyTree:
        """The summary of the first observation."""
        ...

    def update(
        self,
        key: PRNGKeyArray,
        summary: PyTree,
        action: Int[Array, ""],
        observation: Observation,
        /,
        *,
        terminal: Bool[Array, ""],
    ) -> PyTree:
        """The summary after one more action and observation."""
        ...


class Trajectory(NamedTuple):
    """Episodes of at most H actions.

    After an episode's end its last state and observation are repeated, and actions and rewards are 0.
    """

    states: PyTree  # [batch, H + 1, ...]
    observations: PyTree  # [batch, H + 1, ...]
    actions: Int[Array, "batch H"]
    rewards: Float[Array, "batch H"]
    terminated: Bool[Array, " batch"]  # did it end in a terminal state (rather than at the horizon)?
    lengths: Int[Array, " batch"]  # number of actions taken


class Rollout(NamedTuple):
    """The result of a batch of episodes: the trajectory, and the last states of the policy and the observer."""

    trajectory: Trajectory
    memory: PyTree  # the policy's memory after its last action [batch, ...]
    observer: PyTree  # the observer's state at each episode's end [batch, ...], None without one
    kept: PyTree  # keep(observer state) at t = 0 … H [batch, H + 1, ...], None without `keep`


class RandomPolicy(NamedTuple):
    """Acts by the POMDP's exploration policy."""

    pomdp: POMDP

    def init_memory(self) -> tuple[()]:
        return ()

    def act(
        self, key: PRNGKeyArray, memory: tuple[()], previous_action: Int[Array, ""], observation: Observation
    ) -> tuple[tuple[()], Int[Array, ""]]:
        return (), self.pomdp.sample_exploration(key)


class World(NamedTuple):
    """The state of an episode, without that of its player."""

    key: PRNGKeyArray
    state: PyTree
    observation: PyTree
    action: Int[Array, "*n"]  # the one that led here
    reward: Float[Array, "*n"]  # what it earned
    done: Bool[Array, "*n"]  # is the state terminal?


class StepKeys(NamedTuple):
    """The keys of one step, by use."""

    next: PRNGKeyArray
    act: PRNGKeyArray
    move: PRNGKeyArray
    observe: PRNGKeyArray
    watch: PRNGKeyArray  # the observer's


def start_world(key: PRNGKeyArray, pomdp: POMDP) -> tuple[World, PRNGKeyArray]:
    """The episode at t = 0, and the observer's key."""
    key_next, key_state, key_observe, key_watch = jax.random.split(key, 4)
    state = jax.tree.map(jnp.asarray, pomdp.sample_initial(key_state))
    observation = pomdp.sample_observation(key_observe, state)
    world = World(key_next, state, observation, jnp.asarray(NO_ACTION), jnp.zeros(()), pomdp.is_terminal(state))
    return world, key_watch


def world_keys(world: World) -> StepKeys:
    """Five keys from the one that the world carries."""
    return StepKeys(*jax.random.split(world.key, 5))


def step_world(world: World, keys: StepKeys, pomdp: POMDP, action: Int[Array, ""]) -> World:
    """One step, from a state that is not terminal."""
    state = pomdp.sample_transition(keys.move, world.state, action)
    observation = pomdp.sample_observation(keys.observe, state, action)
    reward = pomdp.reward(world.state, action, state, observation)
    return World(keys.next, state, observation, jnp.asarray(action), reward, pomdp.is_terminal(state))


def rest_world(world: World) -> World:
    """A step after the end: the state does not change, action and reward are 0."""
    return world._replace(action=jnp.zeros_like(world.action), reward=jnp.zeros_like(world.reward))


class _Episode(NamedTuple):
    """One running episode, with the policy's memory and the observer's state."""

    world: World
    memory: PyTree
    observer: PyTree
    length: Int[Array, ""]


def rollout(
    key: PRNGKeyArray,
    pomdp: POMDP,
    policy: Policy,
    *,
    num_episodes: int,
    observer: Observer | None = None,
    keep: Callable[[PyTree], PyTree] | None = None,
) -> Rollout:
    """Play `num_episodes` episodes of at most H = `pomdp.horizon` actions.

    `keep(state)` is what is stored of the observer's state at every step; without it only the last state is returned.
    """
    check_pomdp_type(pomdp)
    for name, given, kind in (("policy", policy, Policy), ("observer", observer, Observer)):
        require(
            (isinstance(given, kind) and not isinstance(given, type)) or (name == "observer" and given is None),
            rule=f"{'an' if name == 'observer' else 'a'} {name} has the methods of beliefscope.pomdp.{kind.__name__}",
            received=given,
            advice="see docs/pomdps.md, 'Playing'",
        )
    require(
        is_whole(num_episodes) and num_episodes >= 1,
        rule="the number of episodes is a whole number of at least 1",
        received=num_episodes,
        advice="ask for at least one episode",
    )
    require(
        keep is None or observer is not None,
        rule="keep needs an observer, whose state it stores",
        received=observer,
        advice="pass observer=… too",
    )
    return _rollout(key, pomdp, policy, int(num_episodes), observer, keep)


@eqx.filter_jit
def _rollout(
    key: PRNGKeyArray,
    pomdp: POMDP,
    policy: Policy,
    num_episodes: int,
    observer: Observer | None,
    keep: Callable[[PyTree], PyTree] | None,
) -> Rollout:
    keys = jax.random.split(fast_key(key), num_episodes)
    episodes = jax.vmap(lambda key_episode: _start(key_episode, pomdp, policy, observer))(keys)
    first = _seen(episodes, keep)
    blank = jax.tree.map(lambda leaf: jnp.zeros((pomdp.horizon + 1, *leaf.shape), leaf.dtype), first)

    def running(carry):
        time, episodes, _ = carry
        return (time < pomdp.horizon) & ~jnp.all(episodes.world.done)

    def step(carry):
        # What is written down is what came in: recording the step's results, which XLA fuses into the write, is slower.
        time, episodes, record = carry
        record = _write(record, time, _seen(episodes, keep))
        episodes = jax.vmap(lambda episode: _advance(episode, pomdp, policy, observer))(episodes)
        return time + 1, episodes, record

    time, episodes, record = jax.lax.while_loop(running, step, (jnp.asarray(0), episodes, blank))
    record = _write(record, time, _seen(episodes, keep))
    trajectory = Trajectory(
        states=_hold_last(record.state, time),
        observations=_hold_last(record.observation, time),
        actions=record.action[1:].T,
        rewards=record.reward[1:].T,
        terminated=episodes.world.done,
        lengths=episodes.length,
    )
    return Rollout(trajectory, episodes.memory, episodes.observer, _hold_last(record.kept, time))


def discounted_return(rewards: Float[Array, "*batch H"], discount: float) -> Float[Array, "*batch"]:
    """Σ_t γ^t r_t."""
    return rewards @ discount ** jnp.arange(rewards.shape[-1])


class _Record(NamedTuple):
    """What is recorded at every time from 0 to H."""

    state: PyTree
    observation: PyTree
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    kept: PyTree


def _start(key: PRNGKeyArray, pomdp: POMDP, policy: Policy, observer: Observer | None) -> _Episode:
    world, key_watch = start_world(key, pomdp)
    watched = None if observer is None else observer.init(key_watch, world.observation, terminal=world.done)
    return _Episode(world, policy.init_memory(), watched, length=jnp.asarray(0))


def _advance(episode: _Episode, pomdp: POMDP, policy: Policy, observer: Observer | None) -> _Episode:
    """One step of one episode; an episode that is done stays as it is, with action and reward 0."""
    world, keys = episode.world, world_keys(episode.world)
    memory, action = policy.act(keys.act, episode.memory, world.action, world.observation)
    moved = step_world(world, keys, pomdp, action)
    watched = None
    if observer is not None:
        watched = observer.update(keys.watch, episode.observer, action, moved.observation, terminal=moved.done)
    new = _Episode(moved, memory, watched, episode.length + 1)
    ended = episode._replace(world=rest_world(world))
    return jax.tree.map(lambda new, old: jnp.where(world.done, old, new), new, ended)


def _seen(episodes: _Episode, keep: Callable[[PyTree], PyTree] | None) -> _Record:
    kept = None if keep is None else jax.vmap(keep)(episodes.observer)
    world = episodes.world
    return _Record(world.state, world.observation, world.action, world.reward, kept)


def _write(record: _Record, time: Int[Array, ""], seen: _Record) -> _Record:
    return jax.tree.map(lambda buffer, leaf: buffer.at[time].set(leaf), record, seen)


def _hold_last(record: PyTree, time: Int[Array, ""]) -> PyTree:
    """Repeat the values at `time` for all later times, and put the batch first."""

    def hold(buffer: Array) -> Array:
        index = jnp.minimum(jnp.arange(len(buffer)), time)
        return jnp.swapaxes(buffer[index], 0, 1)

    return jax.tree.map(hold, record)
