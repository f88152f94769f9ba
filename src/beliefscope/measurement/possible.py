"""Can what was logged happen in the POMDP? Every history is filtered to its end, and a filter flags the impossible.

A filter that samples flags a history also where its particles have been depleted. In a finite POMDP an exact filter
tells the two apart; elsewhere depletion is reported, and refused if it befalls more than half of the histories.
"""

import warnings
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from beliefscope.belief import ExactFilter, Filter, ProductFilter
from beliefscope.errors import require
from beliefscope.measurement.sample import beliefs_at
from beliefscope.pomdp import POMDP, Finite, Irrelevant

_MOST_SHOWN = 50  # observations that are tried to say what was possible
ADVICE = (
    "look whether actions count from 0, action t is the one taken after observation t, and POMDP and filter are those "
    "of the logs"
)


class _Part(NamedTuple):
    """What one filter follows."""

    filter: Filter
    pomdp: POMDP | None  # None for irrelevant variables
    observations: PyTree  # [n, time, ...]


def check_possible(
    key: PRNGKeyArray,
    pomdp: POMDP,
    filter: Filter,
    actions: Int[np.ndarray, "n time"],
    observations: PyTree,
    lengths: Int[np.ndarray, " n"],
) -> None:
    """Refuse impossible histories with the first of them; warn of depleted particles."""
    for part in _parts(pomdp, filter, observations):
        flagged, sampled = _flags(key, part, actions, lengths)
        if not flagged.any():
            continue
        exact = _exact(part) if sampled else part
        if exact is not None:
            impossible = flagged if exact is part else _flags(key, exact, actions, lengths)[0]
            require(
                not impossible.any(),
                rule="every logged history is possible in the POMDP",
                received=_example(exact, actions, impossible) if impossible.any() else "",
                advice=ADVICE,
            )
        _report_depletion(flagged, known=exact is not None)


def _parts(pomdp: POMDP, filter: Filter, observations: PyTree) -> list[_Part]:
    if isinstance(filter, ProductFilter) and isinstance(pomdp, Irrelevant):
        relevant = _Part(filter.relevant, pomdp.pomdp, observations.relevant)
        return [relevant, _Part(filter.irrelevant, None, observations.irrelevant)]
    return [_Part(filter, pomdp, observations)]


def _exact(part: _Part) -> _Part | None:
    """The same with an exact filter, where there is one."""
    if not isinstance(part.pomdp, Finite):
        return None
    knows = getattr(part.filter, "condition_on_termination", False)
    return part._replace(filter=ExactFilter(part.pomdp, condition_on_termination=knows))


def _flags(
    key: PRNGKeyArray, part: _Part, actions: Int[np.ndarray, "n time"], lengths: Int[np.ndarray, " n"]
) -> tuple[Bool[np.ndarray, " n"], bool]:
    """Which histories are flagged at their ends, and does the filter sample?"""
    observations = jax.tree.map(jnp.asarray, part.observations)
    health = _health(key, part.filter, observations, jnp.asarray(actions), jnp.asarray(lengths))
    return np.asarray(health.impossible), bool(np.isfinite(np.asarray(health.effective_sample_size)).any())


@eqx.filter_jit
def _health(
    key: PRNGKeyArray, filter: Filter, observations: PyTree, actions: Int[Array, "n time"], lengths: Int[Array, " n"]
) -> PyTree:
    beliefs = beliefs_at(jax.random.split(key, len(lengths)), filter, observations, actions, lengths - 1)
    return jax.vmap(filter.health)(beliefs)


def _example(part: _Part, actions: Int[np.ndarray, "n time"], impossible: Bool[np.ndarray, " n"]) -> str:
    """How many there are, and the first: where it became impossible, and what would have been possible there."""
    episode = int(np.argmax(impossible))
    key = jax.random.key(0)

    def seen(t: int) -> PyTree:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf[episode, t]), part.observations)

    def follow(t: int, before: PyTree, observation: PyTree) -> PyTree:
        if t == 0:
            return part.filter.init(key, observation)
        return part.filter.update(key, before, jnp.asarray(actions[episode, t - 1]), observation)

    step, before, belief = 0, None, follow(0, None, seen(0))
    while not bool(part.filter.health(belief).impossible):
        step, before = step + 1, belief
        belief = follow(step, before, seen(step))
    number = part.pomdp.observation_size if part.pomdp is not None else 0
    is_number = all(np.ndim(leaf) == 2 and leaf.dtype.kind == "i" for leaf in jax.tree.leaves(part.observations))
    possible = ""
    if is_number and number <= _MOST_SHOWN:
        tried = [follow(step, before, jnp.asarray(each)) for each in range(number)]
        found = [each for each, after in enumerate(tried) if not bool(part.filter.health(after).impossible)]
        possible = f", where {' or '.join(map(str, found)) or 'nothing'} was possible"
    after = f"after action {actions[episode, step - 1]} " if step else ""
    shown = " ".join(str(np.asarray(leaf)) for leaf in jax.tree.leaves(seen(step)))
    return (
        f"{impossible.sum()} of {len(impossible)} impossible ones, the first in episode {episode} at step {step}: "
        f"{after}the observation {shown}{possible}"
    )


def _report_depletion(flagged: Bool[np.ndarray, " n"], *, known: bool) -> None:
    share = f"{flagged.sum()} of {len(flagged)} histories"
    require(
        known or flagged.mean() <= 0.5,
        rule="a particle filter follows most of the logged histories",
        received=f"particles depleted in {share}",
        advice=f"take more particles, or {ADVICE}",
    )
    reason = "all of which are possible" if known else "which may be unlikely or impossible"
    warnings.warn(
        f"the particles were depleted in {share}, {reason}: the beliefs there are predictions (see health); take more "
        "particles",
        stacklevel=4,
    )
