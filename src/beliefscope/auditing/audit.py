"""`audit(agent, pomdp)`: does this agent's memory encode the belief? Any agent, played here or recorded elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.auditing.adapters import AuditedAgent, Parts, as_agent, joined
from beliefscope.auditing.histories import (
    Episodes,
    Histories,
    by_part,
    describe,
    first_part,
    log_histories,
    play_histories,
    read_along,
    some_episodes,
    steps_of,
    trace,
    two_of,
    two_played,
)
from beliefscope.auditing.logs import Log, checked_log, read_log
from beliefscope.auditing.result import Audit, Checkpoint, Measured, Returns
from beliefscope.auditing.settable import use_of
from beliefscope.belief import Filter, KalmanFilter, filter_of_paper
from beliefscope.belief.exact import mean_and_covariance
from beliefscope.errors import is_real, is_whole, require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information import (
    BestBoundEstimate,
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
from beliefscope.interventions import Use
from beliefscope.measurement.logged import check_filter
from beliefscope.pomdp import POMDP, Finite, RandomPolicy, label_of, maximal_return, rollout
from beliefscope.pomdp.interface import check_pomdp_type

NUM_SAMPLES = 4000
_STEPS = 10  # of random episodes, that tell whether an agent reads its actions
_EQUAL = 1e-6
_INTERVENED = 1000  # episodes of an agent that is intervened on, or as many as there are pairs; half as many swaps


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
    interventions: bool = False,
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
    for I(h; b) and its calibration, a minute or two. `interventions` asks whether the agent acts on the belief: its
    memory, and that of the untrained agent or the first checkpoint, is swapped, steered and erased. `sees_actions` says
    of modules and functions whether their input has the last action; `initial` is the first memory of an Equinox
    module. The seeds of an agent get each its own `key`: with the same one, their errors go together.
    """
    check_pomdp_type(pomdp)
    filter = filter_of_paper(pomdp) if filter is None else filter
    check_filter(filter, pomdp)
    require(
        num_samples is None or (is_whole(num_samples) and num_samples >= LEAST_PAIRS),
        rule=f"an audit is of at least {LEAST_PAIRS} pairs",
        received=num_samples,
        advice=f"{NUM_SAMPLES} or more are better",
    )
    require(
        not interventions or isinstance(pomdp, Finite),
        rule="interventions are for POMDPs with finitely many states, whose observations recur",
        received=type(pomdp).__name__,
        advice="leave out interventions=True",
    )
    key = jax.random.key(0) if key is None else key
    key_play, key_measure, key_trace, key_curve = jax.random.split(fast_key(key), 4)
    wanted = (memory,) if isinstance(memory, str) else memory
    options = {"sees_actions": sees_actions, "initial": initial}
    twin = None if untrained is None else as_agent(untrained, pomdp, **options)
    if isinstance(agent, Log | str | Path):
        log = checked_log(agent if isinstance(agent, Log) else read_log(agent, pomdp), pomdp, filter)
        found = _logged(key_play, log, pomdp, filter, twin, wanted, num_samples)
        if interventions:
            found = found._replace(
                doubts=(*found.doubts, "no interventions: a log has no agent whose memory can be set")
            )
    else:
        stages = {at: as_agent(each, pomdp, **options) for at, each in _stages(agent).items()}
        keys = (key_play, key_trace, key_curve)
        found = _played(keys, stages, pomdp, filter, twin, wanted, num_samples or NUM_SAMPLES)
        found = found._replace(title=type(_stages(agent)[max(stages)]).__name__)
        if interventions:
            first = stages[min(stages)] if len(stages) > 1 else None
            found = _intervened(jax.random.fold_in(key, 4), found, stages[max(stages)], twin or first, pomdp, filter)
    found = found if name is None else found._replace(title=name)
    # Of a product the relevant part is the headline, and the irrelevant one stands beside it.
    first, *rest = (
        _measured(key_measure, found, part, of, bits=bits, calibrated=calibrated)
        for part, of in by_part(filter, filter).items()
    )
    return Audit(
        agent=found.title,
        environment=label_of(pomdp),
        pomdp=describe(pomdp),
        filter=type(filter).__name__,
        num_samples=len(found.histories.time),
        memory=found.names,
        returns=_returns(found.histories, pomdp),
        sees_actions=found.seen,
        impossible=float(found.histories.impossible.mean()),
        checkpoints=found.curve,
        warnings=(
            *first.warnings,
            *(f"irrelevant part: {each}" for part in rest for each in part.warnings),
            *_doubts(found.histories, found.seen),
            *found.doubts,
        ),
        irrelevant=rest[0].numbers if rest else None,
        use=found.use,
        use_before=found.use_before,
        traces=_traces(key_trace, found, pomdp, filter, twin),
        **vars(first.numbers),
    )


class _Found(NamedTuple):
    """What was played or read, before anything is measured of it."""

    title: str
    histories: Histories
    names: tuple[str, ...]  # the parts of the memory that the headline is about
    two: Episodes | None  # for the viewer
    seen: bool | None  # is the agent shown its actions?
    curve: tuple[Checkpoint, ...] = ()
    doubts: tuple[str, ...] = ()
    use: Use | None = None
    use_before: Use | None = None


class _Part(NamedTuple):
    """What is measured of one part of the belief."""

    numbers: Measured
    warnings: tuple[str, ...]


def _stages(agent: Any) -> dict[float, Any]:
    """The agents of a training by number, in order; one agent alone is at 0."""
    if not isinstance(agent, Mapping):
        return {0.0: agent}
    require(
        bool(agent) and all(is_real(at) for at in agent),
        rule="several checkpoints are a mapping from numbers, of episodes or steps, to agents",
        received=list(agent),
        advice="pass {0: untrained, 1000: trained}, say",
    )
    return {float(at): agent[at] for at in sorted(agent)}


def _logged(
    key: PRNGKeyArray,
    log: Log,
    pomdp: POMDP,
    filter: Filter,
    twin: AuditedAgent | None,
    wanted: tuple[str, ...] | None,
    num_samples: int | None,
) -> _Found:
    histories = log_histories(key, log.episodes, pomdp, filter, num_samples=num_samples)
    if twin is not None:
        read = some_episodes(log.episodes, slice(0, len(histories.time)))
        histories = histories._replace(others={"untrained": read_along(twin, read, pomdp, histories.time)})
    names = _headline(wanted, histories.memory, None)
    if log.episodes.states is None:
        doubts = ("the log has no states: there is no belief viewer",)
        return _Found(log.name, histories, names, None, log.sees_actions, doubts=doubts)
    return _Found(log.name, histories, names, two_of(log.episodes, pomdp), log.sees_actions)


def _played(
    keys: tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray],
    agents: dict[float, AuditedAgent],
    pomdp: POMDP,
    filter: Filter,
    twin: AuditedAgent | None,
    wanted: tuple[str, ...] | None,
    num_samples: int,
) -> _Found:
    """The last of the agents plays; the twin and the others read its histories."""
    key_play, key_trace, key_curve = keys
    last = max(agents)
    played = agents[last]
    others = {} if twin is None else {"untrained": twin}
    others |= {f"at {at}": each for at, each in agents.items() if at != last}
    histories = play_histories(key_play, played, pomdp, filter, num_samples=num_samples, others=others)
    names = _headline(wanted, histories.memory, getattr(played, "headline", None))
    two, seen = two_played(key_trace, played, pomdp), told_of_actions(played, pomdp)
    curve = _curve(key_curve, agents, histories, names, pomdp, filter, num_samples) if len(agents) > 1 else ()
    return _Found("", histories, names, two, seen, curve)


def _intervened(
    key: PRNGKeyArray, found: _Found, agent: AuditedAgent, before: AuditedAgent | None, pomdp: POMDP, filter: Filter
) -> _Found:
    """With what interventions did to the agent, and to the one before training; or with why there are none."""
    number = min(_INTERVENED, len(found.histories.time))
    uses = [None if each is None else use_of(key, each, pomdp, filter, number) for each in (agent, before)]
    doubts = dict.fromkeys(f"no interventions: {each}" for each in uses if isinstance(each, str))
    use, use_before = (each if isinstance(each, Use) else None for each in uses)
    return found._replace(use=use, use_before=use_before, doubts=(*found.doubts, *doubts))


def _traces(
    key: PRNGKeyArray, found: _Found, pomdp: POMDP, filter: Filter, twin: AuditedAgent | None
) -> dict[str, dict[str, np.ndarray]]:
    """For the viewer: the agent's two episodes, and the twin that reads them."""
    if found.two is None or isinstance(first_part(filter, filter), KalmanFilter):
        return {}
    known = found.histories.beliefs[next(iter(by_part(filter, filter)))]
    readers = {found.title: (found.two, found.histories.memory)}
    if twin is not None:
        reading = found.two._replace(memory=read_along(twin, found.two, pomdp, None))
        readers["untrained twin"] = (reading, found.histories.others["untrained"])
    return {
        reader: trace(key, two, pomdp, filter, known, pairs=joined(memory, found.names), names=found.names)
        for reader, (two, memory) in readers.items()
    }


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


def _headline(wanted: tuple[str, ...] | None, parts: Parts, own: tuple[str, ...] | None) -> tuple[str, ...]:
    names = tuple(wanted or own or parts)
    require(
        set(names) <= set(parts),
        rule=f"the parts of this memory are {sorted(parts)}",
        received=names,
        advice="name some of these as memory=…",
    )
    return names


def _measured(key: PRNGKeyArray, given: _Found, part: str, filter: Filter, *, bits: bool, calibrated: bool) -> _Part:
    """The numbers of one agent and one part of the belief, whose filter this is."""
    key_fit, key_order, key_decode = jax.random.split(key, 3)
    histories, names = given.histories, given.names
    pairs, belief, time = joined(histories.memory, names), histories.beliefs[part], histories.time
    gaussian = isinstance(filter, KalmanFilter)
    target = _readable(belief, filter)

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
    enough = len(time) >= LEAST_FOR_BITS
    found = mutual_information(pairs, belief, key=key_fit) if bits and enough else None
    assert found is None or isinstance(found, BestBoundEstimate)
    along = joined(histories.along[0], names)
    lacking = (f"no bits: they need {LEAST_FOR_BITS} pairs, and there are {len(time)}",) if bits and not enough else ()
    numbers = Measured(
        sufficiency=whole,
        parts={name: share(rows) for name, rows in histories.memory.items()} if several else {},
        controls={control: share(rows) for control, rows in controls.items()},
        by_step=() if gaussian else sufficiency_by_step(*steps_of(histories, part, pairs, along), key=key_fit),
        bits=found,
        calibration=calibrate(belief, pairs.shape[1], key=key_fit) if found and calibrated else None,
        entropy=discrete_entropy(belief) if np.ndim(belief) == 2 and not gaussian else None,
        decoders={}
        if gaussian
        else {probe: decode(key_decode, pairs, belief, probe=probe) for probe in ("linear", "MLP")},
    )
    return _Part(numbers, (*whole.warnings, *(found.warnings if found else ()), *lacking))


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
    part, of = next(iter(by_part(filter, filter).items()))
    for place, (at, agent) in enumerate(agents.items()):
        own = histories
        if at != last:
            own = play_histories(jax.random.fold_in(key, place), agent, pomdp, filter, num_samples=number)
        theirs = histories.memory if at == last else histories.others[f"at {at}"]
        shares = [
            sufficiency(joined(memory, names), _readable(each.beliefs[part], of), each.time).value
            for memory, each in ((own.memory, own), (theirs, histories))
        ]
        found.append(Checkpoint(at, float(np.mean(own.returns if own.returns is not None else np.nan)), *shares))
    return tuple(found)


def _readable(belief: Any, filter: Filter) -> Any:
    return mean_and_covariance(belief) if isinstance(filter, KalmanFilter) else belief


def _doubts(histories: Histories, seen: bool | None) -> list[str]:
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
    return found
