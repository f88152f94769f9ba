"""Two episodes of any agent step by step, as arrays for the belief viewer (`beliefscope.measurement.greedy_episodes`).

An agent of another library has no values of actions that are known here: they are NaN, and the viewer leaves them out.
"""

import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent import TrainingSpec
from beliefscope.auditing.arrays import joined
from beliefscope.auditing.histories import Episodes, Histories, beliefs_along, play_episodes, relevant, some_episodes
from beliefscope.auditing.interface import AuditedAgent
from beliefscope.belief import Filter
from beliefscope.fast_keys import fast_key
from beliefscope.information import fit_decoder
from beliefscope.measurement.greedy_episodes import MAX_PARTICLES, encoded
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze
from beliefscope.pomdp.rollout import World, rest_world, start_world, step_world, world_keys

_SEEN = 64  # episodes among which one of each layout of a T-Maze is found but for a chance of 2^-63
_MOST_PAIRS = 2000  # that the decoder is fitted to
_HALF = float(np.finfo(np.float16).max)


def describe(pomdp: POMDP) -> dict[str, Any]:
    """The POMDP as `spec.json` describes it; one whose fields cannot be described has the name of its class alone."""
    try:
        return json.loads(TrainingSpec(pomdp=pomdp).canonical_json())["pomdp"]
    except ValueError:
        return {"class": f"{type(pomdp).__module__}.{type(pomdp).__qualname__}"}


def label(pomdp: POMDP) -> str:
    """A name for people."""
    if isinstance(pomdp, Irrelevant):
        return f"{label(pomdp.pomdp)}, d = {pomdp.dimensions}"
    if isinstance(pomdp, TMaze):
        astray = f", λ = {pomdp.stochasticity:g}" if pomdp.stochasticity else ""
        return f"T-Maze, L = {pomdp.length}{astray}"
    if isinstance(pomdp, MountainHike):
        return "Varying Mountain Hike" if pomdp.varying else "Mountain Hike"
    return type(pomdp).__name__


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
    histories: Histories,
    *,
    pairs: Float[np.ndarray, "n m"],
    names: tuple[str, ...],
) -> dict[str, np.ndarray]:
    """The viewer's arrays of two episodes; the decoder is fitted to `pairs`, memories beside `histories.belief`."""
    key_filter, key_decode, key_few = jax.random.split(key, 3)
    longest = two.actions.shape[1]
    memory = joined(two.memory, names)
    belief = relevant(filter, beliefs_along(key_filter, two, pomdp, filter))[:, :longest]
    if belief.ndim == 4 and belief.shape[2] > MAX_PARTICLES:
        belief = belief[:, :, np.asarray(jax.random.permutation(key_few, belief.shape[2]))[:MAX_PARTICLES]]
    decoder = fit_decoder(key_decode, pairs[:_MOST_PAIRS], histories.belief[:_MOST_PAIRS], probe="MLP")
    answers = decoder.probabilities(memory.reshape(-1, memory.shape[-1])).reshape(*memory.shape[:2], -1)
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(two.states)]
    rewards = np.full(two.actions.shape, np.nan, np.float32) if two.rewards is None else two.rewards
    ending = ".relevant" if isinstance(pomdp, Irrelevant) else ""
    steps: dict[str, np.ndarray] = {
        "actions": two.actions.astype(np.int16),
        "rewards": np.asarray(rewards, np.float32),
        "values": np.full((*two.actions.shape, pomdp.num_actions), np.nan, np.float32),
        "observations": np.asarray(encoded(pomdp, two.observations), np.float32),
        "states": np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1),
        "memory": _half(memory),
        f"belief{ending}": _half(belief),
        f"decoded{ending}": np.round(answers, 4).astype(np.float16),
    }
    cells = {} if decoder.centres is None else {f"decoded_cells{ending}": decoder.centres}
    lengths = np.asarray(two.lengths, np.int32)
    return {"lengths": lengths, **{name: _until_end(array, lengths) for name, array in steps.items()}, **cells}


def _half(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16 if np.all(np.abs(array) <= _HALF) else np.float32)


def _until_end(array: np.ndarray, lengths: Int[np.ndarray, " two"]) -> np.ndarray:
    longest = max(1, int(lengths.max()))
    acted = (np.arange(longest) < lengths[:, None]).reshape(2, longest, *[1] * (array.ndim - 2))
    return np.where(acted, array[:, :longest], np.nan if array.dtype.kind == "f" else 0).astype(array.dtype)
