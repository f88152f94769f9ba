"""Training against a naive transcription of the paper's pseudocode, and the details that it hangs on.

At the end the replay ring against a plain queue of whole histories.
"""

import dataclasses
from collections import deque
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from agent.naive_drqn import NaiveDRQN, Transition

from beliefscope.agent import DRQN, GRU, LSTM, QNetwork
from beliefscope.agent.drqn import (
    Episode,
    Plan,
    cpu_plan,
    empty_replay,
    episode_keys,
    gpu_plan,
    gradient_step,
    init_agent,
    refresh_values,
    sample,
    store,
    train_episode,
)
from beliefscope.pomdp import TMaze

MAZE = TMaze(3)
LEARNER = DRQN(hidden_size=6, buffer_capacity=64, num_episodes=40)


def plain(cell: GRU) -> dict[str, np.ndarray]:
    n = cell.hidden_size
    bias = np.asarray(cell.bias)
    return {
        "W": np.asarray(cell.input_weights),
        "U": np.asarray(cell.recurrent_weights),
        "b": np.concatenate([bias[: 2 * n], bias[3 * n :]]),
        "b'": bias[2 * n : 3 * n],
    }


def plain_network(network):
    layers = [plain(cell) for cell in network.cells]
    return {"layers": layers, "weights": np.asarray(network.weights), "bias": np.asarray(network.bias)}


def newest(replay, count):
    """The last `count` stored transitions with their whole histories."""
    slots, total = len(replay.times), int(replay.total)
    for number in range(total - count, total):
        slot, time = number % slots, int(replay.times[number % slots])
        history = [replay.inputs[k % slots] for k in range(number - time, number + 1)] + [replay.next_inputs[slot]]
        yield Transition(
            np.array(history), int(replay.actions[slot]), float(replay.rewards[slot]), bool(replay.terminal[slot])
        )


def test_parameters_are_those_of_the_naive_algorithm_to_1e_9_with_a_ring_that_wraps_inside_episodes():
    with jax.enable_x64(True):
        key = jax.random.key(5)
        agent = init_agent(key, MAZE, LEARNER)
        naive = NaiveDRQN(
            plain_network(agent.network), capacity=64, target_period=10, discount=MAZE.discount, learning_rate=1e-3
        )
        run = jax.jit(partial(train_episode, cpu_plan(MAZE.horizon), MAZE, LEARNER))
        draw = jax.jit(partial(sample, capacity=64, batch_size=32))
        slots, total, wrapped_inside = 64 + MAZE.horizon, 0, 0
        for episode in range(LEARNER.num_episodes):
            before = int(agent.replay.total)
            agent, _ = run(agent, key, jnp.asarray(episode))
            replay = jax.device_get(agent.replay)
            total = int(replay.total)
            wrapped_inside += before % slots > (total - 1) % slots > 0
            naive.begin_episode(episode)
            for transition in newest(replay, total - before):
                naive.store(transition)
            _, key_learn = episode_keys(key, episode)
            for number in range(LEARNER.gradient_steps):
                numbers = draw(jax.random.fold_in(key_learn, number), agent.replay)
                naive.gradient_step(np.asarray(numbers) - (total - len(naive.buffer)))
        assert wrapped_inside >= 2
        assert total > 2 * slots
        ours, theirs = plain_network(agent.network), naive.parameters
        moved = np.abs(ours["weights"] - plain_network(init_agent(key, MAZE, LEARNER).network)["weights"]).max()
        assert moved > 0.05
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


def one_transition(*, terminated: bool):
    """An agent that has stored one episode of a single transition whose next value is 10."""
    agent = init_agent(jax.random.key(0), MAZE, LEARNER)
    episode = Episode(
        inputs=jnp.ones((MAZE.horizon + 1, 8)),
        actions=jnp.zeros(MAZE.horizon, int),
        rewards=jnp.full(MAZE.horizon, 3.0),
        next_values=jnp.full(MAZE.horizon, 10.0),
        length=jnp.asarray(1),
        terminated=jnp.asarray(terminated),
    )
    return agent._replace(replay=store(agent.replay, episode))


@pytest.mark.parametrize(
    ("plan", "variant"), [(cpu_plan(MAZE.horizon), "text"), (gpu_plan(MAZE.horizon), "code")], ids=["cpu", "gpu"]
)
def test_truncation_bootstraps_and_termination_does_not(plan: Plan, variant):
    learner = dataclasses.replace(LEARNER, variant=variant)
    step = jax.jit(partial(gradient_step, plan, MAZE, learner))
    for terminated, target in ((False, 3 + 0.98 * 10), (True, 3.0)):
        agent = one_transition(terminated=terminated)
        _, values = agent.network.step_input(agent.network.init_memory(), jnp.ones(8))
        alone = plan.dynamic  # the GPU's plan runs a batch of agents
        agents, keys = (
            (agent, jax.random.key(1)) if alone else jax.tree.map(lambda x: x[None], (agent, jax.random.key(1)))
        )
        _, loss = step(agents, keys)
        squares = (target - values[0]) ** 2 * (learner.batch_size if variant == "text" else 1)
        np.testing.assert_allclose(np.ravel(loss)[0], squares, rtol=1e-5)


def test_with_nothing_stored_nothing_is_learnt():
    agent = init_agent(jax.random.key(0), MAZE, LEARNER)
    step = jax.jit(partial(gradient_step, cpu_plan(MAZE.horizon), MAZE, LEARNER))
    after, loss = step(agent, jax.random.key(1))
    assert loss == 0
    for a, b in zip(jax.tree.leaves(agent.network), jax.tree.leaves(after.network), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_side_by_side_and_one_after_another_give_the_same_agents_to_rounding():
    keys = jax.random.split(jax.random.key(3), 2)
    agents = jax.vmap(lambda key: init_agent(key, MAZE, LEARNER))(keys)
    together = jax.jit(partial(train_episode, gpu_plan(MAZE.horizon), MAZE, LEARNER))(agents, keys, jnp.asarray(0))[0]
    alone = jax.jit(partial(train_episode, cpu_plan(MAZE.horizon), MAZE, LEARNER))
    for index in range(2):
        agent, key = jax.tree.map(lambda leaf, index=index: leaf[index], (agents, keys))
        mine = alone(agent, key, jnp.asarray(0))[0]
        for a, b in zip(jax.tree.leaves(mine.replay[2:]), jax.tree.leaves(together.replay[2:]), strict=True):
            np.testing.assert_allclose(a, b[index], rtol=1e-6, atol=1e-6)
        for a, b in zip(jax.tree.leaves(mine.network), jax.tree.leaves(together.network), strict=True):
            np.testing.assert_allclose(a, b[index], atol=1e-5)


CAPACITY, HORIZON, ACTIONS, SEEN = 20, 7, 2, 3
INPUTS = ACTIONS + SEEN
SLOTS = CAPACITY + HORIZON

stored = jax.jit(store)
refreshed = jax.jit(refresh_values, static_argnames="capacity")


class Stored(NamedTuple):
    """One transition with all that led to it."""

    history: np.ndarray  # x_0 … x_t
    following: np.ndarray  # x_{t+1}
    action: int
    reward: float
    terminal: bool
    value: float


def random_episode(rng, length):
    """An episode whose arrays hold garbage behind its length."""
    return Episode(
        inputs=rng.normal(size=(HORIZON + 1, INPUTS)).astype(np.float32),
        actions=rng.integers(0, ACTIONS, HORIZON).astype(np.int32),
        rewards=rng.normal(size=HORIZON).astype(np.float32),
        next_values=rng.normal(size=HORIZON).astype(np.float32),
        length=jnp.asarray(length, jnp.int32),
        terminated=jnp.asarray(length < HORIZON or bool(rng.random() < 0.5)),
    )


def transitions(episode):
    length = int(episode.length)
    return [
        Stored(
            history=episode.inputs[: t + 1],
            following=episode.inputs[t + 1],
            action=episode.actions[t],
            reward=episode.rewards[t],
            terminal=bool(episode.terminated) and t == length - 1,
            value=episode.next_values[t],
        )
        for t in range(length)
    ]


def filled(lengths, seed=0, capacity=CAPACITY):
    """The ring and the queue after each of the episodes."""
    rng = np.random.default_rng(seed)
    ring, queue = empty_replay(capacity, horizon=HORIZON, input_size=INPUTS), deque(maxlen=capacity)
    for length in lengths:
        episode = random_episode(rng, length)
        ring = stored(ring, jax.tree.map(jnp.asarray, episode))
        queue.extend(transitions(episode))
        yield ring, queue


def last(pairs):
    ring, queue = deque(pairs, maxlen=1)[0]
    return ring, queue


def numbers_in(queue, total):
    return range(total - len(queue), total)


def assert_holds(ring, queue):
    ring = jax.tree.map(np.asarray, ring)
    for number, expected in zip(numbers_in(queue, int(ring.total)), queue, strict=True):
        slot, time = number % SLOTS, ring.times[number % SLOTS]
        assert time == len(expected.history) - 1
        behind = np.arange(number - time, number + 1) % SLOTS
        np.testing.assert_array_equal(ring.inputs[behind], expected.history)
        np.testing.assert_array_equal(ring.next_inputs[slot], expected.following)
        assert ring.actions[slot] == expected.action
        assert ring.rewards[slot] == expected.reward
        assert ring.terminal[slot] == expected.terminal
        assert ring.next_values[slot] == expected.value


@pytest.mark.parametrize("seed", range(3))
def test_every_stored_transition_keeps_its_whole_history_through_many_wraps(seed):
    lengths = np.random.default_rng(100 + seed).integers(1, HORIZON + 1, 40)
    wrapped_inside = 0
    for total, (ring, queue) in zip(np.cumsum(lengths), filled(lengths, seed), strict=True):
        assert int(ring.total) == total
        assert len(queue) == min(total, CAPACITY)
        assert_holds(ring, queue)
        times = np.asarray(ring.times)
        wrapped_inside += int(total % SLOTS != 0 and times[0] > 0)
    assert wrapped_inside > 0  # the episodes did not merely end where the ring does


@pytest.mark.parametrize("length", [1, HORIZON])
def test_episodes_as_short_or_as_long_as_they_can_be_keep_their_histories(length):
    for ring, queue in filled([length] * 30, seed=length):
        assert_holds(ring, queue)


def test_an_empty_ring_has_no_transition():
    ring = empty_replay(CAPACITY, horizon=HORIZON, input_size=INPUTS)
    assert int(ring.total) == 0
    assert ring.inputs.shape == (SLOTS, INPUTS)


def counted(ring, draws):
    numbers = np.asarray(sample(jax.random.key(1), ring, capacity=CAPACITY, batch_size=draws))
    first = max(int(ring.total) - CAPACITY, 0)
    assert numbers.min() >= first
    assert numbers.max() < int(ring.total)
    return np.bincount(numbers - first, minlength=int(ring.total) - first)


def test_a_sample_is_uniform_over_the_last_transitions_of_a_full_ring():
    ring, _ = last(filled([6] * 11))
    counts = counted(ring, 20_000)
    assert len(counts) == CAPACITY
    # Fixed seed; a uniform sampler passes for 999 seeds in 1000.
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_a_sample_is_uniform_over_all_transitions_of_a_ring_not_yet_full():
    ring, _ = last(filled([3, 5]))
    counts = counted(ring, 20_000)
    assert len(counts) == 8
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_a_sample_of_a_single_transition_is_that_transition():
    ring, _ = last(filled([1]))
    assert counted(ring, 50).tolist() == [50]


def network(kind, seed):
    shapes = eqx.filter_eval_shape(
        QNetwork, jax.random.key(0), kind, observation_size=SEEN, num_actions=ACTIONS, hidden_size=4, num_layers=2
    )
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(scale=0.6, size=leaf.shape), jnp.float32), shapes)


@jax.jit
def one_step(target, memory, x):
    return target.step_input(memory, x)


def value_after(target, transition):
    """max_a Q(η_{0:t+1}, a), step by step."""
    memory, values = target.init_memory(), np.zeros(0)
    for x in [*transition.history, transition.following]:
        memory, values = one_step(target, memory, x)
    return float(np.max(values))


def assert_refreshed(ring, queue, target):
    new = refreshed(ring, target, capacity=queue.maxlen)
    values = np.asarray(new.next_values)
    for number, transition in zip(numbers_in(queue, int(ring.total)), queue, strict=True):
        assert values[number % len(values)] == pytest.approx(value_after(target, transition), abs=2e-6)
    for name in set(ring._fields) - {"next_values"}:
        np.testing.assert_array_equal(getattr(new, name), getattr(ring, name))
    return new


@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize("lengths", [[1], [3], [HORIZON], [1, 1], [4, 7, 2]], ids=str)
def test_new_values_of_a_ring_not_yet_full_are_those_of_a_walk_along_each_history(kind, lengths):
    assert_refreshed(*last(filled(lengths, seed=5)), network(kind, 0))


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_new_values_of_a_wrapped_ring_are_those_of_a_walk_along_each_history(kind):
    lengths = np.random.default_rng(6).integers(1, HORIZON + 1, 24)
    target = network(kind, 1)
    for count, (ring, queue) in enumerate(filled(lengths, seed=6)):
        if count % 4 == 3:
            assert_refreshed(ring, queue, target)


def test_new_values_of_a_large_ring_are_those_of_a_walk_along_each_history():
    """Here the ring holds many more transitions than are walked side by side, so that one walk passes many episodes."""
    capacity, target = 400, network(LSTM, 4)
    lengths = np.random.default_rng(8).integers(1, HORIZON + 1, 300)
    assert np.sum(lengths) > capacity + HORIZON
    for count, (ring, queue) in enumerate(filled(lengths, seed=8, capacity=capacity)):
        if count in (120, 299):
            assert_refreshed(ring, queue, target)


def test_values_may_be_renewed_again_for_another_network():
    ring, queue = last(filled([5, 7, 7, 4, 6], seed=7))
    once = assert_refreshed(ring, queue, network(LSTM, 2))
    again = assert_refreshed(once, queue, network(LSTM, 3))
    assert np.abs(np.asarray(once.next_values) - np.asarray(again.next_values)).max() > 0.01


def test_an_empty_ring_has_no_values_to_renew():
    ring = empty_replay(CAPACITY, horizon=HORIZON, input_size=INPUTS)
    jax.tree.map(np.testing.assert_array_equal, refreshed(ring, network(LSTM, 2), capacity=CAPACITY), ring)


def test_the_rings_of_several_agents_are_renewed_as_each_alone():
    pairs = [last(filled(lengths, seed)) for seed, lengths in enumerate([[2], [7, 7, 7, 6], [3, 1]])]
    targets = [network(LSTM, seed) for seed in range(3)]
    stack = partial(jax.tree.map, lambda *leaves: jnp.stack(leaves))
    together = jax.vmap(partial(refreshed, capacity=CAPACITY))(stack(*[ring for ring, _ in pairs]), stack(*targets))
    for agent, ((ring, queue), target) in enumerate(zip(pairs, targets, strict=True)):
        alone = refreshed(ring, target, capacity=CAPACITY)
        slots = [number % SLOTS for number in numbers_in(queue, int(ring.total))]
        np.testing.assert_allclose(
            together.next_values[agent][np.array(slots)], alone.next_values[np.array(slots)], atol=1e-6
        )
