"""Two greedy episodes of an agent step by step: what it saw, remembered, valued and did, and what it could believe.

`visited_atoms` are all memories and beliefs of such episodes where they can be enumerated: in a deterministic T-Maze a
greedy agent has as many histories as there are places of the treasure.

`trace(key, network, pomdp, filter)` gives plain arrays by name, to be stored by `np.savez_compressed` and drawn by a
viewer. Two episodes of a T-Maze, irrelevant variables beside it or not, are one of each layout, the treasure up first.
Step t = 0 … length − 1 is one at which the agent acted; T is the longer length, and at least 1. After an episode's end
there is NaN, or 0 among whole numbers.

    lengths                int32    [2]
    actions                int16    [2, T]               a_t, the best of the values
    rewards                float32  [2, T]               r_t
    values                 float32  [2, T, actions]      Q of each action
    observations           float32  [2, T, o]            o_t as the network reads it
    states                 float32  [2, T, s]            s_t, the leaves of the state end to end
    memory                 float16  [2, T, m]            h_t, after o_t
    belief                 float16  [2, T, d]            b_t as the filter's features, or
                                    [2, T, ≤ 200, d]     particles of equal weight, drawn from them
    decoded                float16  [2, T, d or cells]   the probabilities that a decoder reads off h_t, to 4 decimals
    decoded_cells          float32  [cells, d]           where the beliefs are particles: the centres of those cells

Half precision keeps three digits; what it cannot hold, beyond ±65504, stays in single precision. The belief of a
product has its parts apart, as `belief.relevant`, `decoded.relevant`, `decoded_cells.relevant` and `belief.irrelevant`.
A part that a Kalman filter follows is not decoded: its features, a mean and a covariance, are no distribution.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Shaped

from beliefscope.agent.network import EpsilonGreedy, RecurrentAgent
from beliefscope.belief import Filter, KalmanFilter, ProductFilter, run_filter
from beliefscope.errors import is_whole, require
from beliefscope.information import SmoothedInformation, smoothed_information
from beliefscope.information.probe import fit_decoder
from beliefscope.measurement.sample import sample_pairs
from beliefscope.pomdp import POMDP, Irrelevant, TMaze, rollout
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import Trajectory

MAX_PARTICLES = 200
NOISES = (0.1, 0.01, 0.001)  # σ


def trace(
    key: PRNGKeyArray, network: RecurrentAgent, pomdp: POMDP, filter: Filter, *, num_pairs: int = 2000
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays above; the decoder, an MLP, is fitted to `num_pairs` fresh pairs of this agent."""
    require(
        is_whole(num_pairs) and num_pairs >= 50,
        rule="the number of pairs that a decoder is fitted to is a whole number of at least 50",
        received=num_pairs,
        advice="2000 show what a memory holds",
    )
    key_play, key_filter, key_features, key_few, key_pairs, key_decode = jax.random.split(key, 6)
    pairs = sample_pairs(key_pairs, network, pomdp, filter, num_samples=num_pairs, epsilon=0.0)
    played = two_episodes(key_play, network, pomdp)
    observations = encoded(pomdp, played.observations)[:, :-1]
    memory, values = replayed(network, observations, played.actions)
    features = features_along(key_features, filter, run_filter(key_filter, filter, played))
    two = Seen(played.lengths, played.actions, played.rewards, values, observations, played.states, memory)
    beliefs = {part: along[:, :-1] for part, along in _parts(filter, features).items()}
    filters, of_pairs = _parts(filter, filter), _parts(filter, pairs.belief)
    known = {part: belief for part, belief in of_pairs.items() if not isinstance(filters[part], KalmanFilter)}
    return traced(key_few, key_decode, two, beliefs, pairs=pairs.memory, known=known)


class Seen(NamedTuple):
    """Two episodes, at least T steps of each."""

    lengths: Int[Array | np.ndarray, "two"]
    actions: Int[Array | np.ndarray, "two time"]
    rewards: Float[Array | np.ndarray, "two time"]
    values: Float[Array | np.ndarray, "two time actions"]
    observations: Float[Array | np.ndarray, "two time observation"]  # as the network reads them
    states: PyTree
    memory: Float[Array | np.ndarray, "two time memory"]


def traced(
    key_few: PRNGKeyArray,
    key_decode: PRNGKeyArray,
    two: Seen,
    beliefs: dict[str, Any],
    *,
    pairs: Float[Array | np.ndarray, "n memory"],
    known: dict[str, Any],
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays above, from the features of the belief by the ending of their names.

    Each part that has `known` beliefs is decoded, by what is fitted to them and the memories of the same `pairs`.
    """
    memory = two.memory
    steps: dict[str, Any] = {
        "actions": np.asarray(two.actions, np.int16),
        "rewards": np.asarray(two.rewards, np.float32),
        "values": np.asarray(two.values, np.float32),
        "observations": np.asarray(two.observations, np.float32),
        "states": _flat(two.states),
        "memory": _half(memory),
    }
    cells: dict[str, Any] = {}
    for part, belief in beliefs.items():
        steps[f"belief{part}"] = _half(_few(key_few, belief))
        if part not in known:
            continue
        decoder = fit_decoder(key_decode, pairs, known[part], probe="MLP")
        answers = decoder.probabilities(memory.reshape(-1, memory.shape[-1])).reshape(*memory.shape[:2], -1)
        steps[f"decoded{part}"] = np.round(answers, 4).astype(np.float16)
        if decoder.centres is not None:
            cells[f"decoded_cells{part}"] = decoder.centres
    lengths = np.asarray(two.lengths, np.int32)
    return {"lengths": lengths, **{name: _until_end(array, lengths) for name, array in steps.items()}, **cells}


def _few(key: PRNGKeyArray, features: Any) -> Any:
    """At most so many particles of each set, drawn because systematic resampling leaves them in order."""
    if features.ndim == 3 or features.shape[2] <= MAX_PARTICLES:
        return features
    return features[:, :, jax.random.permutation(key, features.shape[2])[:MAX_PARTICLES]]


def _parts(filter: Filter, of: Any) -> dict[str, Any]:
    """What a product filter has for each part, by the ending of its names; of any other filter there is one part."""
    if isinstance(filter, ProductFilter):
        return {".relevant": of.relevant, ".irrelevant": of.irrelevant}
    return {"": of}


def _flat(states: PyTree) -> Float[np.ndarray, "episodes times numbers"]:
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(states)]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)


def _half(array: Float[Array | np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    single = np.asarray(array, np.float32)
    fits = np.all(np.abs(single) <= np.finfo(np.float16).max)
    return single.astype(np.float16) if fits else single


def _until_end(
    array: Shaped[np.ndarray, "episodes times *rest"], lengths: Int[np.ndarray, " episodes"]
) -> Shaped[np.ndarray, "episodes time *rest"]:
    """The first T steps, blank where an episode has ended."""
    longest = max(1, int(lengths.max()))
    acted = (np.arange(longest) < lengths[:, None]).reshape(2, longest, *[1] * (array.ndim - 2))
    return np.where(acted, array[:, :longest], np.nan if array.dtype.kind == "f" else 0)


class Atoms(NamedTuple):
    """Every (memory, belief) that is visited, with its probability p(t) p(history)."""

    memory: Float[np.ndarray, "atoms memory"]
    belief: Float[np.ndarray, "atoms belief"]
    weight: Float[np.ndarray, " atoms"]


def can_enumerate(pomdp: POMDP, epsilon: float) -> bool:
    return isinstance(pomdp, TMaze) and pomdp.stochasticity == 0 and epsilon == 0


def visited_atoms(agent: RecurrentAgent, pomdp: TMaze, filter: Filter) -> Atoms:
    """The atoms of the greedy policy: two histories of probability ½, a uniformly drawn step of each."""
    key = jax.random.key(0)  # but for the 64 episodes of which two are kept, nothing is drawn
    played = two_episodes(key, agent, pomdp)
    memory, _ = replayed(agent, encoded(pomdp, played.observations)[:, :-1], played.actions)
    belief = features_along(key, filter, run_filter(key, filter, played))[:, :-1]
    lengths = np.asarray(played.lengths)
    acted = np.arange(memory.shape[1]) < lengths[:, None]
    weight = np.broadcast_to(1 / (2 * lengths[:, None]), acted.shape)
    return Atoms(np.asarray(memory)[acted], np.asarray(belief)[acted], weight[acted])


def exact_information(key: PRNGKeyArray, atoms: Atoms) -> dict[float, SmoothedInformation]:
    """I(h + σξ; b) for each σ of `NOISES`."""
    return {noise: smoothed_information(key, atoms.memory, atoms.belief, atoms.weight, noise=noise) for noise in NOISES}


def two_episodes(key: PRNGKeyArray, network: RecurrentAgent, pomdp: POMDP) -> Trajectory:
    """Two greedy episodes; of a T-Maze one of each layout, the treasure up first.

    All that is computed of them runs along H steps, whatever their lengths: each new shape would be compiled anew.
    """
    maze = isinstance(pomdp.pomdp if isinstance(pomdp, Irrelevant) else pomdp, TMaze)
    # 64 episodes show both places of the treasure but for a chance of 2^-63.
    policy = EpsilonGreedy(network, pomdp, jnp.asarray(0.0))
    played = rollout(key, pomdp, policy, num_episodes=64 if maze else 2).trajectory
    if not maze:
        return played
    # The first two entries of o_0 are the one-hot code of the layout: the first episode that shows each.
    episodes = jnp.argmax(encoded(pomdp, played.observations)[:, 0, :2], axis=0)
    return jax.tree.map(lambda leaf: leaf[episodes], played)


@eqx.filter_jit
def encoded(pomdp: POMDP, observations: PyTree) -> Float[Array, "episodes times observation"]:
    """Observations as the network reads them."""
    return jax.vmap(jax.vmap(pomdp.encode_observation))(observations)


@eqx.filter_jit
def replayed(
    agent: RecurrentAgent, observations: Float[Array, "episodes time observation"], actions: Int[Array, "episodes time"]
) -> tuple[Float[Array, "episodes time memory"], Float[Array, "episodes time actions"]]:
    """h_t as a vector and the values of the actions, along what was seen and done."""
    previous = jnp.concatenate([jnp.full_like(actions[:, :1], NO_ACTION), actions[:, :-1]], axis=1)

    def step(memory, now):
        memory, values = agent.step(memory, *now)
        return memory, (agent.memory_vector(memory), values)

    return jax.vmap(lambda *episode: lax.scan(step, agent.init_memory(), episode)[1])(previous, observations)


@eqx.filter_jit
def features_along(key: PRNGKeyArray, filter: Filter, beliefs: PyTree) -> PyTree:
    """The filter's features of beliefs [episodes, times, ...]."""
    keys = jax.random.split(key, jax.tree.leaves(beliefs)[0].shape[:2])
    return jax.vmap(jax.vmap(filter.features))(keys, beliefs)
