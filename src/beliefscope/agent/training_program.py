"""The compiled program of training: a chunk of episodes of every agent of a batch, and an evaluation.

A chunk is the episodes from one evaluation to the next. Agents are the leading axis. On CPU they run one after another
inside the program, because `vmap` would cost twice as much and change bits. On GPU they run side by side.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from beliefscope.agent.drqn import Agent, Plan, cpu_plan, gpu_plan, init_agent, train_episode
from beliefscope.agent.evaluate import Evaluation, evaluate
from beliefscope.agent.training_spec import DRQN
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp import POMDP


class Progress(NamedTuple):
    """What a chunk reports of each agent."""

    evaluation: Evaluation  # of the greedy policy at its end
    loss: Float[Array, "*agents"]  # mean over its gradient steps, NaN if there were none
    failed: Int[Array, "*agents"]  # after so many episodes a parameter or the loss was not finite, or -1


class Keys(NamedTuple):
    """An agent's random keys; everything random in its training comes from its seed."""

    init: PRNGKeyArray
    train: PRNGKeyArray
    evaluate: PRNGKeyArray


def keys_of_seed(seed: UInt[Array, ""]) -> Keys:
    """Three keys from a seed."""
    return Keys(*jax.random.split(fast_key(jax.random.key(seed)), 3))


@eqx.filter_jit
def start_agents(pomdp: POMDP, learner: DRQN, seeds: UInt[Array, " agents"]) -> Agent:
    """A new agent for each seed."""
    return lax.map(lambda seed: init_agent(keys_of_seed(seed).init, pomdp, learner), seeds)


class Work(NamedTuple):
    """What a chunk does."""

    pomdp: POMDP
    learner: DRQN
    seeds: UInt[Array, " agents"]
    first: Int[Array, ""]  # the first episode
    episodes: Int[Array, ""]  # how many; with none there is only the evaluation


@eqx.filter_jit(donate="all-except-first")
def run_chunk(work: Work, agents: Agent) -> tuple[Agent, Progress]:
    """Train, then evaluate; the buffers of `agents` are donated."""
    horizon = work.pomdp.horizon
    with jax.default_matmul_precision("float32"):
        if jax.default_backend() == "cpu":
            return lax.map(
                lambda one: _run(cpu_plan(horizon), work._replace(seeds=one[0]), one[1]), (work.seeds, agents)
            )
        return _run(gpu_plan(horizon), work, agents)


def _run(plan: Plan, work: Work, agents: Agent) -> tuple[Agent, Progress]:
    pomdp, learner, seeds, first, episodes = work
    keys = plan.each(keys_of_seed)(seeds)

    def episode(number, carry):
        agents, total, failed = carry
        agents, loss = train_episode(plan, pomdp, learner, agents, keys.train, first + number)
        broken = ~(plan.each(_finite)(agents) & jnp.isfinite(loss))
        return agents, total + loss, jnp.where((failed < 0) & broken, first + number + 1, failed)

    start = (agents, jnp.zeros(seeds.shape), jnp.full(seeds.shape, -1))
    agents, total, failed = lax.fori_loop(0, episodes, episode, start)
    keys_evaluate = plan.each(lambda key: jax.random.fold_in(key, first + episodes))(keys.evaluate)
    play = partial(evaluate, num_episodes=learner.evaluation_episodes)
    evaluation = plan.each(lambda key, agent: play(key, pomdp, agent.network))(keys_evaluate, agents)
    return agents, Progress(evaluation, total / episodes, failed)


def _finite(agent: Agent) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(agent.network)]))
