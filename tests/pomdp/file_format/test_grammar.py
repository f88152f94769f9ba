"""Every form of the grammar against arrays written by hand."""

import numpy as np
import pytest

from beliefscope.pomdp.file_format import parse_pomdp
from beliefscope.pomdp.file_format.scanner import Scanner

HEAD = """
discount: 0.9
values: reward
states: left right
actions: stay swap
observations: dark light noise
"""
MOVES = "T: stay identity\nT: swap\n0 1\n1 0\n"
SIGHTS = "O: * uniform\n"
BODY = MOVES + SIGHTS


def test_names_and_counts_reach_the_pomdp():
    named = parse_pomdp(HEAD + BODY, horizon=7)
    assert named.state_names == ("left", "right")
    assert named.action_names == ("stay", "swap")
    assert named.observation_names == ("dark", "light", "noise")
    assert (named.discount, named.horizon) == (0.9, 7)
    assert not named.observes_first
    counted = parse_pomdp("states: 2 actions: 2 observations: 3 discount: .5 T: * identity O: * uniform", horizon=1)
    assert counted.state_names is counted.action_names is counted.observation_names is None
    assert (counted.num_states, counted.num_actions, counted.num_observations) == (2, 2, 3)


def test_the_preamble_may_come_in_any_order(dense):
    text = "observations: 3 start: 1 0 values: reward actions: 2 discount: 0.25 "
    with pytest.raises(ValueError, match="before 'start'"):
        dense(text + "states: 2" + SIGHTS)
    text = "observations: 3 values: reward actions: 2 discount: 0.25 states: 2 start: 1 0 "
    found = dense(text + "T: * identity " + SIGHTS)
    assert found.discount == 0.25
    np.testing.assert_array_equal(found.start, [1, 0])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", [1 / 3, 1 / 3, 1 / 3]),
        ("start: uniform", [1 / 3, 1 / 3, 1 / 3]),
        ("start: 0.25\n0.25 # in two lines\n.5", [0.25, 0.25, 0.5]),
        ("start: b", [0, 1, 0]),
        ("start: 2", [0, 0, 1]),
        ("start:0 1 0", [0, 1, 0]),
        ("start include: a 2", [0.5, 0, 0.5]),
        ("start include: b", [0, 1, 0]),
        ("start exclude : c", [0.5, 0.5, 0]),
        ("start exclude: 0 b", [0, 0, 1]),
    ],
)
def test_each_form_of_start(dense, start, expected):
    text = f"discount: 1 states: a b c actions: 1 observations: 1 {start} T: * identity O: * uniform"
    np.testing.assert_array_equal(dense(text).start, expected)


def test_a_single_number_is_a_probability_where_there_is_one_state(dense):
    found = dense("discount: 1 states: 1 actions: 1 observations: 1 start: 1 T: * identity O: * uniform")
    np.testing.assert_array_equal(found.start, [1])


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ("T: * : * : 0 1", [[[1, 0], [1, 0]], [[1, 0], [1, 0]]]),
        ("T: stay : left : right 1 T: stay : right : 1 1.0 T: 1 identity", [[[0, 1], [0, 1]], [[1, 0], [0, 1]]]),
        (
            "T: stay : left 0.25 0.75 T: stay : right uniform T: swap : * 1 0",
            [[[0.25, 0.75], [0.5, 0.5]], [[1, 0]] * 2],
        ),
        ("T: * : * reset", [[[0.125, 0.875]] * 2] * 2),
        ("T: * uniform", [[[0.5, 0.5]] * 2] * 2),
        ("T: * identity", [[[1, 0], [0, 1]]] * 2),
        ("T: * 0.5 0.5\n0 1", [[[0.5, 0.5], [0, 1]]] * 2),
        ("T: * identity T: swap : left : left 0 T: swap : left : right 1", [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]),
        ("T: * uniform T: * : left 0 1", [[[0, 1], [0.5, 0.5]]] * 2),
    ],
)
def test_each_form_of_a_transition(dense, moves, expected):
    np.testing.assert_array_equal(dense(HEAD + "start: 0.125 0.875\n" + moves + "\n" + SIGHTS).T, expected)


@pytest.mark.parametrize(
    ("sights", "expected"),
    [
        ("O: * : * : noise 1", [[[0, 0, 1]] * 2] * 2),
        ("O: * : left : dark 1 O: * : right : 1 1", [[[1, 0, 0], [0, 1, 0]]] * 2),
        (
            "O: stay : left 0.5 0 0.5 O: stay : right uniform O: swap : * 1 0 0",
            [[[0.5, 0, 0.5], [1 / 3] * 3], [[1, 0, 0]] * 2],
        ),
        ("O: stay uniform O: swap 0 0 1\n0.5 0.25 0.25", [[[1 / 3] * 3] * 2, [[0, 0, 1], [0.5, 0.25, 0.25]]]),
    ],
)
def test_each_form_of_an_observation(dense, sights, expected):
    np.testing.assert_array_equal(dense(HEAD + MOVES + sights).O, expected)


def test_each_form_of_a_reward(dense):
    rewards = """
    R: * : * : * : * -1
    R: stay : left : * : dark 5
    R: swap : left : right 1 2 3
    R: swap : right
      1 1 2
      3 5 8
    """
    found = dense(HEAD + BODY + rewards)
    expected = np.full((2, 2, 2, 3), -1.0)
    expected[0, 0, :, 0] = 5
    expected[1, 0, 1] = [1, 2, 3]
    expected[1, 1] = [[1, 1, 2], [3, 5, 8]]
    np.testing.assert_array_equal(found.R, expected)
    assert found.reward_depends_on_observation


@pytest.mark.parametrize(
    "reward", ["R: stay : left : right : * 2", "R: stay : left : right 2 2 2", "R: stay : left 0 0 0 2 2 2"]
)
def test_a_reward_alike_for_all_observations_does_not_depend_on_them(dense, reward):
    found = dense(HEAD + BODY + reward)
    expected = np.zeros((2, 2, 2, 3))
    expected[0, 0, 1] = 2
    np.testing.assert_array_equal(found.R, expected)
    assert not found.reward_depends_on_observation


def test_costs_are_negative_rewards(dense):
    text = HEAD.replace("reward", "cost") + BODY + "R: stay : * : * : * 3\nR: swap : left : left 0 1 -2"
    found = dense(text)
    np.testing.assert_array_equal(found.R[0], np.full((2, 2, 3), -3.0))
    np.testing.assert_array_equal(found.R[1, 0, 0], [0, -1, 2])
    assert not np.signbit(found.R[found.R == 0]).any()


def test_the_pomdp_rewards_by_observation():
    pomdp = parse_pomdp(HEAD + BODY + "R: stay : left : left 3 6 0", horizon=1)
    assert float(pomdp.reward(0, 0, 0, 1)) == 6
    np.testing.assert_allclose(float(pomdp.reward(0, 0, 0)), 3, rtol=1e-6)


def test_absorbing_states_without_reward_are_terminal():
    pomdp = parse_pomdp(HEAD + "T: * : * : right 1 O: * uniform R: * : left : * : * 1", horizon=1)
    np.testing.assert_array_equal(pomdp.terminal, [False, True])


def test_comments_blanks_and_line_breaks_may_stand_anywhere(dense):
    plain = dense(HEAD + BODY + "R: stay : left : * : * 2")
    text = HEAD.replace("states: left", "states # the two\r\n:\tleft\r\n") + BODY + "R:stay:left:*:*2# end"
    for one, other in zip(dense(text.replace("T: ", "T\n:\f")), plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_way_to_write_a_number():
    written = "1 1. .5 0.5 1e-3 1.0E+2 +1 -1.5 - 1.5 +\n.25 00 1e-999"
    expected = [1, 1, 0.5, 0.5, 1e-3, 100, 1, -1.5, -1.5, 0.25, 0, 0]
    np.testing.assert_array_equal(Scanner(written, "text").numbers().values, expected)
    scanner = Scanner(written, "text")
    assert [scanner.number(low=-1e9, high=1e9) for _ in expected] == expected
