"""Agents in plain NumPy against what is known of their episodes, and against the compiled rollout."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from beliefscope.belief import ExactFilter, ParticleFilter
from beliefscope.measurement import pairs_from_trajectories, play
from beliefscope.pomdp import NO_ACTION, MountainHike, TMaze, discounted_return, rollout
from beliefscope.pomdp.t_maze import DOWN, RIGHT, SEES_JUNCTION, SEES_UP, UP

MAZE = TMaze(3)
ASTRAY = TMaze(3, 0.3)
HIKE = MountainHike(horizon=4)
N = 8  # episodes in the maze, in all tests but one: each number is compiled anew


class Walker:
    """The optimal policy: walks right, and at the junction takes the arm that it was shown.

    Its memory, overwritten in place, is the time and the first observation.
    """

    def start(self, num_episodes):
        self.memory = np.full((num_episodes, 2), -1)

    def step(self, previous_actions, observations):
        seen = np.argmax(observations, axis=1)
        self.memory[:, 0] += 1
        self.memory[:, 1] = np.where(self.memory[:, 0] == 0, seen, self.memory[:, 1])
        turn = np.where(self.memory[:, 1] == SEES_UP, UP, DOWN)
        return np.where(seen == SEES_JUNCTION, turn, RIGHT), self.memory


class WalkerInJax:
    """The same policy for `rollout`."""

    def init_memory(self):
        return jnp.asarray(-1)

    def act(self, key, memory, previous_action, observation):
        first = jnp.where(memory < 0, observation, memory)
        return first, jnp.where(observation == SEES_JUNCTION, jnp.where(first == SEES_UP, UP, DOWN), RIGHT)


class Turner:
    """Takes the four actions in turn; its memory is what it was given."""

    def start(self, num_episodes):
        pass

    def step(self, previous_actions, observations) -> Any:
        return (previous_actions + 1) % 4, np.column_stack([previous_actions, observations])


class TurnerInJax:
    """The same policy for `rollout`."""

    def init_memory(self):
        return ()

    def act(self, key, memory, previous_action, observation):
        return (), (previous_action + 1) % 4


class TurnerInTorch(Turner):
    """The same agent in PyTorch."""

    def step(self, previous_actions, observations):
        previous = torch.from_numpy(previous_actions)
        return (previous + 1) % 4, torch.hstack([previous[:, None], torch.from_numpy(observations)])


class Says:
    """Says what it was told to, step by step, and then the last again."""

    def __init__(self, *returned):
        self.returned = returned

    def start(self, num_episodes):
        self.time = -1

    def step(self, previous_actions, observations):
        self.time += 1
        return self.returned[min(self.time, len(self.returned) - 1)]


def paired(pomdp, filter, played):
    return pairs_from_trajectories(
        jax.random.key(1),
        pomdp,
        filter,
        memory=played.memory,
        actions=played.actions,
        observations=played.observations,
        lengths=played.lengths,
    )


@pytest.fixture(scope="module")
def walked():
    return play(jax.random.key(0), Walker(), MAZE, num_episodes=N)


@pytest.fixture(scope="module")
def hiked():
    return play(jax.random.key(3), Turner(), HIKE, num_episodes=3)


def test_the_optimal_policy_earns_the_closed_form_and_acts_once_more_than_the_maze_is_long(walked):
    np.testing.assert_allclose(walked.returns, 4 * 0.98**3, rtol=1e-6)
    np.testing.assert_array_equal(walked.lengths, 4)
    assert walked.memory.shape == (N, 4, 2)
    assert walked.memory.dtype == np.float32
    assert set(walked.observations[:, 0]) == {0, 1}


def test_the_memory_of_a_step_stands_at_that_step(walked):
    np.testing.assert_array_equal(walked.memory[:, :, 0], np.tile(np.arange(4), (N, 1)))
    np.testing.assert_array_equal(walked.memory[:, :, 1], np.tile(walked.observations[:, :1], (1, 4)))


def test_play_is_rollout_where_moves_go_astray_and_episodes_end_at_different_times():
    played = play(jax.random.key(3), Walker(), ASTRAY, num_episodes=50)
    expected = rollout(jax.random.key(3), ASTRAY, WalkerInJax(), num_episodes=50).trajectory
    steps = max(played.lengths)
    np.testing.assert_array_equal(played.lengths, expected.lengths)
    assert len(set(played.lengths)) > 3
    np.testing.assert_array_equal(played.actions, expected.actions[:, :steps])
    np.testing.assert_array_equal(played.observations, expected.observations[:, :steps])
    np.testing.assert_allclose(played.returns, discounted_return(expected.rewards, ASTRAY.discount), rtol=1e-5)
    time, ended = np.arange(steps), np.arange(steps) >= played.lengths[:, None]
    np.testing.assert_array_equal(played.memory[:, :, 0], np.where(ended, 0, time))


def test_play_is_rollout_in_a_continuous_world_cut_at_the_horizon(hiked):
    expected = rollout(jax.random.key(3), HIKE, TurnerInJax(), num_episodes=3).trajectory
    np.testing.assert_array_equal(hiked.lengths, 4)
    np.testing.assert_array_equal(hiked.actions, expected.actions)
    np.testing.assert_allclose(hiked.observations, expected.observations[:, :4], atol=1e-6)
    np.testing.assert_allclose(hiked.returns, discounted_return(expected.rewards, HIKE.discount), rtol=1e-5)


def test_the_agent_is_given_its_last_actions_and_the_encoded_observations():
    played = play(jax.random.key(0), Turner(), MAZE, num_episodes=N)
    previous, seen = played.memory[:, :, 0], played.memory[:, :, 1:]
    assert np.all(previous[:, 0] == NO_ACTION)
    np.testing.assert_array_equal(previous[:, 1:], played.actions[:, :-1])
    np.testing.assert_array_equal(seen, np.eye(4)[played.observations])


def test_an_agent_in_torch_plays_as_the_same_one_in_numpy(hiked):
    """Under warnings as errors: PyTorch warns of arrays that it may not write to."""
    played = play(jax.random.key(3), TurnerInTorch(), HIKE, num_episodes=3)
    jax.tree.map(np.testing.assert_array_equal, played, hiked)


def test_pairs_of_a_played_maze_have_the_known_beliefs(walked):
    pairs = paired(MAZE, ExactFilter(MAZE), walked)
    np.testing.assert_array_equal(pairs.memory[:, 0], pairs.time)
    states = 2 * np.asarray(pairs.memory[:, 0]) + np.asarray(pairs.memory[:, 1])  # the cell is the time
    np.testing.assert_array_equal(np.argmax(pairs.belief, axis=1), states)


@pytest.mark.slow  # six seconds of compilation; particles in pairs have their own quick test
def test_pairs_of_a_played_hike_have_sets_of_particles(hiked):
    pairs = paired(HIKE, ParticleFilter(HIKE, num_particles=20), hiked)
    assert pairs.belief.shape == (3, 20, 2)
    np.testing.assert_array_equal(pairs.memory[:, 1:], pairs.observation)


def test_what_an_agent_returns_for_an_episode_that_has_ended_is_ignored():
    """The first episode ends at the fourth step, the others bump into the wall up to the horizon."""
    memory, others = np.ones((N, 1)), [RIGHT] * (N - 1)
    right, turn = ([RIGHT, *others], memory), ([UP, *others], memory)
    nonsense = ([99, *others], [[np.nan], *memory[1:]])
    played = play(jax.random.key(0), Says(right, right, right, turn, nonsense), MAZE, num_episodes=N)
    np.testing.assert_array_equal(played.lengths, [4] + [MAZE.horizon] * (N - 1))
    np.testing.assert_array_equal(played.memory[:, :, 0], np.arange(MAZE.horizon) < played.lengths[:, None])


ACTIONS, ROWS = [0] * N, np.zeros((N, 3))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([ACTIONS], "a step of the agent returns its actions and its memory, but got 'list'"),
        ([([*ACTIONS, 0], ROWS)], "returns actions [8] and memory [8, m], but got [(9,), (8, 3)]"),
        ([(ACTIONS, ROWS[0])], "returns actions [8] and memory [8, m], but got [(8,), (3,)]"),
        ([([0.0] * N, ROWS)], "the actions are an array of whole numbers that NumPy can read, but got 'list"),
        ([([*ACTIONS[1:], 4], ROWS)], "an action is an integer from 0 to 3, but got [4]"),
        ([(ACTIONS, ROWS), ([*ACTIONS[1:], -1], ROWS)], "an action is an integer from 0 to 3, but got [-1]"),
        ([(ACTIONS, ROWS + np.nan)], "finite numbers in single precision, but got 'NaN or infinity'"),
        ([(ACTIONS, ROWS + 1e300)], "finite numbers in single precision, but got 'NaN or infinity'"),
        ([(ACTIONS, ROWS), (ACTIONS, ROWS + np.inf)], "finite numbers in single precision, but got 'NaN or infinity'"),
        ([(ACTIONS, ROWS), (ACTIONS, ROWS[:, :2])], "keeps its shape [N, m] from step to step, but got (8, 2)"),
        ([(ACTIONS, torch.zeros(N, 3, requires_grad=True))], "return tensor.detach().cpu() of a PyTorch tensor"),
        ([(ACTIONS, [[1.0], [1.0, 2.0]])], "the memory is an array of real numbers that NumPy can read, but got 'list"),
    ],
)
def test_a_bad_agent_is_told_in_one_sentence(returned, words):
    with pytest.raises(ValueError, match=re.escape(words)) as told:
        play(jax.random.key(0), Says(*returned), MAZE, num_episodes=N)
    assert str(told.value).endswith(".")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("number", [0, -3])
def test_no_episodes_are_refused(number):
    with pytest.raises(ValueError, match="number of episodes is a whole number of at least 1"):
        play(jax.random.key(0), Walker(), MAZE, num_episodes=number)
