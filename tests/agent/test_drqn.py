"""Training against a naive transcription of the paper's pseudocode, and the details that it hangs on."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent.naive_drqn import NaiveDRQN, Transition

from beliefscope.agent import DRQN, GRU
from beliefscope.agent.drqn import (
    Episode,
    Plan,
    cpu_plan,
    episode_keys,
    gpu_plan,
    gradient_step,
    init_agent,
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
