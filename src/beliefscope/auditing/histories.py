"""Histories of an agent with its memories and beliefs: one step of each of N episodes, all steps of some others.

`play_histories` plays an agent; `log_histories` takes what was recorded elsewhere. Other agents, an untrained twin say,
may read the same histories without acting. `trace` has two episodes step by step, as arrays for the belief viewer
(`beliefscope.measurement.greedy_episodes`). An agent of another library has no values of actions that are known here:
they are NaN, and the viewer leaves them out.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent import TrainingSpec
from beliefscope.auditing.adapters import AuditedAgent, Parts, chosen_actions, joined, memory_parts
from beliefscope.belief import Filter, ProductFilter, run_filter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.information import Steps
from beliefscope.information.sufficiency import LEAST_PAIRS
from beliefscope.measurement import pairs_from_trajectories, play
from beliefscope.measurement.greedy_episodes import Seen, encoded, features_along, traced
from beliefscope.pomdp import NO_ACTION, POMDP, Irrelevant, TMaze
from beliefscope.pomdp.rollout import Trajectory, World, rest_world, start_world, step_world, world_keys

_BYTES = 2**28  # of the memories that are kept at a time
_MOST_AT_ONCE = 5000  # episodes
_MOST_ALONG, _LEAST_ALONG = 400, 40  # episodes of which all steps are judged
_NUMBERS_ALONG = 20_000_000  # of their beliefs
_SEEN = 64  # episodes among which one of each layout of a T-Maze is found but for a chance of 2^-63
_MOST_PAIRS = 2000  # that the decoder is fitted to


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
    beliefs: dict[str, Any]  # features by part of the belief: [n, d], [n, M, d]
    time: Int[np.ndarray, " n"]
    observation: Float[np.ndarray, "n o"]
    recent: Float[np.ndarray, "n r"]  # the last steps
    returns: Float[np.ndarray, " n"] | None
    impossible: Bool[np.ndarray, " n"]
    along: tuple[Parts, dict[str, Any], Int[np.ndarray, " s"]]  # memories, beliefs, times of all steps of others


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
    fresh = play_episodes(key_play, agent, pomdp, num_episodes=episodes_along(pomdp, filter, pomdp.horizon))
    return joined._replace(along=_along(key_draw, fresh, pomdp, filter))


def log_histories(
    key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter, *, num_samples: int | None = None
) -> Histories:
    """Of recorded episodes: the last ones are those of which all steps are kept."""
    key_pairs, key_along = jax.random.split(key)
    number = len(episodes.lengths)
    most_along = episodes_along(pomdp, filter, _longest(episodes, pomdp))
    few = min(number // 10, most_along)
    require(
        number - few >= LEAST_PAIRS,
        rule=f"an audited log has at least {LEAST_PAIRS + min(LEAST_PAIRS // 9, most_along)} episodes",
        received=number,
        advice="record more",
    )
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
    _, memory = agent.step(
        np.full(1, NO_ACTION), zeros
    )  # what it would do after what is no observation does not matter
    width = sum(part.shape[1] for part in memory_parts(memory, 1).values())
    most = max(1, min(_MOST_AT_ONCE, _BYTES // (4 * width * pomdp.horizon)))
    return -(-num_samples // -(-num_samples // most))


def episodes_along(pomdp: POMDP, filter: Filter, longest: int) -> int:
    """Of how many episodes all steps are kept."""

    def features(key: PRNGKeyArray) -> PyTree:
        return filter.features(key, filter.init(key, pomdp.sample_observation(key, pomdp.sample_initial(key))))

    size = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(features, jax.random.key(0))))
    return int(np.clip(_NUMBERS_ALONG // (size * longest), _LEAST_ALONG, _MOST_ALONG))


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
        _, memory = agent.step(previous.copy(), np.array(seen[:, time]))
        parts = memory_parts(memory, number)
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


def by_part(filter: Filter, of: Any) -> dict[str, Any]:
    """Features, health or filters of a product as `relevant`, the control problem's, and `irrelevant`; others whole."""
    if isinstance(filter, ProductFilter):
        return {"relevant": of.relevant, "irrelevant": of.irrelevant}
    return {"belief": of}


def first_part(filter: Filter, of: Any) -> Any:
    """What concerns the control problem, of a product filter's features; of any other filter all."""
    return next(iter(by_part(filter, of).values()))


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
    impossible = np.any([np.asarray(part.impossible) for part in by_part(filter, pairs.health).values()], axis=0)
    return Histories(
        memory={name: part[np.arange(number), time] for name, part in episodes.memory.items()},
        others={name: read_along(agent, episodes, pomdp, time) for name, agent in others.items()},
        beliefs={part: np.asarray(belief) for part, belief in by_part(filter, pairs.belief).items()},
        time=time,
        observation=np.asarray(pairs.observation),
        recent=np.asarray(pairs.recent),
        returns=episodes.returns,
        impossible=impossible,
        along=({}, {}, np.zeros(0, int)),
    )


def _along(
    key: PRNGKeyArray, episodes: Episodes, pomdp: POMDP, filter: Filter
) -> tuple[Parts, dict[str, Any], Int[np.ndarray, " s"]]:
    beliefs = by_part(filter, beliefs_along(key, episodes, pomdp, filter))
    longest = episodes.actions.shape[1]
    acted = np.arange(longest) < episodes.lengths[:, None]
    time = np.broadcast_to(np.arange(longest), acted.shape)
    memory = {name: part[acted] for name, part in episodes.memory.items()}
    return memory, {part: belief[:, :longest][acted] for part, belief in beliefs.items()}, time[acted]


def steps_of(
    histories: Histories, part: str, memory: Float[np.ndarray, "n m"], along: Float[np.ndarray, "s m"]
) -> tuple[Steps, Steps]:
    """The pairs, and all steps of the other episodes, as the decoder for all steps takes them."""
    _, beliefs, time = histories.along
    return Steps(memory, histories.beliefs[part], histories.time), Steps(along, beliefs[part], time)


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


def describe(pomdp: POMDP) -> dict[str, Any]:
    """The POMDP as `spec.json` describes it; one whose fields cannot be described has the name of its class alone."""
    try:
        return json.loads(TrainingSpec(pomdp=pomdp).canonical_json())["pomdp"]
    except ValueError:
        return {"class": f"{type(pomdp).__module__}.{type(pomdp).__qualname__}"}


def two_played(key: PRNGKeyArray, agent: AuditedAgent, pomdp: POMDP) -> Episodes:
    """Two episodes with their states and rewards; of a T-Maze one of each layout, the treasure up first."""
    played = play_episodes(key, agent, pomdp, num_episodes=_SEEN)
    states, rewards = _states_along(key, pomdp, jnp.asarray(played.actions))
    return two_of(played._replace(states=states, rewards=np.asarray(rewards)), pomdp)


def two_of(episodes: Episodes, pomdp: POMDP) -> Episodes:
    if not isinstance(pomdp.pomdp if isinstance(pomdp, Irrelevant) else pomdp, TMaze):
        return some_episodes(episodes, slice(0, 2))
    first = np.asarray(encoded(pomdp, episodes.observations))[:, 0, :2]
    return some_episodes(episodes, first.argmax(axis=0))


@eqx.filter_jit
def _states_along(key: PRNGKeyArray, pomdp: POMDP, actions: Int[Array, "n T"]) -> tuple[PyTree, Float[Array, "n T"]]:
    """s_t and r_t of the episodes that `play` plays with the same key, whose actions are these."""

    def one(key_one: PRNGKeyArray, done: Int[Array, " T"]):
        def step(world: World, action: Int[Array, ""]):
            moved = step_world(world, world_keys(world), pomdp, action)
            after = jax.tree.map(lambda new, old: jnp.where(world.done, old, new), moved, rest_world(world))
            return after, (world.state, after.reward)

        return jax.lax.scan(step, start_world(key_one, pomdp)[0], done)[1]

    return jax.vmap(one)(jax.random.split(fast_key(key), len(actions)), actions)


def trace(
    key: PRNGKeyArray,
    two: Episodes,
    pomdp: POMDP,
    filter: Filter,
    known: Any,
    *,
    pairs: Float[np.ndarray, "n m"],
    names: tuple[str, ...],
) -> dict[str, np.ndarray]:
    """The viewer's arrays of two episodes; the decoder is fitted to `pairs`, memories beside `known` beliefs."""
    key_filter, key_decode, key_few = jax.random.split(key, 3)
    belief = first_part(filter, beliefs_along(key_filter, two, pomdp, filter))[:, : two.actions.shape[1]]
    shape, part = two.actions.shape, ".relevant" if isinstance(pomdp, Irrelevant) else ""
    seen = Seen(
        two.lengths,
        two.actions,
        np.full(shape, np.nan) if two.rewards is None else two.rewards,
        np.full((*shape, pomdp.num_actions), np.nan),
        encoded(pomdp, two.observations),
        two.states,
        joined(two.memory, names),
    )
    return traced(
        key_few, key_decode, seen, {part: belief}, pairs=pairs[:_MOST_PAIRS], known={part: known[:_MOST_PAIRS]}
    )
