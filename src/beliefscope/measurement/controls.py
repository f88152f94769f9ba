"""The controls of a measurement: what else shares information with the belief, on the same histories.

A memory that shares many bits with the belief may owe them to the time alone, to the last observations, or to what any
untrained network keeps. All controls use the pairs of the measured policy.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from beliefscope.errors import require
from beliefscope.fast_keys import generator
from beliefscope.information import Estimate, Estimator
from beliefscope.measurement.interface import Pairs


def controls(
    key: PRNGKeyArray, estimator: Estimator, pairs: Pairs, belief: Any, *, horizon: int
) -> dict[str, Estimate]:
    """The information of each control with the belief, by name; `pairs.replayed` is the network before training."""
    require(
        pairs.replayed is not None,
        rule="the controls need what the untrained network remembers of the same histories",
        received="no replayed memories",
        advice="pass replay=network_before_training to sample_pairs",
    )
    key_shuffle, *keys = jax.random.split(key, 7)
    time = jax.nn.one_hot(pairs.time, horizon)
    others: dict[str, Any] = {
        "untrained": pairs.replayed,  # (b) the same network at episode 0 over these histories
        "time": time,  # (c)
        "observation": pairs.observation,  # (d) o_t
        "recent": pairs.recent,  # (e) the last 8 (action, observation)
        "memory and time": jnp.concatenate([pairs.memory, time], axis=1),
    }
    found = {name: estimator.estimate(key, x, belief) for key, (name, x) in zip(keys, others.items(), strict=False)}
    order = generator(key_shuffle).permutation(len(pairs.time))
    return {"shuffled": estimator.estimate(keys[-1], pairs.memory[order], belief), **found}  # (a)


def given_time(found: dict[str, Estimate]) -> float:
    """I(h; b | t) = I(h, t; b) − I(t; b), in bits, by the chain rule."""
    return found["memory and time"].bits - found["time"].bits
