"""The Q-network, the ε-greedy policy, and what a greedy policy earns."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.agent import BRC, GRU, LSTM, MGU, NBRC, EpsilonGreedy, QNetwork, evaluate
from beliefscope.agent.network import network_input
from beliefscope.pomdp import NO_ACTION, TMaze

ACTIONS, SEEN, SIZE, LAYERS, TIME, ROWS = 3, 2, 4, 2, 6, 5


def network(kind, seed=0):
    sizes = {"observation_size": SEEN, "num_actions": ACTIONS, "hidden_size": SIZE, "num_layers": LAYERS}
    shapes = eqx.filter_eval_shape(QNetwork, jax.random.key(0), kind, **sizes)
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(scale=0.6, size=leaf.shape), jnp.float32), shapes)


def test_the_input_is_the_one_hot_previous_action_and_the_observation():
    seen = jnp.array([0.25, -2.0])
    assert network_input(jnp.asarray(2), seen, ACTIONS).tolist() == [0, 0, 1, 0.25, -2]
    assert network_input(jnp.asarray(0), seen, ACTIONS).tolist() == [1, 0, 0, 0.25, -2]
    assert network_input(jnp.asarray(NO_ACTION), seen, ACTIONS).tolist() == [0, 0, 0, 0.25, -2]


def test_the_first_step_reads_zeros_in_place_of_a_previous_action():
    agent = network(GRU)
    seen = jnp.array([0.25, -2.0])
    _, values = agent.step(agent.init_memory(), jnp.asarray(NO_ACTION), seen)
    _, expected = agent.step_input(agent.init_memory(), jnp.array([0, 0, 0, 0.25, -2.0]))
    _, other = agent.step(agent.init_memory(), jnp.asarray(1), seen)
    np.testing.assert_array_equal(values, expected)
    assert np.max(np.abs(values - other)) > 1e-3


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_each_layer_reads_the_hidden_state_below_and_the_linear_layer_the_last(kind):
    agent = network(kind)
    memory, lower, upper = agent.init_memory(), *(cell.init_memory() for cell in agent.cells)
    for time in range(3):
        seen = jnp.array([0.5 * time, -1.0])
        x = np.concatenate([np.eye(ACTIONS, dtype=np.float32)[time], seen])
        memory, values = agent.step(memory, jnp.asarray(time), seen)
        lower = agent.cells[0].step(lower, jnp.asarray(x))
        upper = agent.cells[1].step(upper, lower[0])
        expected = np.asarray(upper[0], float) @ np.asarray(agent.weights, float) + np.asarray(agent.bias, float)
        np.testing.assert_allclose(values, expected, atol=1e-6)
    np.testing.assert_array_equal(agent.memory_vector(memory), np.concatenate([lower[0], upper[0]]))
    whole = agent.memory_vector(memory, whole=True)
    if kind is LSTM:
        np.testing.assert_array_equal(whole, np.concatenate([lower[0], lower[1], upper[0], upper[1]]))
        assert agent.memory_vector(memory).shape == (LAYERS * SIZE,)
    else:
        np.testing.assert_array_equal(whole, agent.memory_vector(memory))


def test_the_linear_layer_starts_uniform_within_one_over_the_root_of_n():
    sizes = {"observation_size": SEEN, "num_actions": 90, "hidden_size": 100, "num_layers": 1}
    agent = jax.jit(lambda key: QNetwork(key, MGU, **sizes))(jax.random.key(0))
    for values in (np.asarray(agent.weights), np.asarray(agent.bias)):
        assert np.abs(values).max() <= 0.1
        assert values.max() > 0.09
        assert values.min() < -0.09


@pytest.mark.parametrize("kind", [LSTM, GRU, BRC, NBRC, MGU])
def test_a_whole_sequence_gives_what_single_steps_give(kind):
    agent = network(kind, seed=1)
    inputs = jax.random.normal(jax.random.key(2), (TIME, ROWS, ACTIONS + SEEN))
    read = jax.jit(lambda inputs: agent.read(agent.run(inputs, None, TIME)))(inputs)
    step = jax.jit(jax.vmap(agent.step_input))
    memory = jax.tree.map(lambda leaf: jnp.zeros((ROWS, *leaf.shape)), agent.init_memory())
    for time in range(TIME):
        memory, values = step(memory, inputs[time])
        np.testing.assert_allclose(read[time], values, atol=2e-6)


class Favourite:
    """Values every action at 0 and one at 1."""

    def __init__(self, favourite, actions=4):
        self.favourite, self.actions = favourite, actions

    def init_memory(self):
        return jnp.asarray(0)

    def step(self, memory, previous_action, observation):
        return memory + 1, jax.nn.one_hot(self.favourite, self.actions)

    def memory_vector(self, memory):
        return memory[None].astype(float)


DRAWS = 10_000


@partial(jax.jit, static_argnums=0)
def chosen(agent, rate):
    policy = EpsilonGreedy(agent, TMaze(3), rate)

    def act(key):
        return policy.act(key, policy.init_memory(), jnp.asarray(NO_ACTION), jnp.asarray(2))

    return jax.vmap(act)(jax.random.split(jax.random.key(5), DRAWS))


# A fifth action, which exploration never takes, tells the greedy choices from the others.
FIFTH = Favourite(4, actions=5)
EXPLORATION = np.array([1 / 2, 1 / 6, 1 / 6, 1 / 6, 0])


def assert_counts(actions, chances):
    counts = np.bincount(actions, minlength=len(chances))
    assert np.all(np.abs(counts - DRAWS * chances) <= 5 * np.sqrt(DRAWS * chances * (1 - chances)))


def test_a_policy_that_never_explores_takes_the_best_action_every_time():
    memory, actions = chosen(FIFTH, 0.0)
    assert set(np.asarray(actions)) == {4}
    assert set(np.asarray(memory)) == {1}


def test_a_policy_that_always_explores_follows_the_exploration_policy():
    assert_counts(np.asarray(chosen(FIFTH, 1.0)[1]), EXPLORATION)


def test_a_policy_explores_as_often_as_its_rate_says():
    actions = np.asarray(chosen(FIFTH, 0.2)[1])
    assert_counts(actions, 0.2 * EXPLORATION + 0.8 * np.array([0, 0, 0, 0, 1]))


def test_an_agent_that_always_goes_right_bounces_at_the_junction_to_the_horizon():
    maze = TMaze(3)
    result = evaluate(jax.random.key(0), maze, Favourite(0), num_episodes=4)
    assert maze.horizon == 9
    # Three steps to the junction earn nothing; the other six do not move.
    assert result.undiscounted_return == pytest.approx(-0.6, rel=1e-5)
    assert result.discounted_return == pytest.approx(-0.1 * sum(0.98**t for t in range(3, 9)), rel=1e-5)
    assert result.length == 9
    assert result.terminated == 0


class Rememberer:
    """Goes right to the junction, then where the first observation said."""

    def init_memory(self):
        return jnp.zeros(2)

    def step(self, memory, previous_action, observation):
        memory = jnp.where(previous_action == NO_ACTION, observation[:2], memory)
        at_junction = observation[3]
        return memory, jnp.array([1 - at_junction, memory[0] * at_junction, 0, memory[1] * at_junction])

    def memory_vector(self, memory):
        return memory


def test_an_agent_that_remembers_the_first_observation_earns_the_discounted_treasure():
    result = evaluate(jax.random.key(1), TMaze(3), Rememberer(), num_episodes=16)
    assert result.undiscounted_return == pytest.approx(4)
    assert result.discounted_return == pytest.approx(4 * 0.98**3, rel=1e-6)
    assert result.length == 4
    assert result.terminated == 1


def test_an_agent_that_guesses_up_earns_the_mean_over_both_layouts():
    class UpAtJunction(Rememberer):
        def step(self, memory, previous_action, observation):
            return memory, jnp.array([1 - observation[3], observation[3], 0, 0])

    result = evaluate(jax.random.key(2), TMaze(3), UpAtJunction(), num_episodes=16)
    # Every episode earns 4 or −0.1, so that the mean is one of 17 numbers, and not an end for this seed.
    found = (float(result.undiscounted_return) + 0.1) / 4.1 * 16
    assert found == pytest.approx(round(found), abs=1e-4)
    assert 0 < round(found) < 16
    assert result.discounted_return == pytest.approx(0.98**3 * float(result.undiscounted_return), rel=1e-5)
    assert result.terminated == 1
