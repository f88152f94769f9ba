"""The shipped POMDPs against what their authors say of them."""

from itertools import product

import numpy as np
import pytest

from beliefscope.pomdp.file_format import CLASSICS, classic
from beliefscope.pomdp.file_format.classics import classic_text


def posterior(found, *, belief, action, observation):
    weights = found.O[action][:, observation] * (belief @ found.T[action])
    return weights / weights.sum()


@pytest.mark.parametrize("name", CLASSICS)
def test_every_classic_loads_and_says_what_it_is(name):
    pomdp = classic(name)
    assert pomdp.horizon > 1
    assert classic(name, horizon=3).horizon == 3
    assert classic_text(name).startswith("# ")


def test_an_unknown_classic_is_refused():
    with pytest.raises(ValueError, match="but got 'lion'; use 'tiger', 'crying-baby' or 'cheese-maze'"):
        classic("lion")


def test_tiger_beliefs_follow_the_odds_of_what_is_heard(dense):
    found = dense(classic_text("tiger"))
    belief = np.array([0.5, 0.5])
    for heard in (0, 0):
        belief = posterior(found, belief=belief, action=0, observation=heard)
    np.testing.assert_allclose(belief[0], 0.85**2 / (0.85**2 + 0.15**2))
    np.testing.assert_allclose(posterior(found, belief=belief, action=1, observation=0), [0.5, 0.5])
    np.testing.assert_array_equal(found.R[:, :, 0, 0], [[-1, -1], [-100, 10], [10, -100]])
    assert found.discount == 0.95
    assert not found.reward_depends_on_observation


def test_a_baby_that_cries_after_being_ignored_is_probably_hungry(dense):
    found = dense(classic_text("crying-baby"))
    belief = posterior(found, belief=np.array([0.5, 0.5]), action=0, observation=1)
    np.testing.assert_allclose(belief, [0.0928, 0.9072], atol=5e-5)  # Kochenderfer's worked example
    belief = posterior(found, belief=belief, action=1, observation=0)
    np.testing.assert_allclose(belief, [1, 0])
    np.testing.assert_array_equal(found.R[:, :, 0, 0], [[0, -10], [-5, -15]])


def test_the_cheese_maze_is_the_maze_of_its_drawing(dense):
    found = dense(classic_text("cheese-maze"))
    drawing = {(0, 0): 0, (0, 1): 1, (0, 2): 2, (0, 3): 3, (0, 4): 4, (1, 0): 5, (1, 2): 6, (1, 4): 7}
    drawing |= {(2, 0): 8, (2, 4): 9, (2, 2): 10}
    steps = [(-1, 0), (1, 0), (0, 1), (0, -1)]
    walls: dict[int, frozenset[int]] = {}
    for (place, state), (action, step) in product(drawing.items(), enumerate(steps)):
        beyond = drawing.get((place[0] + step[0], place[1] + step[1]))
        walls[state] = walls.get(state, frozenset()) | (frozenset() if beyond is not None else {action})
        target = 10 if state == 10 else state if beyond is None else beyond
        np.testing.assert_array_equal(found.T[action, state], np.eye(11)[target])
        reward = float(target == 10 and state != 10)
        np.testing.assert_array_equal(found.R[action, state, target], np.full(7, reward))
    for one, other in product(range(10), repeat=2):
        alike = (found.O[:, one] == found.O[:, other]).all()
        assert alike == (walls[one] == walls[other])
    assert set(found.O[0].argmax(1)) == set(range(7))
    np.testing.assert_allclose(found.start, [0.1] * 10 + [0])
    np.testing.assert_array_equal(classic("cheese-maze").terminal, [False] * 10 + [True])
