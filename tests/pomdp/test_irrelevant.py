"""Irrelevant variables: Gaussian random walks that change nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.pomdp import Irrelevant, LinearGaussian, MountainHike, RandomPolicy, TMaze, rollout


def test_walk_and_observation_have_the_stated_moments():
    pomdp = Irrelevant(TMaze(50), 3, initial_std=2.0, process_std=0.5, observation_std=0.3)
    states, seen = jax.jit(lambda key: _walk(pomdp, key))(jax.random.key(0))
    assert np.std(states[:, 0]) == pytest.approx(2.0, rel=0.03)
    assert np.std(states[:, 1] - states[:, 0]) == pytest.approx(0.5, rel=0.03)
    assert np.std(seen - states[:, 1]) == pytest.approx(0.3, rel=0.03)
    assert abs(np.mean(states[:, 0])) < 0.1
    assert abs(np.corrcoef(states[:, 0, 0], states[:, 0, 1])[0, 1]) < 0.06


def _walk(pomdp, key):
    def one(key):
        keys = jax.random.split(key, 3)
        first = pomdp.sample_initial(keys[0])
        second = pomdp.sample_transition(keys[1], first, 0)
        seen = pomdp.sample_observation(keys[2], second, 0)
        return jnp.stack([first.irrelevant, second.irrelevant]), seen.irrelevant

    return jax.vmap(one)(jax.random.split(key, 4000))


def test_the_control_problem_is_untouched():
    maze = TMaze(3)
    pomdp = Irrelevant(maze, 2)
    run = rollout(jax.random.key(0), pomdp, RandomPolicy(pomdp), num_episodes=50).trajectory
    states, following = run.states.relevant[:, :-1], run.states.relevant[:, 1:]
    rewards = jax.jit(jax.vmap(jax.vmap(maze.reward)))(states, run.actions, following)
    taken = np.arange(maze.horizon) < np.asarray(run.lengths)[:, None]
    np.testing.assert_array_equal(np.where(taken, rewards, 0), run.rewards)
    assert (pomdp.num_actions, pomdp.horizon, pomdp.discount) == (maze.num_actions, maze.horizon, maze.discount)
    assert pomdp.observation_size == 6


def test_a_terminal_state_freezes_the_walk_too():
    pomdp = Irrelevant(TMaze(1), 1)
    end = Irrelevant(TMaze(1), 1).sample_initial(jax.random.key(0))
    end = type(end)(relevant=jnp.asarray(4), irrelevant=end.irrelevant)
    moved = pomdp.sample_transition(jax.random.key(1), end, 0)
    assert pomdp.is_terminal(end)
    assert moved.irrelevant == end.irrelevant


def test_variants_differ_in_the_walks_spread():
    text, code = (Irrelevant.of_paper(MountainHike(), 2, variant) for variant in ("text", "code"))
    np.testing.assert_allclose(text.process.process_covariance, np.eye(2))
    np.testing.assert_allclose(code.process.process_covariance, 0.1 * np.eye(2), rtol=1e-6)
    np.testing.assert_allclose(code.process.initial_covariance, 0.1 * np.eye(2), rtol=1e-6)
    np.testing.assert_allclose(code.process.observation_covariance, np.eye(2))


@pytest.mark.parametrize(
    ("dimensions", "spread", "sentence"),
    [(0, {}, "number of dimensions"), (2, {"process_std": 0.0}, "process_std is a standard deviation above 0")],
)
def test_bad_input_gets_one_sentence(dimensions, spread, sentence):
    with pytest.raises(ValueError, match=sentence):
        Irrelevant(TMaze(2), dimensions, **spread)


def test_a_covariance_that_is_none_is_refused():
    eye = jnp.eye(2)
    with pytest.raises(ValueError, match="process_covariance is symmetric and positive definite"):
        LinearGaussian(jnp.zeros(2), eye, eye, -eye, eye, eye)
