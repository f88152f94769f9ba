"""Play a batch of episodes under any policy, with an observer (such as a belief filter) riding along.

The loop ends as soon as every episode has ended. Everything random in episode i depends on the i-th key alone, so that
an episode is the same in any batch.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp.eager import check_pomdp_type
from beliefscope.pomdp.episode import World, advance, at_rest, start, step_keys
from beliefscope.pomdp.interface import POMDP, Observation


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
    """Sees what the agent sees, and whether the episode ended. Every belief filter is one."""

    def init(self, key: PRNGKeyArray, observation: Observation, *, terminal: Bool[Array, ""]) -> PyTree: ...

    def update(
        self,
        key: PRNGKeyArray,
        belief: PyTree,
        action: Int[Array, ""],
        observation: Observation,
        *,
        terminal: Bool[Array, ""],
    ) -> PyTree: ...


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
    """What an episode batch leaves: the trajectory, and the policy's and the observer's last word."""

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


class _Episode(NamedTuple):
    """One running episode."""

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

    `keep` says what of the observer's state to store at every step; without it only the last state comes back.
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
        rule="keep says what to store of the observer",
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
    """What is written down at every time from 0 to H."""

    state: PyTree
    observation: PyTree
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    kept: PyTree


def _start(key: PRNGKeyArray, pomdp: POMDP, policy: Policy, observer: Observer | None) -> _Episode:
    world, key_watch = start(key, pomdp)
    watched = None if observer is None else observer.init(key_watch, world.observation, terminal=world.done)
    return _Episode(world, policy.init_memory(), watched, length=jnp.asarray(0))


def _advance(episode: _Episode, pomdp: POMDP, policy: Policy, observer: Observer | None) -> _Episode:
    """One step of one episode; an episode that is done stays as it is, with action and reward 0."""
    world, keys = episode.world, step_keys(episode.world)
    memory, action = policy.act(keys.act, episode.memory, world.action, world.observation)
    moved = advance(world, keys, pomdp, action)
    watched = None
    if observer is not None:
        watched = observer.update(keys.watch, episode.observer, action, moved.observation, terminal=moved.done)
    new = _Episode(moved, memory, watched, episode.length + 1)
    ended = episode._replace(world=at_rest(world))
    return jax.tree.map(lambda new, old: jnp.where(world.done, old, new), new, ended)


def _seen(episodes: _Episode, keep: Callable[[PyTree], PyTree] | None) -> _Record:
    kept = None if keep is None else jax.vmap(keep)(episodes.observer)
    world = episodes.world
    return _Record(world.state, world.observation, world.action, world.reward, kept)


def _write(record: _Record, time: Int[Array, ""], seen: _Record) -> _Record:
    return jax.tree.map(lambda buffer, leaf: buffer.at[time].set(leaf), record, seen)


def _hold_last(record: PyTree, time: Int[Array, ""]) -> PyTree:
    """Repeat what stood at `time` ever after, and put the batch first."""

    def hold(buffer: Array) -> Array:
        index = jnp.minimum(jnp.arange(len(buffer)), time)
        return jnp.swapaxes(buffer[index], 0, 1)

    return jax.tree.map(hold, record)
