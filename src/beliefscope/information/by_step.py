"""Sufficiency at each step of an episode, by one decoder for all steps.

`sufficiency_by_step` fits decoders of the memory, beyond the mean belief at each t, to pairs of one step of each
episode. It judges them on all steps of other episodes: the share at step t is (CE_t − CE_ht) / (CE_t − H) of the rows
of that step. A step at which the belief knows next to nothing beyond the time has no share.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.check import checked_rows
from beliefscope.information.decoders import Fits, Split, reading
from beliefscope.information.probe import binned, checked_probabilities
from beliefscope.information.sufficiency import (
    BINS,
    LEAST_BITS,
    LEAST_PAIRS,
    Ratio,
    _Beliefs,
    _counted,
    _cross_entropy,
    _entropies,
    _means_at,
)

LEAST_ROWS = 20  # at a step; where fewer episodes last that long, there is no number
_RESAMPLES = 300


class Steps(NamedTuple):
    """Memories, beliefs and times, a row for each step of an episode."""

    memory: Float[np.ndarray, "n m"]
    belief: Float[np.ndarray, "n *M d"]
    time: Int[np.ndarray, " n"]


class StepShare(NamedTuple):
    """What the memory holds at one step."""

    time: int
    number: int  # of judged episodes that last so long
    available: float  # bits: what the belief knows about the state beyond the time
    share: Ratio | None  # None where that is next to nothing


def sufficiency_by_step(pairs: Any, along: Any, *, key: PRNGKeyArray | None = None) -> tuple[StepShare, ...]:
    """`pairs` has one step of each of N episodes, `along` all steps of others; both as `Steps`, or what can be such.

    The beliefs are rows of probabilities [N, d] or sets of particles [N, M, d], of one kind in both.
    """
    pairs, along = (Steps(*map(np.asarray, given)) for given in (pairs, along))
    number = len(pairs.time)
    require(
        number >= LEAST_PAIRS,
        rule=f"a decoder for all steps needs at least {LEAST_PAIRS} pairs",
        received=number,
        advice="measure on more episodes",
    )
    x = checked_rows("memory", np.concatenate([pairs.memory, along.memory]))
    beliefs = _rows(np.concatenate([pairs.belief, along.belief]))
    known, times = np.unique(np.concatenate([pairs.time, along.time]), return_inverse=True)
    key_split, key_fit = jax.random.split(fast_key(jax.random.key(0) if key is None else key))
    order = generator(key_split).permutation(number)
    train, choose = order[: number * 4 // 5], order[number * 4 // 5 :]
    judge = number + np.arange(len(along.time))
    baseline = _means_at(beliefs.rows, times, train, choose)
    fits = Fits(
        key_fit,
        jnp.asarray(reading(x)),
        jnp.asarray(beliefs.rows, jnp.float32),
        jnp.asarray(times),
        jnp.asarray(baseline[None], jnp.float32),
        Split(*(jnp.asarray(part[None]) for part in (train, choose, judge))),
    ).cross_entropies()
    best = min(fits.values(), key=lambda found: float(found.chosen[0]))
    entropies = _entropies(beliefs.rows) if beliefs.entropies is None else beliefs.entropies
    unread = _cross_entropy(beliefs.rows[judge], baseline[times[judge]])
    gained = np.stack([unread - best.judged[0], unread - entropies[judge]])
    return tuple(
        _share(int(known[time]), gained[:, times[judge] == time])
        for time in np.unique(times[judge])
        if np.sum(times[judge] == time) >= LEAST_ROWS
    )


def _rows(belief: Float[np.ndarray, "n *M d"]) -> _Beliefs:
    if belief.ndim == 2:
        return _Beliefs(checked_probabilities(belief))
    return _counted(binned(belief, bins=BINS), belief.shape[1])


def _share(time: int, parts: Float[np.ndarray, "2 n"]) -> StepShare:
    """Of the nats gained by the memory and by the belief; episodes are drawn anew for the interval."""
    gained, there = parts.mean(axis=1)
    number, available = parts.shape[1], float(there / np.log(2))
    if available < LEAST_BITS:
        return StepShare(time, number, available, None)
    drawn = np.random.default_rng(number).integers(number, size=(_RESAMPLES, number))
    means = parts[:, drawn].mean(axis=2)
    low, high = np.percentile(np.maximum(means[0] / np.maximum(means[1], 1e-9), 0), [2.5, 97.5])
    value = max(0.0, float(gained / there))
    return StepShare(time, number, available, Ratio(value, min(value, float(low)), max(value, float(high))))
