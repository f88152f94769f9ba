"""Pairs of agents that are not written in JAX: PyTorch, NumPy, anything that takes arrays and returns arrays.

`play(key, agent, pomdp, num_episodes=N)` loops over time in Python with all N episodes side by side; the POMDP's steps
are compiled. It returns a `Played`, whose first four fields are what `pairs_from_trajectories` asks for. The random
keys are those of `rollout`: the same key and the same actions give the same episodes. Whoever has logged episodes of
any agent, with its memories, calls `pairs_from_trajectories` (logged.py) alone.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp import NO_ACTION, POMDP, discounted_return
from beliefscope.pomdp.interface import check_pomdp_type
from beliefscope.pomdp.rollout import World, rest_world, start_world, step_world, world_keys


@runtime_checkable
class BatchedAgent(Protocol):
    """N episodes at a time; the agent keeps its memories itself."""

    def start(self, num_episodes: int) -> None:
        """Forget everything: N = `num_episodes` episodes begin."""
        ...

    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        """The actions a_t [N] and the memory h_t [N, m] after o_t, in arrays that NumPy can read.

        `previous_actions` are a_{t-1}, NO_ACTION at t = 0; `observations` are o_t as `pomdp.encode_observation` gives
        them. An episode that has ended is stepped on with its last observation, and what is returned for it is ignored.
        """
        ...


class Played(NamedTuple):
    """N episodes, T being the number of steps of the longest.

    After an episode's end its last observation is repeated, and memory and actions are 0.
    """

    memory: Float[np.ndarray, "n time memory"]  # h_t, after o_t
    actions: Int[np.ndarray, "n time"]  # a_t
    observations: PyTree  # o_t as the POMDP gives them [n, time, ...]
    lengths: Int[np.ndarray, " n"]  # number of steps at which the agent acted: visited, and not terminal
    returns: Float[np.ndarray, " n"]  # discounted


class _Step(NamedTuple):
    """What is written down of one step of all episodes."""

    acting: Bool[np.ndarray, " n"]  # has the episode not ended before?
    memory: Float[np.ndarray, "n memory"]
    actions: Int[np.ndarray, " n"]
    observation: PyTree
    rewards: Float[Array, " n"]


def play(key: PRNGKeyArray, agent: BatchedAgent, pomdp: POMDP, *, num_episodes: int) -> Played:
    """Play N = `num_episodes` episodes of at most `pomdp.horizon` actions.

    The key decides all that is random in the POMDP; an agent that acts at random brings its own randomness.
    """
    check_pomdp_type(pomdp)
    require(
        isinstance(agent, BatchedAgent) and not isinstance(agent, type),
        rule="an agent played from Python has the methods of beliefscope.measurement.BatchedAgent, start and step",
        received=type(agent).__name__,
        advice="give it those two, or pass an agent that is written in JAX to sample_pairs",
    )
    require(
        is_whole(num_episodes) and num_episodes >= 1,
        rule="the number of episodes is a whole number of at least 1",
        received=num_episodes,
        advice="ask for at least one episode",
    )
    agent.start(int(num_episodes))
    episodes, encoded = _start(key, pomdp, int(num_episodes))
    previous, steps = np.full(num_episodes, NO_ACTION), []
    for _ in range(pomdp.horizon):
        acting = ~np.asarray(episodes.done)
        # The agent gets copies: JAX's own arrays are read-only, which PyTorch warns of.
        returned = agent.step(previous.copy(), np.array(encoded, np.float32))
        previous, memory = _checked(returned, acting, pomdp.num_actions)
        require(
            not steps or memory.shape == steps[0].memory.shape,
            rule="an agent's memory keeps its shape [N, m] from step to step",
            received=memory.shape,
            advice="pad it where it grows",
        )
        seen = episodes.observation
        episodes, encoded = _advance(pomdp, episodes, jnp.asarray(previous))
        steps.append(_Step(acting, memory, previous, seen, episodes.reward))
        if np.all(episodes.done):
            break
    record: _Step = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *steps)
    return Played(
        memory=record.memory,
        actions=record.actions,
        observations=record.observation,
        lengths=record.acting.sum(axis=1),
        returns=np.asarray(discounted_return(jnp.asarray(record.rewards), pomdp.discount)),
    )


@eqx.filter_jit
def _start(key: PRNGKeyArray, pomdp: POMDP, num_episodes: int) -> tuple[World, Float[Array, "n observation"]]:
    """The episodes at t = 0 and their encoded observations."""
    worlds = jax.vmap(lambda key_one: start_world(key_one, pomdp)[0])(jax.random.split(fast_key(key), num_episodes))
    return worlds, jax.vmap(pomdp.encode_observation)(worlds.observation)


@eqx.filter_jit
def _advance(pomdp: POMDP, worlds: World, actions: Int[Array, " n"]) -> tuple[World, Float[Array, "n observation"]]:
    """One step of each, and the encoded observations. An episode that is done stays, and earns 0."""

    def step(world: World, action: Int[Array, ""]) -> World:
        moved = step_world(world, world_keys(world), pomdp, action)
        return jax.tree.map(lambda new, old: jnp.where(world.done, old, new), moved, rest_world(world))

    worlds = jax.vmap(step)(worlds, actions)
    return worlds, jax.vmap(pomdp.encode_observation)(worlds.observation)


def _checked(
    returned: Any, acting: Bool[np.ndarray, " n"], num_actions: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n memory"]]:
    """The agent's actions and memory, 0 in the episodes that have ended."""
    require(
        isinstance(returned, tuple) and len(returned) == 2,
        rule="a step of the agent returns its actions and its memory",
        received=type(returned).__name__,
        advice="return actions, memory",
    )
    actions = _as_array("the actions are an array of whole numbers", returned[0], np.int64)
    memory = _as_array("the memory is an array of real numbers", returned[1], np.float32)
    number = len(acting)
    require(
        actions.shape == (number,) and memory.ndim == 2 and len(memory) == number,
        rule=f"a step of {number} episodes returns actions [{number}] and memory [{number}, m]",
        received=[actions.shape, memory.shape],
        advice="keep one row for each episode, those that have ended too",
    )
    actions, memory = np.where(acting, actions, 0), np.where(acting[:, None], memory, 0)
    wrong = actions[(actions < 0) | (actions >= num_actions)]
    require(
        wrong.size == 0,
        rule=f"an action is an integer from 0 to {num_actions - 1}",
        received=np.unique(wrong)[:5].tolist(),
        advice="choose among the POMDP's actions",
    )
    require(
        bool(np.all(np.isfinite(memory))),
        rule="a memory is made of finite numbers in single precision",
        received="NaN or infinity",
        advice="look for a diverged agent",
    )
    return actions, memory


def _as_array(rule: str, given: Any, dtype: type) -> np.ndarray:
    """A copy, since an agent may overwrite its memory in place."""
    try:
        # 'same_kind' lets every float become single precision, and no float become an integer.
        with np.errstate(over="ignore"):
            return np.asarray(given).astype(dtype, casting="same_kind")
    except (TypeError, ValueError, RuntimeError):
        require(
            False,
            rule=f"{rule} that NumPy can read",
            received=f"{type(given).__name__} of {getattr(given, 'dtype', 'no one type')}",
            advice="choose actions by argmax, say, and return tensor.detach().cpu() of a PyTorch tensor",
        )
        raise
