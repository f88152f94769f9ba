"""Deep recurrent Q-learning: Algorithm 1 of the paper's appendix B, for one agent or many at once.

An episode is played ε-greedily and stored; then come I gradient steps on batches of stored transitions. The target
network's values of stored transitions are kept beside them (replay.py): they change only when θ' does.

The code is written for one agent; `Plan.each` maps it over agents where they run side by side. Every agent of a call
is at the same episode, so decisions that depend on the episode alone are made once.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from beliefscope.agent.network import EpsilonGreedy, QNetwork, network_input
from beliefscope.agent.replay import Episode, Replay, empty_replay, refresh_values, sample, store
from beliefscope.agent.sequence import lay_out, pairing, steps_needed
from beliefscope.agent.training_spec import DRQN
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import NO_ACTION, Observation

_SHORTEST = 32  # time steps


class Agent(NamedTuple):
    """The state that learning carries from one episode to the next."""

    network: QNetwork  # θ
    target: QNetwork  # θ'
    optimiser: optax.OptState
    replay: Replay


class Plan(NamedTuple):
    """How the hardware is used; except for rounding, the results do not depend on it."""

    each: Callable[[Callable], Callable]  # maps a function of one agent over the agents of a call
    per_row: int  # histories laid out in a row
    lengths: tuple[int, ...]  # the numbers of time steps for which programs are compiled
    dynamic: bool  # does a loop over time end at the last step needed, or at the chosen length?


def cpu_plan(horizon: int) -> Plan:
    """One agent at a time; two histories in a row; loops that end where the work ends."""
    lengths = _lengths(horizon, 2 / 3, 5 / 4, 2.0)
    return Plan(each=lambda function: function, per_row=2, lengths=lengths, dynamic=True)


def gpu_plan(horizon: int) -> Plan:
    """All agents side by side; one history in a row, since steps cost and rows do not; loops of fixed length."""
    return Plan(each=jax.vmap, per_row=1, lengths=_lengths(horizon, 1 / 4, 1 / 2, 1.0), dynamic=False)


def _lengths(horizon: int, *factors: float) -> tuple[int, ...]:
    """Multiples of the horizon, without the small ones, whose programs would take longer to compile than they save."""
    lengths = [math.ceil(factor * horizon) for factor in factors]
    return (*(length for length in lengths[:-1] if length >= _SHORTEST), lengths[-1])


def init_agent(key: PRNGKeyArray, pomdp: POMDP, learner: DRQN) -> Agent:
    """Parameters drawn at random, an empty buffer."""
    network = QNetwork(
        key,
        learner.cell,
        observation_size=pomdp.observation_size,
        num_actions=pomdp.num_actions,
        hidden_size=learner.hidden_size,
        num_layers=learner.num_layers,
    )
    replay = empty_replay(
        learner.buffer_capacity, horizon=pomdp.horizon, input_size=pomdp.num_actions + pomdp.observation_size
    )
    return Agent(network, network, _adam(learner).init(cast(Any, network)), replay)


def train_episode(
    plan: Plan, pomdp: POMDP, learner: DRQN, agents: Agent, keys: Key[Array, "*agents"], episode: Int[Array, ""]
) -> tuple[Agent, Float[Array, "*agents"]]:
    """Episode e of Algorithm 1 for every agent, and the mean loss; `keys` are the agents' own, the same for all e."""
    keys_play, keys_learn = plan.each(lambda key: episode_keys(key, episode))(keys)
    agents = lax.cond(episode % learner.target_period == 0, plan.each(partial(_new_target, learner)), _same, agents)
    agents = plan.each(partial(_play, pomdp, learner))(agents, keys_play)

    def step(number, carry):
        agents, total = carry
        keys_step = plan.each(lambda key: jax.random.fold_in(key, number))(keys_learn)
        agents, loss = gradient_step(plan, pomdp, learner, agents, keys_step)
        return agents, total + loss

    none = jnp.zeros(agents.replay.total.shape)
    agents, total = lax.fori_loop(0, learner.gradient_steps, step, (agents, none))
    return agents, total / learner.gradient_steps


def episode_keys(key: PRNGKeyArray, episode: Int[Array, ""] | int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """An agent's keys to play an episode and to learn after it."""
    key_play, key_learn = jax.random.split(jax.random.fold_in(key, episode))
    return key_play, key_learn


def _same(agents: Agent) -> Agent:
    return agents


def _new_target(learner: DRQN, agent: Agent) -> Agent:
    """θ' ← θ, and the new values of all stored transitions."""
    replay = refresh_values(agent.replay, agent.network, capacity=learner.buffer_capacity)
    return agent._replace(target=agent.network, replay=replay)


class _TargetValues(NamedTuple):
    """Observes an episode and keeps (memory, max_a Q_θ'(η_{0:t}, a))."""

    network: QNetwork
    pomdp: POMDP

    def init(self, key: PRNGKeyArray, observation: Observation, *, terminal: Bool[Array, ""]) -> PyTree:
        return self._step(self.network.init_memory(), jnp.asarray(NO_ACTION), observation)

    def update(
        self,
        key: PRNGKeyArray,
        memory_and_value: PyTree,
        action: Int[Array, ""],
        observation: Observation,
        *,
        terminal: Bool[Array, ""],
    ) -> PyTree:
        return self._step(memory_and_value[0], action, observation)

    def _step(self, memory: PyTree, action: Int[Array, ""], observation: Observation) -> PyTree:
        memory, values = self.network.step(memory, action, self.pomdp.encode_observation(observation))
        return memory, jnp.max(values)


def _play(pomdp: POMDP, learner: DRQN, agent: Agent, key: PRNGKeyArray) -> Agent:
    """One ε-greedy episode, stored."""
    policy = EpsilonGreedy(agent.network, pomdp, learner.exploration_rate)
    played = rollout(
        key,
        pomdp,
        policy,
        num_episodes=1,
        observer=_TargetValues(agent.target, pomdp),
        keep=lambda watched: watched[1],
    )
    trajectory, values = jax.tree.map(lambda leaf: leaf[0], (played.trajectory, played.kept))
    observations = jax.vmap(pomdp.encode_observation)(trajectory.observations)
    previous = jnp.concatenate([jnp.full(1, NO_ACTION), trajectory.actions])
    episode = Episode(
        inputs=network_input(previous, observations, pomdp.num_actions),
        actions=trajectory.actions,
        rewards=trajectory.rewards,
        next_values=values[1:],
        length=trajectory.lengths,
        terminated=trajectory.terminated,
    )
    return agent._replace(replay=store(agent.replay, episode))


def gradient_step(
    plan: Plan, pomdp: POMDP, learner: DRQN, agents: Agent, keys: Key[Array, "*agents"]
) -> tuple[Agent, Float[Array, "*agents"]]:
    """One step of Adam on a sampled batch, for every agent; also the loss before it."""
    numbers, steps = plan.each(partial(_draw, plan, learner))(agents.replay, keys)
    programs = [plan.each(partial(_descend, plan, pomdp, learner, length)) for length in plan.lengths]
    chosen = jnp.searchsorted(jnp.asarray(plan.lengths), jnp.max(steps))
    network, optimiser, loss = lax.switch(chosen, programs, agents, numbers, steps)
    return agents._replace(network=network, optimiser=optimiser), loss


def _draw(plan: Plan, learner: DRQN, replay: Replay, key: PRNGKeyArray) -> tuple[Int[Array, " batch"], Int[Array, ""]]:
    """The sampled transitions, in the order in which they are laid out, and the time steps that these take."""
    numbers = sample(key, replay, capacity=learner.buffer_capacity, batch_size=learner.batch_size)
    lengths = replay.times[numbers % len(replay.times)] + 1
    if plan.per_row == 2:
        order = pairing(lengths)
        numbers, lengths = numbers[order], lengths[order]
    return numbers, steps_needed(lengths, per_row=plan.per_row)


def _descend(
    plan: Plan,
    pomdp: POMDP,
    learner: DRQN,
    length: int,
    agent: Agent,
    numbers: Int[Array, " batch"],
    steps: Int[Array, ""],
) -> tuple[QNetwork, optax.OptState, Float[Array, ""]]:
    """One step of Adam, in a program for at most `length` time steps."""
    replay, slots = agent.replay, len(agent.replay.times)
    slot = numbers % slots
    times = replay.times[slot]
    rows = lay_out(numbers - times, times + 1, per_row=plan.per_row, time=length)
    inputs = replay.inputs[rows.numbers % slots]
    bootstrap = jnp.where(replay.terminal[slot], 0, replay.next_values[slot])
    targets = replay.rewards[slot] + pomdp.discount * bootstrap

    def loss(network: QNetwork) -> Float[Array, ""]:
        hidden = network.run(inputs, rows.fresh, steps if plan.dynamic else length)
        values = network.read(hidden[rows.last, rows.row])
        taken = jnp.take_along_axis(values, replay.actions[slot][:, None], axis=1)[:, 0]
        # An episode that is over before the first action leaves nothing to learn from.
        errors = jnp.where(replay.total > 0, (targets - taken) ** 2, 0)
        return jnp.sum(errors) if learner.variant == "text" else jnp.mean(errors)

    network: Any = agent.network  # Optax's types know no Equinox modules
    value, gradient = jax.value_and_grad(loss)(network)
    updates, optimiser = _adam(learner).update(gradient, agent.optimiser)
    return cast(QNetwork, optax.apply_updates(network, updates)), optimiser, value


def _adam(learner: DRQN) -> optax.GradientTransformation:
    return optax.adam(learner.learning_rate)
