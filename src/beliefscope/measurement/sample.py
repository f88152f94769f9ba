"""Pairs (memory, belief): play an agent, draw a step of each episode, filter up to it.

The step is drawn uniformly from those at which the agent acted: visited, and not terminal. `beliefs_at` and
`memories_at` follow recorded episodes up to the drawn step and keep nothing of the steps before it, so that a belief of
a thousand particles is stored once for each episode.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.network import EpsilonGreedy, RecurrentAgent, network_input
from beliefscope.belief import Filter
from beliefscope.errors import is_real, is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import NO_ACTION, check_pomdp_type
from beliefscope.pomdp.rollout import discounted_return

RECENT = 8  # how many of the last (action, observation) pairs are kept


class Pairs(NamedTuple):
    """One step of each of N episodes."""

    memory: Float[Array, "n memory"]  # h_t
    belief: PyTree  # features of b_t: vectors [n, d], sets [n, M, d], or a record of those by part
    time: Int[Array, " n"]  # t
    observation: Float[Array, "n observation"]  # o_t as the network reads it
    recent: Float[Array, "n recent"]  # (a_{t-1}, o_t) and the seven before it, newest first, zeros before the start
    replayed: Float[Array, "n other"] | None  # the memory of another agent along the same histories, where one is given
    health: PyTree  # how far each belief can be trusted
    returns: Float[Array, " n"] | None  # the episode's discounted return, where it is known


_CHUNK = 500  # episodes at a time, which bounds the memory whatever N is
_CHUNKS_ON_GPU = 10  # side by side, where a step takes as long for one chunk
_GROUP, _GROUP_ON_GPU = 50, 125  # episodes of a chunk that are filtered together


def sample_pairs(
    key: PRNGKeyArray,
    agent: RecurrentAgent,
    pomdp: POMDP,
    filter: Filter,
    *,
    num_samples: int,
    epsilon: float = 0.0,
    replay: RecurrentAgent | None = None,
) -> Pairs:
    """N = `num_samples` pairs from as many episodes of the ε-greedy policy.

    `replay` is an agent that does not act but reads the same histories, the same network before training say.
    """
    check_pomdp_type(pomdp)
    asked = [("agent", agent, RecurrentAgent), ("filter", filter, Filter)]
    for name, given, kind in asked + [("replayed agent", replay, RecurrentAgent)] * (replay is not None):
        require(
            isinstance(given, kind) and not isinstance(given, type),
            rule=f"the {name} is a {kind.__name__}",
            received=type(given).__name__,
            advice=f"pass an object with the methods of {kind.__module__}.{kind.__name__}",
        )
    require(
        is_whole(num_samples) and num_samples >= 1,
        rule="the number of samples is a whole number of at least 1",
        received=num_samples,
        advice="the paper uses 10000",
    )
    require(
        is_real(epsilon) and 0 <= epsilon <= 1,
        rule="ε lies in [0, 1]",
        received=epsilon,
        advice="0 is the greedy policy",
    )
    chunks, rate = -(-int(num_samples) // _CHUNK), jnp.asarray(float(epsilon))
    at_once = min(chunks, _chunks_at_once())
    keys = jax.random.split(fast_key(key), (-(-chunks // at_once), at_once))
    # One program for every N, called again and again: it takes far longer to compile than to call.
    sampled = [_sample(some, agent, pomdp, filter, rate, replay) for some in keys]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:num_samples], *sampled)


def _chunks_at_once() -> int:
    return 1 if jax.default_backend() == "cpu" else _CHUNKS_ON_GPU


@eqx.filter_jit
def _sample(
    keys: Key[Array, " chunks"],
    agent: RecurrentAgent,
    pomdp: POMDP,
    filter: Filter,
    epsilon: Float[Array, ""],
    replay: RecurrentAgent | None,
) -> Pairs:
    """The pairs of one chunk, or of several side by side, a key for each."""
    if len(keys) == 1:
        return _sample_chunk(keys[0], agent, pomdp, filter, epsilon, replay)
    pairs = jax.vmap(lambda key: _sample_chunk(key, agent, pomdp, filter, epsilon, replay))(keys)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), pairs)


def _sample_chunk(
    key: PRNGKeyArray,
    agent: RecurrentAgent,
    pomdp: POMDP,
    filter: Filter,
    epsilon: Float[Array, ""],
    replay: RecurrentAgent | None,
) -> Pairs:
    key_play, key_time, key_filter, key_features = jax.random.split(key, 4)
    played = rollout(key_play, pomdp, EpsilonGreedy(agent, pomdp, epsilon), num_episodes=_CHUNK).trajectory
    times = jax.random.randint(key_time, (_CHUNK,), 0, jnp.maximum(played.lengths, 1))

    def memory(reader: RecurrentAgent) -> Float[Array, "n memory"]:
        return jax.vmap(reader.memory_vector)(memories_at(reader, pomdp, played.observations, played.actions, times))

    beliefs = beliefs_at(jax.random.split(key_filter, _CHUNK), filter, played.observations, played.actions, times)
    inputs = network_inputs(pomdp, played.observations, played.actions)
    return Pairs(
        memory=memory(agent),
        belief=jax.vmap(filter.features)(jax.random.split(key_features, _CHUNK), beliefs),
        time=times,
        observation=inputs[jnp.arange(_CHUNK), times, pomdp.num_actions :],
        recent=jax.vmap(last_inputs)(inputs, times),
        replayed=None if replay is None else memory(replay),
        health=jax.vmap(filter.health)(beliefs),
        returns=discounted_return(played.rewards, pomdp.discount),
    )


def network_inputs(
    pomdp: POMDP, observations: PyTree, actions: Int[Array, "batch time"]
) -> Float[Array, "batch times inputs"]:
    """x_t = (one-hot a_{t-1}, o_t) of every step."""
    seen = jax.vmap(jax.vmap(pomdp.encode_observation))(observations)
    before = jnp.concatenate([jnp.full((len(actions), 1), NO_ACTION), actions], axis=1)[:, : seen.shape[1]]
    return network_input(before, seen, pomdp.num_actions)


def last_inputs(inputs: Float[Array, "times inputs"], time: Int[Array, ""]) -> Float[Array, " recent"]:
    """x_t and the seven before it, end to end, newest first; zeros before the start."""
    index = time - jnp.arange(RECENT)
    return jnp.ravel(jnp.where(index[:, None] >= 0, inputs[jnp.maximum(index, 0)], 0))


def beliefs_at(
    keys: Key[Array, " batch"],
    filter: Filter,
    observations: PyTree,
    actions: Int[Array, "batch time"],
    times: Int[Array, " batch"],
) -> PyTree:
    """b_t of each episode at its own t = `times[i]`; no step up to there ended the episode.

    Observations are [batch, time, ...].
    """
    # Groups of episodes that stop at similar times: about half the steps. The last one fills up the last group.
    number, group = len(times), _GROUP if jax.default_backend() == "cpu" else _GROUP_ON_GPU
    order = jnp.argsort(times)
    padded = order[jnp.minimum(jnp.arange(-(-number // group) * group), number - 1)].reshape(-1, group)
    rows = jax.tree.map(lambda leaf: leaf[padded], (keys, observations, actions, times))
    groups = lax.map(lambda some: _filter_together(some[0], filter, *some[1:]), rows)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[jnp.argsort(order)], groups)


def _filter_together(
    keys: Key[Array, " batch"],
    filter: Filter,
    observations: PyTree,
    actions: Int[Array, "batch time"],
    times: Int[Array, " batch"],
) -> PyTree:
    """Beliefs of one group of episodes, in as many steps as the latest of `times` asks for."""

    def first(key: PRNGKeyArray, observation: PyTree) -> PyTree:
        return filter.init(jax.random.fold_in(key, 0), observation, terminal=False)

    def later(key: PRNGKeyArray, belief: PyTree, action: Int[Array, ""], observation: PyTree, t: Int[Array, ""]):
        return filter.update(jax.random.fold_in(key, t), belief, action, observation, terminal=False)

    start = jax.vmap(first)(keys, _at(observations, 0))
    return _repeat(
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
    return _repeat(
        start, times, lambda t, memories: jax.vmap(step)(memories, _at(actions, t - 1), _at(observations, t))
    )


def _repeat(start: PyTree, times: Int[Array, " batch"], step: Callable[[Int[Array, ""], PyTree], PyTree]) -> PyTree:
    """Apply `step` for t = 1, 2, …; each row stops at its own time."""

    def body(carry):
        t, now = carry

        def keep(new: Array, old: Array) -> Array:
            return jnp.where((t <= times).reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return t + 1, jax.tree.map(keep, step(t, now), now)

    return lax.while_loop(lambda carry: carry[0] <= jnp.max(times), body, (jnp.asarray(1), start))[1]


def _at(record: PyTree, t: Int[Array, ""] | int) -> PyTree:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, t, axis=1, keepdims=False), record)
