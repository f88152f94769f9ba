"""`audit(agent, pomdp)`: does this agent's memory encode the belief? Any agent, played here or recorded elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.auditing.adapters import as_agent
from beliefscope.auditing.arrays import Parts, joined
from beliefscope.auditing.histories import (
    Episodes,
    Histories,
    log_histories,
    play_histories,
    read_along,
    some_episodes,
    steps_of,
)
from beliefscope.auditing.interface import AuditedAgent
from beliefscope.auditing.logs import Log, checked_log, read_log
from beliefscope.auditing.result import Audit, Checkpoint, Returns
from beliefscope.auditing.trace import describe, label, trace, two_of, two_played
from beliefscope.belief import Filter, KalmanFilter, ProductFilter, filter_of_paper
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import generator
from beliefscope.information import (
    Sufficiency,
    calibrate,
    decode,
    discrete_entropy,
    mutual_information,
    sufficiency,
    sufficiency_by_step,
)
from beliefscope.information.best_bound import LEAST_PAIRS as LEAST_FOR_BITS
from beliefscope.information.sufficiency import LEAST_PAIRS
from beliefscope.pomdp import POMDP, RandomPolicy, maximal_return, rollout
from beliefscope.pomdp.arguments import check_pomdp_type

NUM_SAMPLES = 4000
_STEPS = 10  # of random episodes, that tell whether an agent reads its actions
_EQUAL = 1e-6


def audit(
    agent: Any,
    pomdp: POMDP,
    *,
    untrained: Any = None,
    filter: Filter | None = None,
    num_samples: int | None = None,
    memory: str | tuple[str, ...] | None = None,
    bits: bool = True,
    calibrated: bool = True,
    sees_actions: bool | None = None,
    initial: Any = None,
    name: str | None = None,
    key: PRNGKeyArray | None = None,
) -> Audit:
    """How much of the belief the agent's memory holds, beside all that helps to read that number.

    `agent` is an agent of any framework (`as_agent` says which), a mapping from numbers (of episodes, of steps) to the
    agents of a training, of which the last is audited, or a log: a `Log`, or the path of an `.npz` or Parquet file.

    `untrained` is the same agent before training, which reads the audited histories without acting. `filter` is by
    default the one of the paper. N = `num_samples` episodes are played, one step of each is a pair. `memory` names the
    parts of the memory that the headline is about, by default all that the agent acts from. `bits` and `calibrated` ask
    for I(h; b) and its calibration, a minute or two. `sees_actions` says of modules and functions whether their input
    has the last action; `initial` is the first memory of an Equinox module.
    """
    check_pomdp_type(pomdp)
    filter = filter_of_paper(pomdp) if filter is None else filter
    require(
        num_samples is None or (is_whole(num_samples) and num_samples >= LEAST_PAIRS),
        rule=f"an audit is of at least {LEAST_PAIRS} pairs",
        received=num_samples,
        advice=f"{NUM_SAMPLES} or more are better",
    )
    key = jax.random.key(0) if key is None else key
    key_play, key_measure, key_trace, key_curve = jax.random.split(key, 4)
    wanted = (memory,) if isinstance(memory, str) else memory
    options = {"sees_actions": sees_actions, "initial": initial}
    twin = None if untrained is None else as_agent(untrained, pomdp, **options)
    if isinstance(agent, Log | str | Path):
        log = checked_log(agent if isinstance(agent, Log) else read_log(agent, pomdp), pomdp, filter)
        title = name or (log.name if isinstance(agent, Log) else Path(agent).name)
        histories = _log_histories(key_play, log, pomdp, filter, twin, num_samples)
        names = _headline(wanted, histories.memory, None)
        two = None if log.episodes.states is None else two_of(log.episodes, pomdp)
        seen, curve, doubts = log.sees_actions, (), ()
        if log.episodes.states is None:
            doubts = ("the log has no states: there is no belief viewer",)
    else:
        stages = {float(at): each for at, each in agent.items()} if isinstance(agent, Mapping) else {0.0: agent}
        agents = {at: as_agent(stages[at], pomdp, **options) for at in sorted(stages)}
        last = max(agents)
        played, title = agents[last], name or type(stages[last]).__name__
        others = {} if twin is None else {"untrained": twin}
        others |= {f"at {at}": each for at, each in agents.items() if at != last}
        count = NUM_SAMPLES if num_samples is None else int(num_samples)
        histories = play_histories(key_play, played, pomdp, filter, num_samples=count, others=others)
        names = _headline(wanted, histories.memory, getattr(played, "headline", None))
        two, seen, doubts = two_played(key_trace, played, pomdp), told_of_actions(played, pomdp), ()
        curve = _curve(key_curve, agents, histories, names, pomdp, filter, count) if len(agents) > 1 else ()
    measured = _measured(key_measure, histories, names, filter, bits=bits, calibrated=calibrated)
    traces = {}
    if two is not None and not isinstance(filter, KalmanFilter):
        pairs = joined(histories.memory, names)
        traces[title] = trace(key_trace, two, pomdp, filter, histories, pairs=pairs, names=names)
        if twin is not None:
            reading = two._replace(memory=read_along(twin, two, pomdp, None))
            pairs = joined(histories.others["untrained"], names)
            traces["untrained twin"] = trace(key_trace, reading, pomdp, filter, histories, pairs=pairs, names=names)
    return Audit(
        agent=title,
        environment=label(pomdp),
        pomdp=describe(pomdp),
        filter=type(filter).__name__,
        num_samples=len(histories.time),
        memory=names,
        returns=_returns(histories, pomdp),
        sees_actions=seen,
        impossible=float(histories.impossible.mean()),
        checkpoints=curve,
        warnings=(*measured.pop("warnings"), *_doubts(histories, seen, filter), *doubts),
        traces=traces,
        **measured,
    )


def told_of_actions(agent: AuditedAgent, pomdp: POMDP) -> bool | None:
    """Does the memory depend on the actions that the agent is told of? None where equal inputs give other memories.

    It reads random episodes twice as they were, and once with other actions.
    """
    played = rollout(jax.random.key(0), pomdp, RandomPolicy(pomdp), num_episodes=16).trajectory
    steps = slice(0, min(pomdp.horizon, _STEPS))
    observations = jax.tree.map(lambda leaf: np.asarray(leaf)[:, steps], played.observations)
    actions = np.asarray(played.actions)[:, steps]

    def memories(told: Int[np.ndarray, "n T"]) -> np.ndarray:
        read = read_along(agent, Episodes({}, told, observations, np.zeros(0, int), None), pomdp, None)
        return joined(read, tuple(read))

    with np.errstate(all="ignore"):  # some observations are impossible after other actions
        first, again, other = (memories(told) for told in (actions, actions, (actions + 1) % pomdp.num_actions))
    if not np.allclose(first, again, atol=_EQUAL, equal_nan=True):
        return None
    return not np.allclose(first, other, atol=_EQUAL, equal_nan=True)


def _log_histories(
    key: PRNGKeyArray, log: Log, pomdp: POMDP, filter: Filter, twin: AuditedAgent | None, num_samples: int | None
) -> Histories:
    found = log_histories(key, log.episodes, pomdp, filter, num_samples=num_samples)
    if twin is None:
        return found
    read = some_episodes(log.episodes, slice(0, len(found.time)))
    return found._replace(others={"untrained": read_along(twin, read, pomdp, found.time)})


def _headline(wanted: tuple[str, ...] | None, parts: Parts, own: tuple[str, ...] | None) -> tuple[str, ...]:
    names = tuple(wanted or own or parts)
    require(
        set(names) <= set(parts),
        rule=f"the parts of this memory are {sorted(parts)}",
        received=names,
        advice="name some of these as memory=…",
    )
    return names


def _measured(
    key: PRNGKeyArray, histories: Histories, names: tuple[str, ...], filter: Filter, *, bits: bool, calibrated: bool
) -> dict[str, Any]:
    """The numbers of one agent, by the fields of `Audit`."""
    key_fit, key_order, key_decode = jax.random.split(key, 3)
    pairs, belief, time = joined(histories.memory, names), histories.belief, histories.time
    gaussian = isinstance(filter, KalmanFilter)
    target = _mean_and_covariance(belief) if gaussian else belief

    def share(rows: Float[np.ndarray, "n m"]) -> Sufficiency:
        return sufficiency(rows, target, time, key=key_fit)

    controls = {
        "observation": histories.observation,
        "recent": histories.recent,
        "shuffled": pairs[generator(key_order).permutation(len(pairs))],
    }
    if "untrained" in histories.others:
        controls["untrained"] = joined(histories.others["untrained"], names)
    whole = share(pairs)
    several = len(histories.memory) > 1
    entropy = discrete_entropy(belief) if np.ndim(belief) == 2 and not gaussian else None
    enough = len(time) >= LEAST_FOR_BITS
    found = mutual_information(pairs, belief, key=key_fit) if bits and enough else None
    along = joined(histories.along[0], names)
    warnings = [*whole.warnings, *(found.warnings if found else ())]
    if bits and not enough:
        warnings.append(f"no bits: they need {LEAST_FOR_BITS} pairs, and there are {len(time)}")
    return {
        "sufficiency": whole,
        "parts": {part: share(rows) for part, rows in histories.memory.items()} if several else {},
        "controls": {control: share(rows) for control, rows in controls.items()},
        "by_step": () if gaussian else sufficiency_by_step(*steps_of(histories, pairs, along), key=key_fit),
        "bits": found,
        "calibration": calibrate(belief, pairs.shape[1], key=key_fit) if found and calibrated else None,
        "entropy": entropy,
        "decoders": {}
        if gaussian
        else {probe: decode(key_decode, pairs, belief, probe=probe) for probe in ("linear", "MLP")},
        "warnings": warnings,
    }


def _mean_and_covariance(features: Float[np.ndarray, "n f"]) -> tuple[np.ndarray, np.ndarray]:
    """The features of a Kalman filter."""
    size = round((np.sqrt(1 + 4 * features.shape[1]) - 1) / 2)
    return features[:, :size], features[:, size:].reshape(-1, size, size)


def _returns(histories: Histories, pomdp: POMDP) -> Returns | None:
    if histories.returns is None:
        return None
    most = maximal_return(pomdp)
    error = float(np.std(histories.returns) / np.sqrt(len(histories.returns)))
    return Returns(
        float(np.mean(histories.returns)),
        error,
        None if most is None else most.value,
        None if most is None else most.exact,
    )


def _curve(
    key: PRNGKeyArray,
    agents: dict[float, AuditedAgent],
    histories: Histories,
    names: tuple[str, ...],
    pomdp: POMDP,
    filter: Filter,
    number: int,
) -> tuple[Checkpoint, ...]:
    """Every checkpoint on its own histories, and on those of the last one."""
    last, found = max(agents), []
    for place, (at, agent) in enumerate(agents.items()):
        own = histories
        if at != last:
            own = play_histories(jax.random.fold_in(key, place), agent, pomdp, filter, num_samples=number)
        theirs = histories.memory if at == last else histories.others[f"at {at}"]
        shares = [
            sufficiency(joined(memory, names), _readable(each.belief, filter), each.time).value
            for memory, each in ((own.memory, own), (theirs, histories))
        ]
        found.append(Checkpoint(at, float(np.mean(own.returns if own.returns is not None else np.nan)), *shares))
    return tuple(found)


def _readable(belief: Any, filter: Filter) -> Any:
    return _mean_and_covariance(belief) if isinstance(filter, KalmanFilter) else belief


def _doubts(histories: Histories, seen: bool | None, filter: Filter) -> list[str]:
    """What a reader should know before the numbers are read."""
    found = []
    if seen is False:
        found.append(
            "the agent is not shown its own actions, which the belief knows: it has to tell them from what follows"
        )
    if histories.impossible.any():
        found.append(
            f"{histories.impossible.mean():.1%} of the beliefs follow an observation that the filter holds impossible"
        )
    if isinstance(filter, ProductFilter):
        found.append("the numbers are about the relevant part of the belief")
    return found
