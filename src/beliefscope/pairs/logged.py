"""Pairs from logged trajectories: anybody's agent, in any framework, as long as its memories were written down."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.pairs.interface import Pairs
from beliefscope.pairs.sample import last_inputs, network_inputs
from beliefscope.pairs.walk import beliefs_at
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.eager import check_pomdp_type


def pairs_from_trajectories(
    key: PRNGKeyArray,
    pomdp: POMDP,
    filter: Filter,
    *,
    memory: Any,
    actions: Any,
    observations: PyTree,
    lengths: Any,
) -> Pairs:
    """One uniformly drawn step of each of N logged episodes, with the belief there.

    `memory` [N, T, m] is the agent's memory after o_t, `observations` [N, T, …] are o_0 … as the POMDP gives them,
    `actions` [N, T] are a_0 …; of each only the first `lengths[n]` steps count, which must not be terminal. Arrays may
    be NumPy's, JAX's or any that NumPy can read.
    """
    check_pomdp_type(pomdp)
    memory, actions, lengths = (jnp.asarray(array) for array in (memory, actions, lengths))
    observations = jax.tree.map(jnp.asarray, observations)
    shapes = [memory.shape, actions.shape, lengths.shape, *(leaf.shape for leaf in jax.tree.leaves(observations))]
    along = [actions, *jax.tree.leaves(observations)]
    require(
        memory.ndim == 3
        and lengths.shape == memory.shape[:1]
        and all(array.shape[:2] == memory.shape[:2] for array in along),
        rule="logged episodes are memory [N, T, m], actions [N, T], observations [N, T, …] and lengths [N]",
        received=shapes,
        advice="pad episodes to one T and say how long each was",
    )
    require(
        bool(jnp.all((lengths >= 1) & (lengths <= memory.shape[1]))),
        rule=f"the length of a logged episode is a whole number from 1 to T = {memory.shape[1]}",
        received=[int(jnp.min(lengths)), int(jnp.max(lengths))],
        advice="leave empty episodes out",
    )
    require(
        bool(jnp.all(jnp.isfinite(memory))),
        rule="a memory is made of finite numbers",
        received="NaN or infinity",
        advice="look for a diverged agent, or for padding that is not a number",
    )
    return _pairs(key, pomdp, filter, memory, actions, observations, lengths)


@eqx.filter_jit
def _pairs(
    key: PRNGKeyArray,
    pomdp: POMDP,
    filter: Filter,
    memory: Float[Array, "n time memory"],
    actions: Int[Array, "n time"],
    observations: PyTree,
    lengths: Int[Array, " n"],
) -> Pairs:
    number = len(lengths)
    key_time, key_filter, key_features = jax.random.split(fast_key(key), 3)
    times = jax.random.randint(key_time, (number,), 0, lengths)
    beliefs = beliefs_at(jax.random.split(key_filter, number), filter, observations, actions, times)
    inputs = network_inputs(pomdp, observations, actions)
    return Pairs(
        memory=memory[jnp.arange(number), times],
        belief=jax.vmap(filter.features)(jax.random.split(key_features, number), beliefs),
        time=times,
        observation=inputs[jnp.arange(number), times, pomdp.num_actions :],
        recent=jax.vmap(last_inputs)(inputs, times),
        replayed=None,
        health=jax.vmap(filter.health)(beliefs),
        returns=None,
    )
