"""The exact filter against the enumeration of all paths of states."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.belief import ExactFilter, run_filter
from beliefscope.pomdp import MountainHike, RandomPolicy, TabularPOMDP, TMaze, classic, rollout

STATES, ACTIONS, SEEN, STEPS = 3, 2, 2, 4


def enumerate_posterior(initial, transition, likelihoods, actions, *, terminal=None, ended=False):
    """p(s_t | o_0:t, a_0:t-1 [, which steps were terminal]) by summing over every path; None if impossible.

    `likelihoods` is O(o_k | ·) for each time k. With `terminal`, paths must not touch a terminal state before the end
    and must be in one at the end exactly if the episode `ended`.
    """
    states = len(initial)
    posterior = np.zeros(states)
    steps = len(actions)
    for path in itertools.product(range(states), repeat=steps + 1):
        chance = initial[path[0]] * np.prod([likelihoods[k][s] for k, s in enumerate(path)])
        chance *= np.prod([transition[a][path[k]][path[k + 1]] for k, a in enumerate(actions)])
        if terminal is not None:
            chance *= all(terminal[s] == (ended and k == steps) for k, s in enumerate(path))
        posterior[path[-1]] += chance
    return posterior / posterior.sum() if posterior.sum() > 0 else None


@st.composite
def random_problems(draw):
    """Tables with zeros, an absorbing last state or none, observations of the action or not, and a history."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def rows(*shape):
        table = rng.dirichlet(np.ones(shape[-1]), shape[:-1]) * (rng.random(shape) < 0.7)
        table[..., 0] += 1 - table.sum(-1)
        return table

    transition = rows(ACTIONS, STATES, STATES)
    if draw(st.booleans()):
        transition[:, -1] = np.eye(STATES)[-1]
    observation = rows(ACTIONS, STATES, SEEN) if draw(st.booleans()) else rows(STATES, SEEN)
    history = draw(st.lists(st.integers(0, SEEN - 1), min_size=STEPS + 1, max_size=STEPS + 1))
    actions = draw(st.lists(st.integers(0, ACTIONS - 1), min_size=STEPS, max_size=STEPS))
    return rows(STATES), transition, observation, history, actions, draw(st.booleans()), draw(st.booleans())


@eqx.filter_jit
def follow(filter, history, actions, ended):
    key = jax.random.key(0)
    belief = filter.init(key, history[0])
    for time in range(STEPS):
        last = time == STEPS - 1
        belief = filter.update(key, belief, actions[time], history[time + 1], terminal=ended & last)
    return belief


@settings(max_examples=25, deadline=None, derandomize=True)
@given(random_problems())
def test_belief_is_the_sum_over_all_paths(problem):
    initial, transition, observation, history, actions, ended, knows = problem
    pomdp = TabularPOMDP(
        initial=initial,
        transition=transition,
        reward=np.zeros((ACTIONS, STATES)),
        observation=observation,
        discount=0.9,
        horizon=STEPS,
    )
    if observation.ndim == 2:
        likelihoods = [observation[:, o] for o in history]
    else:  # nothing is seen before the first action
        likelihoods = [np.ones(STATES)] + [observation[a][:, o] for a, o in zip(actions, history[1:], strict=True)]
    terminal = np.asarray(pomdp.terminal) if knows else None
    truth = enumerate_posterior(initial, transition, likelihoods, actions, terminal=terminal, ended=ended)
    filter = ExactFilter(pomdp, condition_on_termination=knows)
    belief = follow(filter, jnp.array(history), jnp.array(actions), jnp.asarray(ended))
    assert belief.impossible == (truth is None)
    if truth is not None:
        np.testing.assert_allclose(belief.probabilities, truth, atol=2e-5)


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize(("length", "stochasticity"), [(1, 0.3), (2, 0.3)])
def test_t_maze_beliefs_are_the_sum_over_all_paths(length, stochasticity, knows):
    maze = TMaze(length, stochasticity, horizon=3)
    eye, actions = jnp.eye(maze.num_states), jnp.arange(4)
    predict = jax.jit(jax.vmap(jax.vmap(maze.predict, (0, None)), (None, 0)))
    transition, likelihood = (
        np.asarray(predict(eye, actions), np.float64),
        np.asarray(jax.vmap(maze.likelihood)(actions)),
    )
    run = rollout(jax.random.key(0), maze, RandomPolicy(maze), num_episodes=6).trajectory
    filter = ExactFilter(maze, condition_on_termination=knows)
    beliefs = run_filter(jax.random.key(0), filter, run)
    for episode, steps in enumerate(run.lengths.tolist()):
        truth = enumerate_posterior(
            np.asarray(maze.initial_distribution()),
            transition,
            [likelihood[o] for o in run.observations[episode, : steps + 1].tolist()],
            run.actions[episode, :steps].tolist(),
            terminal=np.asarray(maze.terminal_states()) if knows else None,
            ended=bool(run.terminated[episode]),
        )
        assert truth is not None
        np.testing.assert_allclose(beliefs.probabilities[episode, steps], truth, atol=1e-5)


def test_knowing_that_the_episode_goes_on_empties_the_terminal_states():
    """The reading notes' figure: λ = 0.3, Up at the junction, Junction seen again: 92 % beyond it, or none."""
    maze = TMaze(1, 0.3)
    key = jax.random.key(0)
    for knows, expected in ((False, 0.92), (True, 0.0)):
        filter = ExactFilter(maze, condition_on_termination=knows)

        @jax.jit
        def at_junction(key, filter=filter):
            belief = filter.update(key, filter.init(key, 0), 0, 3)
            belief = eqx.tree_at(lambda b: b.probabilities, belief, jax.nn.one_hot(2, maze.num_states))
            return filter.update(key, belief, 1, 3)

        beyond = at_junction(key).probabilities @ maze.terminal_states()
        assert beyond == pytest.approx(expected, abs=0.005)


def test_deterministic_t_maze_beliefs_are_diracs_on_the_true_state():
    maze = TMaze(6)
    run = rollout(jax.random.key(0), maze, RandomPolicy(maze), num_episodes=20).trajectory
    beliefs = run_filter(jax.random.key(0), ExactFilter(maze), run).probabilities
    np.testing.assert_array_equal(beliefs, jax.nn.one_hot(run.states, maze.num_states))


def test_a_belief_stays_normalised_over_a_long_episode():
    maze = TMaze(30, 0.5, horizon=2000)
    run = rollout(jax.random.key(1), maze, RandomPolicy(maze), num_episodes=4).trajectory
    beliefs = run_filter(jax.random.key(0), ExactFilter(maze), run).probabilities
    np.testing.assert_allclose(beliefs.sum(-1), 1, atol=1e-5)


def test_tigers_belief_after_hearing_twice_is_bayes_rule():
    tiger = classic("tiger")
    filter = ExactFilter(tiger)
    belief = filter.init(jax.random.key(0), -1)
    np.testing.assert_allclose(belief.probabilities, [0.5, 0.5])
    for _ in range(2):
        belief = filter.update(jax.random.key(0), belief, 0, 0)
    np.testing.assert_allclose(belief.probabilities[0], 0.85**2 / (0.85**2 + 0.15**2), rtol=1e-5)


def test_a_continuous_pomdp_is_refused():
    with pytest.raises(ValueError, match="needs a POMDP with finitely many states, but got 'MountainHike'"):
        ExactFilter(MountainHike())


def test_an_episode_that_starts_at_its_end_is_believed_to_have_ended():
    pomdp = TabularPOMDP(
        initial=np.array([0.5, 0.5]),
        transition=np.array([[[0.5, 0.5], [0.0, 1.0]]]),
        reward=np.array([[1.0, 0.0]]),
        observation=np.ones((2, 1)),
        discount=0.9,
        horizon=3,
    )
    filter = ExactFilter(pomdp)
    run = rollout(jax.random.key(0), pomdp, RandomPolicy(pomdp), num_episodes=20, observer=filter)
    over = np.asarray(run.trajectory.lengths) == 0
    assert over.any()
    assert not over.all()
    ended = np.asarray(run.trajectory.terminated)
    np.testing.assert_allclose(run.observer.probabilities[:, 1], ended)
    assert not run.observer.impossible.any()
    later = run_filter(jax.random.key(0), filter, run.trajectory).probabilities[:, 0, 1]
    np.testing.assert_allclose(later, over)
