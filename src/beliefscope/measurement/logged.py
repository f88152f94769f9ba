"""Pairs of logged episodes, of any agent: the memory at one step of each, and the belief there.

Logs come from elsewhere, so that nothing of them is taken for granted: shapes, ranges, how observations are written,
whether the filter is one of this POMDP, and whether what was logged can happen in it. For the last, every history is
filtered to its end, and a filter flags the impossible. A filter that samples flags a history also where its particles
have been depleted. In a finite POMDP an exact filter tells the two apart; elsewhere depletion is reported, and refused
if it befalls more than half of the histories.
"""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.belief import ExactFilter, Filter, ProductFilter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.measurement.sample import Pairs, beliefs_at, last_inputs, network_inputs
from beliefscope.measurement.written_observations import array_of_numbers, as_the_pomdp_gives_them, observation_form
from beliefscope.pomdp import POMDP, Finite, Irrelevant
from beliefscope.pomdp.interface import check_pomdp_type

_AT_ONCE = 5000  # episodes that are filtered together
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
    keys, found = jax.random.split(key, len(lengths)), []
    for first in range(0, len(lengths), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        observations = jax.tree.map(lambda leaf, some=some: jnp.asarray(leaf[some]), part.observations)
        found.append(
            _health(keys[some], part.filter, observations, jnp.asarray(actions[some]), jnp.asarray(lengths[some]))
        )
    health = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
    return health.impossible, bool(np.isfinite(health.effective_sample_size).any())


@eqx.filter_jit
def _health(
    keys: Key[Array, " n"],
    filter: Filter,
    observations: PyTree,
    actions: Int[Array, "n time"],
    lengths: Int[Array, " n"],
) -> PyTree:
    beliefs = beliefs_at(keys, filter, observations, actions, lengths - 1)
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


class Log(NamedTuple):
    """N episodes padded to T steps."""

    memory: Float[np.ndarray, "n time memory"]
    actions: Int[np.ndarray, "n time"]
    observations: PyTree  # [n, time, ...], as the POMDP gives them
    lengths: Int[np.ndarray, " n"]


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

    `memory` [N, T, m] is the agent's memory after o_t, `observations` are o_0 … as the POMDP gives them [N, T, …] or as
    `pomdp.encode_observation` writes them [N, T, observation_size], `actions` [N, T] are a_0 …; of each only the first
    `lengths[n]` steps count, which must not be terminal. Arrays may be NumPy's, JAX's or any that NumPy can read.
    Histories that cannot happen in the POMDP are refused. Where the particles of a filter are depleted, which may have
    that reason or another, there is a warning, and `health` tells which.
    """
    check_pomdp_type(pomdp)
    check_filter(filter, pomdp)
    log = _read(pomdp, memory, actions, observations, lengths)
    check_possible(key, pomdp, filter, log.actions, log.observations, log.lengths)
    return _pairs(key, pomdp, filter, *jax.tree.map(jnp.asarray, log))


def check_filter(filter: Filter, pomdp: POMDP) -> None:
    """Refuse a filter of another POMDP: of other actions, observations or states."""
    require(
        isinstance(filter, Filter),
        rule="the filter is a beliefscope.belief.Filter",
        received=type(filter).__name__,
        advice="pass filter_of_paper(pomdp), say",
    )
    require(
        isinstance(filter, ProductFilter) == isinstance(pomdp, Irrelevant),
        rule="a POMDP with irrelevant variables, and no other, has a ProductFilter",
        received=f"{type(filter).__name__} for {type(pomdp).__name__}",
        advice="pass filter_of_paper(pomdp)",
    )
    if isinstance(filter, ProductFilter) and isinstance(pomdp, Irrelevant):
        check_filter(filter.relevant, pomdp.pomdp)
        return
    own = getattr(filter, "pomdp", None)
    if isinstance(own, POMDP):
        require(
            _facts(own) == _facts(pomdp),
            rule=f"the filter is one of this POMDP, which has {_facts(pomdp)}",
            received=f"a filter of one that has {_facts(own)}",
            advice=f"pass {type(filter).__name__}(pomdp)",
        )


def _facts(pomdp: POMDP) -> str:
    """What a POMDP and its filter share, in words."""
    states = f", {pomdp.num_states} states" if isinstance(pomdp, Finite) else ""
    return f"{pomdp.num_actions} actions{states} and observations {observation_form(pomdp)}"


def _read(pomdp: POMDP, memory: Any, actions: Any, observations: PyTree, lengths: Any) -> Log:
    """The logs as arrays that fit together; what is beyond an episode's length becomes 0."""
    memory = array_of_numbers("memory", memory)
    actions, lengths = _whole("actions", actions), _whole("lengths", lengths)
    shapes = [memory.shape, actions.shape, lengths.shape]
    rule = "logged episodes are memory [N, T, m], actions [N, T], observations [N, T, …] and lengths [N]"
    require(
        memory.ndim == 3 and lengths.shape == memory.shape[:1] and actions.shape == memory.shape[:2],
        rule=rule,
        received=f"memory, actions and lengths of shapes {shapes}",
        advice="pad episodes to one T and say how long each was",
    )
    require(
        bool(np.all((lengths >= 1) & (lengths <= memory.shape[1]))) and lengths.size > 0,
        rule=f"the length of a logged episode is a whole number from 1 to T = {memory.shape[1]}",
        received=[int(lengths.min()), int(lengths.max())] if lengths.size else "no episodes",
        advice="leave empty episodes out",
    )
    require(
        bool(np.all(np.isfinite(memory))),
        rule="a memory is made of finite numbers",
        received="NaN or infinity",
        advice="look for a diverged agent, or for padding that is not a number",
    )
    counted = np.arange(memory.shape[1]) < lengths[:, None]
    _check_actions(actions, counted, pomdp.num_actions)
    seen = as_the_pomdp_gives_them(pomdp, observations, counted, rule)
    return Log(memory.astype(np.float32), np.where(counted, actions, 0), seen, lengths)


def _check_actions(actions: Int[np.ndarray, "n time"], counted: Bool[np.ndarray, "n time"], number: int) -> None:
    wrong = np.argwhere(counted & ((actions < 0) | (actions >= number)))
    require(
        len(wrong) == 0,
        rule=f"an action is an integer from 0 to {number - 1}",
        received=f"{actions[tuple(wrong[0])]} in episode {wrong[0][0]} at step {wrong[0][1]}" if len(wrong) else "",
        advice="count actions from 0, and let lengths leave out padding",
    )


def _whole(name: str, given: Any) -> np.ndarray:
    array = array_of_numbers(name, given)
    fraction = array[(array != np.round(array)) | ~(np.abs(array.astype(np.float64)) < 2**53)]  # or NaN, or too large
    require(
        fraction.size == 0 and array.dtype.kind != "b",
        rule=f"{name} are whole numbers",
        received=f"{fraction.flat[0]}" if fraction.size else "true and false",
        advice="pass the indices themselves",
    )
    return array.astype(np.int64)


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
