"""Episodes: when they end, what is recorded, and who may ride along."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.pomdp import NO_ACTION, RandomPolicy, TMaze, discounted_return, rollout


class Scripted(NamedTuple):
    """Plays a list of actions, and remembers what it was shown."""

    actions: jax.Array

    def init_memory(self):
        return {"time": jnp.asarray(0), "previous": jnp.full(len(self.actions), -9)}

    def act(self, key, memory, previous_action, observation):
        time = memory["time"]
        previous = memory["previous"].at[time].set(previous_action)
        return {"time": time + 1, "previous": previous}, self.actions[time]


class Counter(NamedTuple):
    """An observer that counts what it sees."""

    def init(self, key, observation, *, terminal):
        return {"steps": jnp.asarray(0), "ends": jnp.asarray(0), "first": observation}

    def update(self, key, belief, action, observation, *, terminal):
        return {**belief, "steps": belief["steps"] + 1, "ends": belief["ends"] + terminal}


def test_a_scripted_episode_is_recorded_step_by_step():
    maze = TMaze(2, horizon=6)
    policy = Scripted(jnp.array([2, 0, 0, 1, 0, 0]))  # bounce left, right, right, up
    run = rollout(jax.random.key(3), maze, policy, num_episodes=8, observer=Counter(), keep=lambda b: b["steps"])
    layouts = np.asarray(run.trajectory.states[:, 0])
    assert set(layouts) == {0, 1}
    for episode, layout in enumerate(layouts):
        cells = np.asarray(run.trajectory.states[episode]) // 2
        assert cells.tolist() == [0, 0, 1, 2, 3, 3, 3]
        assert run.trajectory.observations[episode].tolist() == [layout, layout, 2, 3, 3, 3, 3]
        assert run.trajectory.actions[episode].tolist() == [2, 0, 0, 1, 0, 0]
        found = 4.0 if layout == 0 else -0.1
        np.testing.assert_allclose(run.trajectory.rewards[episode], [-0.1, 0, 0, found, 0, 0])
        assert run.kept[episode].tolist() == [0, 1, 2, 3, 4, 4, 4]
    assert run.trajectory.lengths.tolist() == [4] * 8
    assert run.trajectory.terminated.all()
    assert run.observer["ends"].tolist() == [1] * 8
    assert run.memory["previous"][0].tolist() == [NO_ACTION, 2, 0, 0, -9, -9]


def test_an_episode_that_does_not_end_is_cut_at_the_horizon():
    maze = TMaze(2, horizon=3)
    run = rollout(jax.random.key(0), maze, Scripted(jnp.array([0, 2, 0])), num_episodes=2, observer=Counter())
    assert run.trajectory.lengths.tolist() == [3, 3]
    assert not run.trajectory.terminated.any()
    assert run.observer["ends"].tolist() == [0, 0]
    assert run.kept is None


class CallCounter:
    """Ends a T-Maze of length 1 in two steps, and counts how often it is asked."""

    calls = 0

    def init_memory(self):
        return ()

    def act(self, key, memory, previous_action, observation):
        jax.debug.callback(self.count)
        return (), jnp.where(observation == 3, 1, 0)

    def count(self):
        self.calls += 1


def test_the_loop_stops_when_all_episodes_have_ended():
    policy = CallCounter()
    run = rollout(jax.random.key(0), TMaze(1, horizon=1000), policy, num_episodes=3)
    assert run.trajectory.lengths.tolist() == [2, 2, 2]
    jax.effects_barrier()
    assert policy.calls == 2


def test_episodes_of_a_batch_differ():
    maze = TMaze(5, 0.3)
    run = rollout(jax.random.key(0), maze, RandomPolicy(maze), num_episodes=20).trajectory
    assert len({tuple(actions.tolist()) for actions in run.actions}) == 20


def test_discounted_return_is_the_sum_of_discounted_rewards():
    rewards = jnp.array([[1.0, 2.0, 4.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(discounted_return(rewards, 0.5), [1 + 1 + 1, 0.25])


@pytest.mark.parametrize("count", [0, -1])
def test_a_batch_needs_an_episode(count):
    with pytest.raises(ValueError, match="number of episodes is a whole number of at least 1, but got"):
        rollout(jax.random.key(0), TMaze(2), RandomPolicy(TMaze(2)), num_episodes=count)
