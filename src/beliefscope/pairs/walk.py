"""Walk along recorded episodes up to one step of each: the belief there, the agent's memory there.

Observations are [batch, time, ...], actions [batch, time]; `times` says at which step to stop. Nothing is kept of the
steps before, so that a belief of a thousand particles is stored once for each episode.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.interface import RecurrentAgent
from beliefscope.belief import Filter
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import NO_ACTION

_GROUP, _GROUP_ON_GPU = 50, 125  # episodes of a chunk that are filtered together


def beliefs_at(
    keys: Key[Array, " batch"],
    filter: Filter,
    observations: PyTree,
    actions: Int[Array, "batch time"],
    times: Int[Array, " batch"],
) -> PyTree:
    """b_t of each episode at its own t; no step up to there ended the episode."""
    # Groups of episodes that stop at similar times: about half the steps.
    order, number, group = jnp.argsort(times), len(times), _GROUP if jax.default_backend() == "cpu" else _GROUP_ON_GPU
    padded = order[jnp.minimum(jnp.arange(-(-number // group) * group), number - 1)].reshape(-1, group)
    rows = jax.tree.map(lambda leaf: leaf[padded], (keys, observations, actions, times))
    groups = lax.map(lambda some: _walk_together(some[0], filter, *some[1:]), rows)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[jnp.argsort(order)], groups)


def _walk_together(
    keys: Key[Array, " batch"],
    filter: Filter,
    observations: PyTree,
    actions: Int[Array, "batch time"],
    times: Int[Array, " batch"],
) -> PyTree:
    """As many steps as the latest of `times` asks for."""

    def first(key: PRNGKeyArray, observation: PyTree) -> PyTree:
        return filter.init(jax.random.fold_in(key, 0), observation, terminal=False)

    def later(key: PRNGKeyArray, belief: PyTree, action: Int[Array, ""], observation: PyTree, t: Int[Array, ""]):
        return filter.update(jax.random.fold_in(key, t), belief, action, observation, terminal=False)

    start = jax.vmap(first)(keys, _at(observations, 0))
    return _walk(
        start,
        times,
        lambda t, beliefs: jax.vmap(later, in_axes=(0, 0, 0, 0, None))(
            keys, beliefs, _at(actions, t - 1), _at(observations, t), t
        ),
    )


def memories_at(
    agent: RecurrentAgent,
    pomdp: POMDP,
    observations: PyTree,
    actions: Int[Array, "batch time"],
    times: Int[Array, " batch"],
) -> PyTree:
    """The agent's memory h_t of each episode at its own t."""

    def step(memory: PyTree, action: Int[Array, ""], observation: PyTree) -> PyTree:
        return agent.step(memory, action, pomdp.encode_observation(observation))[0]

    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(times), *jnp.shape(leaf))), agent.init_memory())
    start = jax.vmap(step)(empty, jnp.full(len(times), NO_ACTION), _at(observations, 0))
    return _walk(start, times, lambda t, memories: jax.vmap(step)(memories, _at(actions, t - 1), _at(observations, t)))


def _walk(start: PyTree, times: Int[Array, " batch"], step: Callable[[Int[Array, ""], PyTree], PyTree]) -> PyTree:
    """Apply `step` for t = 1, 2, …; each row stops at its own time."""

    def body(carry):
        t, now = carry

        def keep(new: Array, old: Array) -> Array:
            return jnp.where((t <= times).reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return t + 1, jax.tree.map(keep, step(t, now), now)

    return lax.while_loop(lambda carry: carry[0] <= jnp.max(times), body, (jnp.asarray(1), start))[1]


def _at(record: PyTree, t: Int[Array, ""] | int) -> PyTree:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, t, axis=1, keepdims=False), record)
