"""One episode, one step: which random key decides what. Whoever plays a POMDP plays the same episodes from one key."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.pomdp.interface import NO_ACTION, POMDP


class World(NamedTuple):
    """Where an episode stands, apart from who plays it."""

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


def start(key: PRNGKeyArray, pomdp: POMDP) -> tuple[World, PRNGKeyArray]:
    """The episode at t = 0, and the observer's key."""
    key_next, key_state, key_observe, key_watch = jax.random.split(key, 4)
    state = jax.tree.map(jnp.asarray, pomdp.sample_initial(key_state))
    observation = pomdp.sample_observation(key_observe, state)
    world = World(key_next, state, observation, jnp.asarray(NO_ACTION), jnp.zeros(()), pomdp.is_terminal(state))
    return world, key_watch


def step_keys(world: World) -> StepKeys:
    return StepKeys(*jax.random.split(world.key, 5))


def advance(world: World, keys: StepKeys, pomdp: POMDP, action: Int[Array, ""]) -> World:
    """One step, from a state that is not terminal."""
    state = pomdp.sample_transition(keys.move, world.state, action)
    observation = pomdp.sample_observation(keys.observe, state, action)
    reward = pomdp.reward(world.state, action, state, observation)
    return World(keys.next, state, observation, jnp.asarray(action), reward, pomdp.is_terminal(state))


def at_rest(world: World) -> World:
    """What stands for a step after the end: nothing moves, nothing is done, nothing is earned."""
    return world._replace(action=jnp.zeros_like(world.action), reward=jnp.zeros_like(world.reward))
