"""Deep recurrent Q-learning: Algorithm 1 of the paper's appendix B, for one agent or many at once.

An episode is played ε-greedily and stored; then come I gradient steps on batches of stored transitions. The target
network's values of stored transitions are kept beside them: they change only when θ' does.

The replay buffer B has the last N transitions in a flat ring. Transitions are numbered in order; number k is in slot
k mod (N + H). The H slots beyond N keep the beginnings of episodes whose first transitions have already left the
buffer. So the ring has the whole history of every stored transition: the t + 1 inputs x_0 … x_t are in the slots up to
its own, and x_{t+1} is in its own slot too.

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
from beliefscope.agent.sequence import lay_out, pairing, steps_needed
from beliefscope.agent.training_spec import DRQN
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import NO_ACTION, Observation

_SHORTEST = 32  # time steps
_STRETCHES = 64  # parts of the ring that are read side by side when values are computed anew


class Replay(NamedTuple):
    """The ring; a slot holds one transition (η_{0:t}, a_t, r_t, o_{t+1})."""

    inputs: Float[Array, "slots inputs"]  # x_t
    next_inputs: Float[Array, "slots inputs"]  # x_{t+1}
    actions: Int[Array, " slots"]  # a_t
    rewards: Float[Array, " slots"]  # r_t
    terminal: Bool[Array, " slots"]  # did the episode end in a terminal state here?
    times: Int[Array, " slots"]  # t
    next_values: Float[Array, " slots"]  # max_a Q_θ'(η_{0:t+1}, a)
    total: Int[Array, ""]  # how many transitions were ever stored


class Episode(NamedTuple):
    """One episode, ready to be stored; entries beyond its length are ignored."""

    inputs: Float[Array, "H+1 inputs"]
    actions: Int[Array, " H"]
    rewards: Float[Array, " H"]
    next_values: Float[Array, " H"]
    length: Int[Array, ""]
    terminated: Bool[Array, ""]


def empty_replay(capacity: int, *, horizon: int, input_size: int) -> Replay:
    """No transition yet."""
    slots = capacity + horizon
    return Replay(
        inputs=jnp.zeros((slots, input_size)),
        next_inputs=jnp.zeros((slots, input_size)),
        actions=jnp.zeros(slots, int),
        rewards=jnp.zeros(slots),
        terminal=jnp.zeros(slots, bool),
        times=jnp.zeros(slots, int),
        next_values=jnp.zeros(slots),
        total=jnp.zeros((), int),
    )


def store(replay: Replay, episode: Episode) -> Replay:
    """The ring with the episode's transitions in place of the oldest."""
    slots, times = len(replay.times), jnp.arange(len(episode.actions))
    where = jnp.where(times < episode.length, (replay.total + times) % slots, slots)
    new = Replay(
        inputs=episode.inputs[:-1],
        next_inputs=episode.inputs[1:],
        actions=episode.actions,
        rewards=episode.rewards,
        terminal=episode.terminated & (times == episode.length - 1),
        times=times,
        next_values=episode.next_values,
        total=episode.length,
    )
    total = replay.total + new.total
    rings = jax.tree.map(lambda ring, rows: ring.at[where].set(rows, mode="drop"), replay[:-1], new[:-1])
    return Replay(*rings, total=total)


def sample(key: PRNGKeyArray, replay: Replay, *, capacity: int, batch_size: int) -> Int[Array, " batch"]:
    """Numbers of transitions drawn uniformly from the last `capacity`."""
    stored = jnp.minimum(replay.total, capacity)
    return replay.total - 1 - jax.random.randint(key, (batch_size,), 0, stored)


class _Reading(NamedTuple):
    """The position of the target network in each stretch of the ring."""

    number: Int[Array, " stretches"]  # the transition that is read
    opening: Bool[Array, " stretches"]  # does it open an episode whose x_0 has not been read yet?
    memory: PyTree  # of the target network [stretches, ...]
    values: Float[Array, " slots"]  # what has been computed so far


def refresh_values(replay: Replay, target: QNetwork, *, capacity: int) -> Replay:
    """The ring with max_a Q_θ'(η_{0:t+1}, a) computed again for every stored transition.

    The stored transitions are cut into stretches of whole episodes, which are read side by side. An episode of T
    transitions takes T + 1 readings: of x_0, from an empty memory, which gives no value, and of x_{t+1} beside each
    transition, which gives that transition's.
    """
    slots = len(replay.times)
    begins, ends = _stretches(replay, capacity)
    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (_STRETCHES, *leaf.shape)), target.init_memory())

    def read_one(reading: _Reading) -> _Reading:
        number, opening, memory, values = reading
        slot = number % slots
        inputs = _where(opening, replay.inputs[slot], replay.next_inputs[slot])
        memory = jax.tree.map(lambda start, old: _where(opening, start, old), empty, memory)
        memory, q = jax.vmap(target.step_input)(memory, inputs)
        known = ~opening & (number < ends)
        values = values.at[jnp.where(known, slot, slots)].set(jnp.max(q, axis=-1), mode="drop")
        number = number + ~opening
        opening = ~opening & (replay.times[number % slots] == 0)
        return _Reading(number, opening, memory, values)

    start = _Reading(begins, jnp.ones(_STRETCHES, bool), empty, replay.next_values)
    done = lax.while_loop(lambda reading: jnp.any(reading.number < ends), read_one, start)
    return replay._replace(next_values=done.values)


def _stretches(replay: Replay, capacity: int) -> tuple[Int[Array, " stretches"], Int[Array, " stretches"]]:
    """The first transition of each stretch and the one behind its last: about equally many, whole episodes each."""
    first = _episode_start(replay, jnp.maximum(replay.total - capacity, 0))
    cuts = first + jnp.arange(_STRETCHES) * (replay.total - first) // _STRETCHES
    begins = _episode_start(replay, cuts)
    return begins, jnp.append(begins[1:], replay.total)


def _episode_start(replay: Replay, numbers: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
    """The number of the first transition of the same episode."""
    return numbers - replay.times[numbers % len(replay.times)]


def _where(condition: Bool[Array, " rows"], yes: Array, no: Array) -> Array:
    """`jnp.where` row by row, whatever axes follow."""
    return jnp.where(condition.reshape(-1, *[1] * (no.ndim - 1)), yes, no)


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
