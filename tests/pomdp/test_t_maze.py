"""The T-Maze against its definition in the paper's appendix A, written out again with coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.pomdp import TMaze

ACTIONS = [(1, 0), (0, 1), (-1, 0), (0, -1)]
OBSERVATIONS = ["Up", "Down", "Corridor", "Junction"]


class PaperMaze:
    """S = M × C, f, T, R, O as printed."""

    def __init__(self, length, stochasticity):
        self.length, self.stochasticity = length, stochasticity
        self.cells = [(x, 0) for x in range(length + 1)] + [(length, 1), (length, -1)]
        self.states = [(layout, cell) for cell in self.cells for layout in ("Up", "Down")]

    def terminal(self, state):
        return state[1] in ((self.length, 1), (self.length, -1))

    def f(self, state, action):
        layout, (x, y) = state
        moved = (x + action[0], y + action[1])
        return (layout, moved) if not self.terminal(state) and moved in self.cells else state

    def transition(self, state, action):
        """T(· | s, a) as a dictionary."""
        chances = {}
        if self.terminal(state):
            return {state: 1.0}
        for other in ACTIONS:
            chance = (1 - self.stochasticity) * (other == action) + self.stochasticity / 4
            chances[self.f(state, other)] = chances.get(self.f(state, other), 0) + chance
        return chances

    def reward(self, state, following):
        if self.terminal(state):
            return 0.0
        if not self.terminal(following):
            return -0.1 if state == following else 0.0
        layout, (_, side) = following
        return 4.0 if (layout == "Up") == (side == 1) else -0.1

    def observation(self, state):
        layout, cell = state
        if cell == (0, 0):
            return layout
        return "Corridor" if cell in [(x, 0) for x in range(1, self.length)] else "Junction"


def predictions(pomdp):
    """T(s' | s, a) as [s, a, s'], from `predict`."""
    over_actions = jax.vmap(pomdp.predict, (None, 0))
    eye = jnp.eye(pomdp.num_states)
    return np.asarray(jax.jit(jax.vmap(over_actions, (0, None)))(eye, jnp.arange(pomdp.num_actions)))


@pytest.mark.parametrize(("length", "stochasticity"), [(1, 0.0), (1, 0.3), (2, 0.0), (4, 0.3), (5, 1.0)])
def test_every_transition_reward_and_observation_is_the_papers(length, stochasticity):
    paper, maze = PaperMaze(length, stochasticity), TMaze(length, stochasticity, horizon=10)
    assert maze.num_states == len(paper.states)
    pairs = [(s, a, n) for s in range(maze.num_states) for a in range(4) for n in range(maze.num_states)]
    states, actions, following = jnp.array(pairs).T
    predicted = predictions(maze)
    rewards = jax.jit(jax.vmap(maze.reward))(states, actions, following)
    for (s, a, n), probability, reward in zip(pairs, predicted.ravel().tolist(), rewards.tolist(), strict=True):
        expected = paper.transition(paper.states[s], ACTIONS[a]).get(paper.states[n], 0)
        assert probability == pytest.approx(expected, abs=1e-6)
        assert reward == pytest.approx(paper.reward(paper.states[s], paper.states[n]))
    everyone = jnp.arange(maze.num_states)
    seen = jax.jit(jax.vmap(maze.sample_observation, (None, 0)))(jax.random.key(0), everyone)
    assert [OBSERVATIONS[o] for o in seen.tolist()] == [paper.observation(state) for state in paper.states]
    assert maze.terminal_states().tolist() == [paper.terminal(state) for state in paper.states]
    assert maze.initial_distribution().tolist() == [0.5 * (state[1] == (0, 0)) for state in paper.states]


@pytest.mark.parametrize(
    ("length", "stochasticity"), [(1, 0.0), (1, 0.3), (2, 1.0), (7, 0.0), (7, 0.1), (7, 0.3), (7, 0.77), (7, 1.0)]
)
def test_tabular_form_agrees_and_its_rows_sum_to_one(length, stochasticity):
    maze = TMaze(length, stochasticity, horizon=9)
    table = maze.tabular()
    starts = np.asarray(table.successors.start)
    sums = np.add.reduceat(np.asarray(table.successors.value)[: starts[-1]], starts[:-1])
    np.testing.assert_allclose(sums, 1, atol=1e-6)
    actions = jnp.arange(4)
    predict = predictions(maze), predictions(table)
    np.testing.assert_allclose(predict[0], predict[1], atol=1e-6)
    likelihoods = [jax.jit(jax.vmap(p.likelihood))(actions) for p in (maze, table)]
    np.testing.assert_array_equal(*likelihoods)
    np.testing.assert_array_equal(maze.terminal_states(), table.terminal)
    np.testing.assert_array_equal(maze.initial_distribution(), table.initial)
    everyone = np.arange(maze.num_states)
    s, a, n = (grid.ravel() for grid in np.meshgrid(everyone, np.arange(4), everyone))
    possible = predict[0][s, a, n] > 0
    both = [np.where(possible, jax.jit(jax.vmap(p.reward))(s, a, n), 0) for p in (maze, table)]
    np.testing.assert_allclose(both[0], both[1], atol=1e-6)
    assert (maze.horizon, maze.discount) == (table.horizon, table.discount)


@pytest.mark.parametrize(
    ("length", "stochasticity", "horizon"),
    [(50, 0.0, 150), (100, 0.0, 300), (50, 0.3, 215), (1, 0.0, 3), (50, 0.8, 750), (50, 0.7, 500), (7, 0.5, 42)],
)
def test_horizon_is_the_papers_formula_without_rounding_errors(length, stochasticity, horizon):
    assert TMaze(length, stochasticity).horizon == horizon


def test_exploration_goes_right_half_of_the_time():
    keys = jax.random.split(jax.random.key(0), 60_000)
    counts = np.bincount(jax.jit(jax.vmap(TMaze(5).sample_exploration))(keys), minlength=4)
    np.testing.assert_allclose(counts / 60_000, [1 / 2, 1 / 6, 1 / 6, 1 / 6], atol=0.01)


def test_states_have_readable_names():
    maze = TMaze(2)
    assert [maze.state_name(s) for s in (0, 3, 4, 7, 8)] == ["up-0", "down-1", "up-junction", "down-above", "up-below"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"length": 0}, "a T-Maze's length is a whole number of at least 1 and at most 1000000, but got 0; the paper"),
        ({"length": -3}, "length is a whole number"),
        ({"length": 5, "stochasticity": 1.5}, r"λ lies in \[0, 1\], but got 1.5"),
        ({"length": 5, "stochasticity": -0.1}, r"λ lies in \[0, 1\], but got -0.1"),
        ({"length": 5, "stochasticity": float("nan")}, r"λ lies in \[0, 1\], but got nan"),
        ({"length": 5, "stochasticity": 1.0}, "needs an explicit horizon"),
        ({"length": 5, "horizon": 0}, "a horizon is a whole number of at least 1, but got 0"),
        ({"length": 5, "discount": 1.2}, r"a discount γ lies in \[0, 1\], but got 1.2"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        TMaze(**arguments)
