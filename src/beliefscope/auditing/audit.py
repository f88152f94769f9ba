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
    _check_asked(pomdp, num_samples, interventions=interventions)
    key = jax.random.key(0) if key is None else key
    key_play, key_measure, key_trace, key_curve = jax.random.split(fast_key(key), 4)
    options = {"sees_actions": sees_actions, "initial": initial}
    twin = None if untrained is None else as_agent(untrained, pomdp, **options)
    asked = _Asked(pomdp, filter, twin, (memory,) if isinstance(memory, str) else memory, num_samples, interventions)
    if isinstance(agent, Log | str | Path):
        found = _logged(key_play, agent, asked)
    else:
        keys = (key_play, key_trace, key_curve, jax.random.fold_in(key, 4))
        found = _played(keys, {at: as_agent(each, pomdp, **options) for at, each in _stages(agent).items()}, asked)
        found = found._replace(title=type(list(_stages(agent).values())[-1]).__name__)
    found = found if name is None else found._replace(title=name)
    parts = [
        _measured(key_measure, found, part, of, bits=bits, calibrated=calibrated)
        for part, of in by_part(filter, filter).items()
    ]
    return _audited(found, parts, asked, _traces(key_trace, found, asked))


class _Asked(NamedTuple):
    """What is audited of whom, but for the agent."""

    pomdp: POMDP
    filter: Filter
    twin: AuditedAgent | None
    wanted: tuple[str, ...] | None  # parts of the memory
    num_samples: int | None
    interventions: bool


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


def _check_asked(pomdp: POMDP, num_samples: int | None, *, interventions: bool) -> None:
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


def _audited(found: _Found, parts: list[_Part], asked: _Asked, traces: dict[str, dict[str, np.ndarray]]) -> Audit:
    """Of a product the relevant part is the headline, and the irrelevant one stands beside it."""
    first, *rest = parts
    return Audit(
        agent=found.title,
        environment=label_of(asked.pomdp),
        pomdp=describe(asked.pomdp),
        filter=type(asked.filter).__name__,
        num_samples=len(found.histories.time),
        memory=found.names,
        returns=_returns(found.histories, asked.pomdp),
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
        traces=traces,
        **vars(first.numbers),
    )


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


def _logged(key: PRNGKeyArray, given: Log | str | Path, asked: _Asked) -> _Found:
    pomdp, filter, twin = asked.pomdp, asked.filter, asked.twin
    log = checked_log(given if isinstance(given, Log) else read_log(given, pomdp), pomdp, filter)
    histories = log_histories(key, log.episodes, pomdp, filter, num_samples=asked.num_samples)
    if twin is not None:
        read = some_episodes(log.episodes, slice(0, len(histories.time)))
        histories = histories._replace(others={"untrained": read_along(twin, read, pomdp, histories.time)})
    names = _headline(asked.wanted, histories.memory, None)
    two, doubts = None, []
    if log.episodes.states is None:
        doubts.append("the log has no states: there is no belief viewer")
    else:
        two = two_of(log.episodes, pomdp)
    if asked.interventions:
        doubts.append("no interventions: a log has no agent whose memory can be set")
    return _Found(log.name, histories, names, two, log.sees_actions, doubts=tuple(doubts))


def _played(keys: tuple[PRNGKeyArray, ...], agents: dict[float, AuditedAgent], asked: _Asked) -> _Found:
    """The last of the agents plays; the twin and the others read its histories."""
    key_play, key_trace, key_curve, key_intervene = keys
    last, number = max(agents), asked.num_samples or NUM_SAMPLES
    played = agents[last]
    others = {} if asked.twin is None else {"untrained": asked.twin}
    others |= {f"at {at}": each for at, each in agents.items() if at != last}
    histories = play_histories(key_play, played, asked.pomdp, asked.filter, num_samples=number, others=others)
    names = _headline(asked.wanted, histories.memory, getattr(played, "headline", None))
    two, seen = two_played(key_trace, played, asked.pomdp), told_of_actions(played, asked.pomdp)
    curve = _curve(key_curve, agents, histories, names, asked) if len(agents) > 1 else ()
    found = _Found("", histories, names, two, seen, curve)
    return _intervened(key_intervene, found, agents, asked) if asked.interventions else found


def _intervened(key: PRNGKeyArray, found: _Found, agents: dict[float, AuditedAgent], asked: _Asked) -> _Found:
    """With what interventions did to the agent, and to the one before training; or with why there are none."""
    agent, before = agents[max(agents)], asked.twin or (agents[min(agents)] if len(agents) > 1 else None)
    number = min(_INTERVENED, len(found.histories.time))
    uses = [None if each is None else use_of(key, each, asked.pomdp, asked.filter, number) for each in (agent, before)]
    doubts = dict.fromkeys(f"no interventions: {each}" for each in uses if isinstance(each, str))
    use, use_before = (each if isinstance(each, Use) else None for each in uses)
    return found._replace(use=use, use_before=use_before, doubts=(*found.doubts, *doubts))


def _traces(key: PRNGKeyArray, found: _Found, asked: _Asked) -> dict[str, dict[str, np.ndarray]]:
    """For the viewer: the agent's two episodes, and the twin that reads them."""
    pomdp, filter, twin = asked.pomdp, asked.filter, asked.twin
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
    key: PRNGKeyArray, agents: dict[float, AuditedAgent], histories: Histories, names: tuple[str, ...], asked: _Asked
) -> tuple[Checkpoint, ...]:
    """Every checkpoint on its own histories, and on those of the last one."""
    last, found, number = max(agents), [], len(histories.time)
    part, of = next(iter(by_part(asked.filter, asked.filter).items()))
    for place, (at, agent) in enumerate(agents.items()):
        own = histories
        if at != last:
            key_own = jax.random.fold_in(key, place)
            own = play_histories(key_own, agent, asked.pomdp, asked.filter, num_samples=number)
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
            f"{histories.impossible.mean():.1%} of the beliefs follow an observation that the filter cannot explain"
        )
    return found
