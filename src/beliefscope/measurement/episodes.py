"""Two greedy episodes and all that goes with them: memories, values, beliefs at every step.

Everything runs along all H steps, whatever the episodes' lengths: of each new shape it would be compiled anew.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.exploration import EpsilonGreedy
from beliefscope.agent.interface import RecurrentAgent
from beliefscope.belief import Filter
from beliefscope.pomdp import POMDP, Irrelevant, TMaze, rollout
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.rollout import Trajectory


def two_episodes(key: PRNGKeyArray, network: RecurrentAgent, pomdp: POMDP) -> Trajectory:
    """Two greedy episodes; of a T-Maze one of each layout, the treasure up first."""
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
