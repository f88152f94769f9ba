"""The compiled steps of the environments: many episodes of one POMDP side by side, each with its belief on request.

Which key decides what is said in `beliefscope.pomdp.rollout`, whose functions are used here.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from beliefscope.belief import Filter
from beliefscope.pomdp import POMDP, Finite
from beliefscope.pomdp.rollout import World, start_world, step_world, world_keys


class Running(NamedTuple):
    """N episodes as they stand."""

    world: World
    belief: PyTree  # [n, ...], None where no filter is asked for
    time: Int[Array, " n"]  # actions taken
    encoded: Float[Array, "n observation"]  # o_t as an agent reads it
    features: PyTree  # of the belief


@eqx.filter_jit
def begin(keys: Key[Array, " n"], pomdp: POMDP, filter: Filter | None) -> Running:
    """New episodes at t = 0."""

    def one(key: Key[Array, ""]) -> tuple[World, PyTree]:
        world, key_watch = start_world(key, pomdp)
        belief = None if filter is None else filter.init(key_watch, world.observation, terminal=world.done)
        return world, belief

    worlds, beliefs = jax.vmap(one)(keys)
    return _shown(pomdp, filter, worlds, beliefs, jnp.zeros(len(keys), int))


@eqx.filter_jit
def advance(
    running: Running,
    actions: Int[Any, " n"],
    again: Bool[Any, " n"],
    keys: Key[Array, " n"] | None,
    pomdp: POMDP,
    filter: Filter | None,
) -> tuple[Running, Float[Array, " n"], Bool[Array, " n"], Bool[Array, " n"]]:
    """One step of each, or, where `again` holds, a new episode in its place; rewards, terminated, truncated.

    Without keys no episode begins.
    """

    def one(world: World, belief: PyTree, action: Int[Array, ""]) -> tuple[World, PyTree]:
        keys_step = world_keys(world)
        moved = step_world(world, keys_step, pomdp, action)
        if filter is None:
            return moved, None
        return moved, filter.update(keys_step.watch, belief, action, moved.observation, terminal=moved.done)

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(again.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    worlds, beliefs = jax.vmap(one)(running.world, running.belief, actions)
    if keys is not None:
        fresh = begin(keys, pomdp, filter)
        worlds, beliefs = jax.tree.map(choose, (fresh.world, fresh.belief), (worlds, beliefs))
    time = jnp.where(again, 0, running.time + 1)
    now = _shown(pomdp, filter, worlds, beliefs, time)
    terminated = ~again & worlds.done
    return now, jnp.where(again, 0.0, worlds.reward), terminated, ~again & ~worlds.done & (time >= pomdp.horizon)


def _shown(pomdp: POMDP, filter: Filter | None, worlds: World, beliefs: PyTree, time: Int[Array, " n"]) -> Running:
    encoded = jax.vmap(pomdp.encode_observation)(worlds.observation)
    features = None
    if filter is not None:
        keys = jax.vmap(lambda key: jax.random.fold_in(key, 0))(worlds.key)
        features = jax.vmap(filter.features)(keys, beliefs)
    return Running(worlds, beliefs, time, encoded, features)


def observation_space(pomdp: POMDP) -> spaces.Box:
    """Vectors [observation_size]: one-hot codes lie in [0, 1], others are unbounded."""
    ends = (0.0, 1.0) if isinstance(pomdp, Finite) and _is_one_hot(pomdp) else (-np.inf, np.inf)
    return spaces.Box(*ends, shape=(pomdp.observation_size,), dtype=np.float32)


def _is_one_hot(pomdp: POMDP) -> bool:
    codes = np.asarray(jax.vmap(pomdp.encode_observation)(jnp.arange(pomdp.observation_size)))
    return codes.shape == (len(codes), len(codes)) and bool(np.all(codes == np.eye(len(codes))))


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy's arrays, which the caller may write to."""
    return jax.tree.map(np.array, tree)
