"""Sample pairs (memory, belief): play an agent, draw a step of each episode, filter up to it.

The step is drawn uniformly from those at which the agent acted: visited, and not terminal.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.exploration import EpsilonGreedy
from beliefscope.agent.interface import RecurrentAgent
from beliefscope.agent.network import network_input
from beliefscope.belief import Filter
from beliefscope.errors import is_real, is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pairs.interface import RECENT, Pairs
from beliefscope.pairs.walk import beliefs_at, memories_at
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.eager import check_pomdp_type
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import discounted_return

_CHUNK = 500  # episodes at a time, which bounds the memory whatever N is
_CHUNKS_ON_GPU = 10  # side by side, where a step takes as long for one chunk


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
