"""Pairs of memory and belief against agents and beliefs that are known in advance."""

import re
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.belief import ExactFilter, filter_of_paper, run_filter
from beliefscope.measurement import pairs_from_trajectories, sample_pairs
from beliefscope.pomdp import Irrelevant, MountainHike, RandomPolicy, TMaze, rollout
from beliefscope.pomdp.t_maze import DOWN, RIGHT, SEES_JUNCTION, UP

MAZE = TMaze(3)


class Walker(NamedTuple):
    """Walks right; at the junction it takes the arm that it was shown, or for ever bumps into the wall."""

    turns: bool

    def init_memory(self):
        return jnp.zeros(3)  # steps seen, the first observation, the last one

    def step(self, memory, previous_action, observation):
        seen = jnp.argmax(observation).astype(float)
        memory = jnp.stack([memory[0] + 1, jnp.where(memory[0] == 0, seen, memory[1]), seen])
        turn = jnp.where(memory[1] == 0, UP, DOWN)
        action = jnp.where((seen == SEES_JUNCTION) & self.turns, turn, RIGHT)
        return memory, jax.nn.one_hot(action, 4)

    def memory_vector(self, memory):
        return memory


@pytest.fixture(scope="module")
def walked():
    return sample_pairs(jax.random.key(0), Walker(turns=True), MAZE, ExactFilter(MAZE), num_samples=1200)


def test_memory_belief_and_time_are_of_the_same_step_and_the_belief_is_the_known_one(walked):
    memory, time = np.asarray(walked.memory), np.asarray(walked.time)
    np.testing.assert_array_equal(memory[:, 0] - 1, time)
    states = 2 * time + memory[:, 1].astype(int)  # the cell is the time, the layout the first observation
    np.testing.assert_array_equal(np.argmax(walked.belief, axis=1), states)
    np.testing.assert_allclose(np.max(walked.belief, axis=1), 1)
    np.testing.assert_array_equal(np.argmax(walked.observation, axis=1), memory[:, 2])
    np.testing.assert_allclose(walked.returns, 4 * 0.98**3, rtol=1e-5)
    assert not np.any(walked.health.impossible)


def test_chunks_side_by_side_as_on_a_gpu_give_the_same_pairs(walked, monkeypatch):
    monkeypatch.setattr(sys.modules["beliefscope.measurement.sample"], "_chunks_at_once", lambda: 3)
    again = sample_pairs(jax.random.key(0), Walker(turns=True), MAZE, ExactFilter(MAZE), num_samples=1200)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), walked, again)


def test_every_visited_step_is_drawn_alike_and_no_terminal_one(walked):
    """Cells 0 to L, two layouts: 8 equally likely pairs, as there are 102 for L = 50."""
    counts = np.unique(np.argmax(walked.belief, axis=1), return_counts=True)[1]
    assert len(counts) == 8
    assert np.all(np.abs(counts - 150) < 5 * np.sqrt(150))


def test_the_recent_inputs_are_the_last_eight_newest_first(walked):
    recent = np.asarray(walked.recent).reshape(-1, 8, 8)
    for row, time, first in zip(recent, np.asarray(walked.time), np.asarray(walked.memory[:, 1]), strict=True):
        assert np.all(row[time + 1 :] == 0)
        oldest = row[time]
        np.testing.assert_array_equal(oldest[:4], 0)
        assert np.argmax(oldest[4:]) == first
        assert np.all(np.argmax(row[:time, :4], axis=1) == RIGHT)
        assert np.all(row[:time, :4].sum(axis=1) == 1)


def test_an_agent_that_never_ends_is_drawn_up_to_the_horizon():
    pairs = sample_pairs(jax.random.key(1), Walker(turns=False), MAZE, ExactFilter(MAZE), num_samples=1000)
    assert set(np.unique(pairs.time)) == set(range(MAZE.horizon))


def test_exploration_changes_the_histories():
    pairs = sample_pairs(jax.random.key(1), Walker(turns=True), MAZE, ExactFilter(MAZE), num_samples=500, epsilon=1.0)
    assert np.max(pairs.time) > 3


def test_logged_memories_are_paired_with_the_beliefs_of_their_own_step():
    """The logged memory is the belief itself, from another walk along the same episodes."""
    maze = TMaze(4, 0.3)
    played = rollout(jax.random.key(2), maze, RandomPolicy(maze), num_episodes=200).trajectory
    beliefs = run_filter(jax.random.key(3), ExactFilter(maze), played).probabilities[:, :-1]
    pairs = pairs_from_trajectories(
        jax.random.key(4),
        maze,
        ExactFilter(maze),
        memory=np.asarray(beliefs),
        actions=np.asarray(played.actions),
        observations=np.asarray(played.observations[:, :-1]),
        lengths=np.asarray(played.lengths),
    )
    np.testing.assert_allclose(pairs.memory, pairs.belief, atol=1e-6)
    assert len(np.unique(pairs.time)) > 5
    assert pairs.returns is None


def test_particles_come_as_sets_and_products_by_part():
    hike = Irrelevant(MountainHike(horizon=6), 2)
    blind = BlindAgent()
    pairs = sample_pairs(jax.random.key(0), blind, hike, filter_of_paper(hike), num_samples=3)
    assert pairs.belief.relevant.shape == (3, 1000, 2)
    assert pairs.belief.irrelevant.shape == (3, 6)


class BlindAgent:
    """Acts by the clock, whatever it sees."""

    def init_memory(self):
        return jnp.zeros(1)

    def step(self, memory, previous_action, observation):
        return memory + 1, jax.nn.one_hot(memory[0].astype(int) % 4, 4)

    def memory_vector(self, memory):
        return memory


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lengths": np.array([0, 3])}, "a whole number from 1 to T = 3, but got [0, 3]"),
        ({"lengths": np.array([1, 4])}, "a whole number from 1 to T = 3, but got [1, 4]"),
        ({"memory": np.full((2, 3, 5), np.nan)}, "a memory is made of finite numbers"),
        ({"memory": np.zeros((2, 5))}, "logged episodes are memory [N, T, m]"),
        ({"actions": np.zeros((2, 4), int)}, "logged episodes are memory [N, T, m]"),
        ({"observations": np.zeros((3, 3), int)}, "logged episodes are memory [N, T, m]"),
    ],
)
def test_logs_that_do_not_fit_together_are_refused(changed, words):
    good = {
        "memory": np.zeros((2, 3, 5)),
        "actions": np.zeros((2, 3), int),
        "observations": np.full((2, 3), 2),
        "lengths": np.array([3, 2]),
    }
    with pytest.raises(ValueError, match=re.escape(words)):
        pairs_from_trajectories(jax.random.key(0), MAZE, ExactFilter(MAZE), **{**good, **changed})


@pytest.mark.parametrize(("number", "epsilon", "words"), [(0, 0.0, "number of samples"), (3, 1.5, "ε lies in [0, 1]")])
def test_wrong_numbers_are_refused(number, epsilon, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        sample_pairs(jax.random.key(0), Walker(True), MAZE, ExactFilter(MAZE), num_samples=number, epsilon=epsilon)
