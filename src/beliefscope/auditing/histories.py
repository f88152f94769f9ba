"""Histories of an agent with its memories and beliefs: one step of each of N episodes, all steps of some others.

`play_histories` plays an agent; `log_histories` takes what was recorded elsewhere. Other agents, an untrained twin say,
may read the same histories without acting.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.auditing.arrays import Parts, chosen_actions, memory_parts
from beliefscope.auditing.interface import AuditedAgent
from beliefscope.belief import Filter, ProductFilter, run_filter
from beliefscope.information import Steps
from beliefscope.measurement import pairs_from_trajectories, play
from beliefscope.measurement.greedy_episodes import encoded, features_along
from beliefscope.pomdp import NO_ACTION, POMDP
from beliefscope.pomdp.rollout import Trajectory

_BYTES = 2**28  # of the memories that are kept at a time
_MOST_AT_ONCE = 5000  # episodes
_MOST_ALONG, _LEAST_ALONG = 400, 40  # episodes of which all steps are judged
_NUMBERS_ALONG = 20_000_000  # of their beliefs


class Episodes(NamedTuple):
    """Episodes as they were played or recorded; T is the length of the longest."""

    memory: Parts  # of the agent, each [n, T, m]
    actions: Int[np.ndarray, "n T"]
    observations: PyTree  # as the POMDP gives them [n, T, ...]
    lengths: Int[np.ndarray, " n"]
    returns: Float[np.ndarray, " n"] | None
    rewards: Float[np.ndarray, "n T"] | None = None
    states: PyTree = None  # [n, T, ...], where they are known


class Histories(NamedTuple):
    """What is measured: a drawn step of each of N episodes, and all steps of some others."""

    memory: Parts  # each [n, m]
    others: dict[str, Parts]  # of agents that read the same histories, by name
    belief: Any  # features: [n, d], [n, M, d]
    time: Int[np.ndarray, " n"]
    observation: Float[np.ndarray, "n o"]
    recent: Float[np.ndarray, "n r"]  # the last steps
    returns: Float[np.ndarray, " n"] | None
    impossible: Bool[np.ndarray, " n"]
    along: tuple[Parts, Any, Int[np.ndarray, " s"]]  # memories, beliefs and times of all steps of other episodes


class _Flat:
    """An agent as `play` asks for it; its parts stand side by side, with their widths here."""

    def __init__(self, agent: AuditedAgent, num_actions: int) -> None:
        self._agent, self._num_actions, self.widths = agent, num_actions, dict[str, int]()

    def start(self, num_episodes: int) -> None:
        self._agent.start(num_episodes)

    def step(self, previous_actions: Any, observations: Any) -> tuple[np.ndarray, np.ndarray]:
        actions, parts = step_agent(self._agent, previous_actions, observations, self._num_actions)
        self.widths = {name: part.shape[1] for name, part in parts.items()}
        return actions, np.concatenate(list(parts.values()), axis=1)

    def split(self, memory: Float[np.ndarray, "*n m"]) -> Parts:
        ends = np.cumsum(list(self.widths.values()))
        return dict(zip(self.widths, np.split(memory, ends[:-1], axis=-1), strict=True))


def step_agent(agent: AuditedAgent, previous: Any, observations: Any, num_actions: int) -> tuple[np.ndarray, Parts]:
    """One step of a batch: actions [N] and the parts of the memory, each [N, m]."""
    actions, memory = agent.step(previous, observations)
    number = len(observations)
    return chosen_actions(actions, number, num_actions), memory_parts(memory, number)


def play_histories(
    key: PRNGKeyArray,
    agent: AuditedAgent,
    pomdp: POMDP,
    filter: Filter,
    *,
    num_samples: int,
    others: Mapping[str, AuditedAgent] | None = None,
) -> Histories:
    """N = `num_samples` episodes of the agent, a few thousand at a time, and some more of which all steps are kept."""
    key_pairs, key_along = jax.random.split(key)
    size = episodes_at_once(agent, pomdp, num_samples)
    found = []
    for place in range(-(-num_samples // size)):
        key_play, key_draw = jax.random.split(jax.random.fold_in(key_pairs, place))
        episodes = play_episodes(key_play, agent, pomdp, num_episodes=size)
        found.append(_pairs(key_draw, episodes, pomdp, filter, others or {}))
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_samples], *found)
    key_play, key_draw = jax.random.split(key_along)
    fresh = play_episodes(key_play, agent, pomdp, num_episodes=episodes_along(pomdp, joined.belief))
    return joined._replace(along=_along(key_draw, fresh, pomdp, filter))


def log_histories(
    key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter, *, num_samples: int | None = None
) -> Histories:
    """Of recorded episodes: the last ones are those of which all steps are kept."""
    key_pairs, key_along = jax.random.split(key)
    number = len(episodes.lengths)
    few = min(number // 10, episodes_along(pomdp, None))
    most = number - few if num_samples is None else min(num_samples, number - few)
    found = [
        _pairs(jax.random.fold_in(key_pairs, first), some_episodes(episodes, slice(first, last)), pomdp, filter, {})
        for first, last in _ranges(most)
    ]
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
    along = some_episodes(episodes, slice(number - few, number))
    return joined._replace(along=_along(key_along, along, pomdp, filter))


def episodes_at_once(agent: AuditedAgent, pomdp: POMDP, num_samples: int) -> int:
    """So many that all their memories fit: equal parts of N."""
    agent.start(1)
    zeros = np.zeros((1, pomdp.observation_size), np.float32)
    _, parts = step_agent(agent, np.full(1, NO_ACTION), zeros, pomdp.num_actions)
    width = sum(part.shape[1] for part in parts.values())
    most = max(1, min(_MOST_AT_ONCE, _BYTES // (4 * width * pomdp.horizon)))
    return -(-num_samples // -(-num_samples // most))


def episodes_along(pomdp: POMDP, belief: Any) -> int:
    """Of how many episodes all steps are kept."""
    size = 1 if belief is None else int(np.prod(np.shape(belief)[1:]))
    return int(np.clip(_NUMBERS_ALONG // (size * pomdp.horizon), _LEAST_ALONG, _MOST_ALONG))


def play_episodes(key: PRNGKeyArray, agent: AuditedAgent, pomdp: POMDP, *, num_episodes: int) -> Episodes:
    """All memories of so many episodes."""
    flat = _Flat(agent, pomdp.num_actions)
    played = play(key, flat, pomdp, num_episodes=num_episodes)
    return Episodes(flat.split(played.memory), played.actions, played.observations, played.lengths, played.returns)


def read_along(agent: AuditedAgent, episodes: Episodes, pomdp: POMDP, times: Int[np.ndarray, " n"] | None) -> Parts:
    """The memories of an agent that reads these episodes without acting: at `times` [n, m], or at all [n, T, m]."""
    number, longest = episodes.actions.shape
    seen = np.asarray(encoded(pomdp, _to_horizon(episodes.observations, _longest(episodes, pomdp))), np.float32)
    agent.start(number)
    previous, found = np.full(number, NO_ACTION), []
    for time in range(longest if times is None else int(times.max()) + 1):
        _, parts = step_agent(agent, previous.copy(), np.array(seen[:, time]), pomdp.num_actions)
        if times is None or not found:
            found.append(parts)
        else:
            now = times == time
            for name, part in parts.items():
                found[0][name][now] = part[now]
        previous = episodes.actions[:, time]
    return found[0] if times is not None else jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *found)


def beliefs_along(key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter) -> Any:
    """Features of the belief at every step [n, at least H, ...]; a product's by part."""
    horizon = _longest(episodes, pomdp)
    observations = _to_horizon(episodes.observations, horizon + 1)
    actions = np.zeros((len(episodes.actions), horizon), int)
    actions[:, : episodes.actions.shape[1]] = episodes.actions
    going_on = np.zeros(len(actions), bool)
    blank = jnp.zeros(actions.shape)
    trajectory = Trajectory(
        states=blank,
        observations=jax.tree.map(jnp.asarray, observations),
        actions=jnp.asarray(actions),
        rewards=blank,
        terminated=jnp.asarray(going_on),
        lengths=jnp.asarray(episodes.lengths),
    )
    key_filter, key_features = jax.random.split(key)
    features = features_along(key_features, filter, run_filter(key_filter, filter, trajectory))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:, :-1], features)


def some_episodes(episodes: Episodes, which: Any) -> Episodes:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[which], episodes)


def relevant(filter: Filter, of: Any) -> Any:
    """What concerns the control problem, of a product filter's features; of any other filter all."""
    return of.relevant if isinstance(filter, ProductFilter) else of


def _pairs(
    key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter, others: Mapping[str, AuditedAgent]
) -> Histories:
    horizon, number = _longest(episodes, pomdp), len(episodes.lengths)
    # One shape whatever the longest episode is, so that all parts of N share one compiled program.
    pairs = pairs_from_trajectories(
        key,
        pomdp,
        filter,
        memory=np.zeros((number, horizon, 1), np.float32),
        actions=_to_horizon(episodes.actions, horizon),
        observations=_to_horizon(episodes.observations, horizon),
        lengths=episodes.lengths,
    )
    time = np.asarray(pairs.time)
    impossible = np.any(
        [np.asarray(leaf) for leaf in jax.tree.leaves(relevant(filter, pairs.health).impossible)], axis=0
    )
    return Histories(
        memory={name: part[np.arange(number), time] for name, part in episodes.memory.items()},
        others={name: read_along(agent, episodes, pomdp, time) for name, agent in others.items()},
        belief=jax.tree.map(np.asarray, relevant(filter, pairs.belief)),
        time=time,
        observation=np.asarray(pairs.observation),
        recent=np.asarray(pairs.recent),
        returns=episodes.returns,
        impossible=impossible,
        along=({}, np.zeros(0), np.zeros(0, int)),
    )


def _along(
    key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter
) -> tuple[Parts, Any, Int[np.ndarray, " s"]]:
    belief = relevant(filter, beliefs_along(key, episodes, pomdp, filter))
    longest = episodes.actions.shape[1]
    acted = np.arange(longest) < episodes.lengths[:, None]
    time = np.broadcast_to(np.arange(longest), acted.shape)
    return {name: part[acted] for name, part in episodes.memory.items()}, belief[:, :longest][acted], time[acted]


def steps_of(
    histories: Histories, memory: Float[np.ndarray, "n m"], along: Float[np.ndarray, "s m"]
) -> tuple[Steps, Steps]:
    """The pairs, and all steps of the other episodes, as the decoder for all steps takes them."""
    _, belief, time = histories.along
    return Steps(memory, histories.belief, histories.time), Steps(along, belief, time)


def _longest(episodes: Episodes, pomdp: POMDP) -> int:
    """H, so that all batches have one shape; a log may have longer episodes."""
    return max(pomdp.horizon, episodes.actions.shape[1])


def _to_horizon(tree: PyTree, horizon: int) -> PyTree:
    """Arrays [n, T, ...] with the last step repeated up to so many."""

    def longer(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return array[:, np.minimum(np.arange(horizon), array.shape[1] - 1)]

    return jax.tree.map(longer, tree)


def _ranges(number: int) -> list[tuple[int, int]]:
    """Equal ones, but for the last: each new shape would be compiled anew."""
    count = -(-number // _MOST_AT_ONCE)
    size = -(-number // count)
    return [(first, min(first + size, number)) for first in range(0, number, size)]
