"""What the grammar of .pomdp files means: each statement, later ones over earlier ones, and the classics."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.pomdp_file import CLASSICS, PomdpFileError, classic, parse_pomdp
from beliefscope.pomdp.pomdp_file.read import classic_text, parse_tables, read_body, read_preamble
from beliefscope.pomdp.pomdp_file.scan import Scanner, Table

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


# Wildcards and overriding against an interpreter that loops over every cell of every statement.
ACTIONS, STATES, OBSERVATIONS = 2, 3, 2
START = [0.5, 0.0, 0.5]
SIZES = {
    "T": (ACTIONS, STATES, STATES),
    "O": (ACTIONS, STATES, OBSERVATIONS),
    "R": (ACTIONS, STATES, STATES, OBSERVATIONS),
}
UNNAMED_HEAD = "discount: 1 states: 3 actions: 2 observations: 2 start: 0.5 0 0.5\n"


@st.composite
def statements(draw):
    """(letter, indices with None as wildcard, word or numbers)."""
    letter = draw(st.sampled_from("TTOR"))
    sizes = SIZES[letter]
    named = draw(st.integers(2 if letter == "R" else 1, len(sizes)))
    indices = tuple(draw(st.none() | st.integers(0, size - 1)) for size in sizes[:named])
    rest = sizes[named:]
    words = [] if letter == "R" or not rest else ["uniform"]
    if letter == "T" and rest:
        words.append("identity" if len(rest) == 2 else "reset")
    values = st.sampled_from([0.0, 0.0, 0.5, 1.0] if letter != "R" else [0.0, 0.0, 1.5, -2.0])
    numbers = st.lists(values, min_size=int(np.prod(rest)), max_size=int(np.prod(rest)))
    return letter, indices, draw(st.sampled_from(words) | numbers if words else numbers)


def render(letter, indices, body):
    where = " : ".join("*" if index is None else str(index) for index in indices)
    return f"{letter}: {where} {body if isinstance(body, str) else ' '.join(map(str, body))}\n"


def interpret(program):
    """The dense tables, cell by cell."""
    tables = {letter: np.zeros(sizes) for letter, sizes in SIZES.items()}
    for letter, indices, body in program:
        sizes = SIZES[letter]
        for cell in product(*(range(size) for size in sizes)):
            if any(index is not None and index != place for index, place in zip(indices, cell, strict=False)):
                continue
            rest, rest_sizes = cell[len(indices) :], sizes[len(indices) :]
            if body == "uniform":
                value = 1 / sizes[-1]
            elif body == "identity":
                value = float(rest[0] == rest[1])
            elif body == "reset":
                value = START[rest[0]]
            else:
                value = body[int(np.ravel_multi_index(rest, rest_sizes)) if rest else 0]
            tables[letter][cell] = value
    return tables


@settings(max_examples=150, deadline=None)
@given(st.lists(statements(), max_size=8))
def test_later_statements_override_earlier_ones_cell_by_cell(program):
    scanner = Scanner(UNNAMED_HEAD + "".join(render(*statement) for statement in program), "text")
    body = read_body(scanner, read_preamble(scanner))
    for letter, found in zip("TOR", (body.moves, body.sights, body.rewards), strict=True):
        expected = interpret(program)[letter]
        table = Table(found)
        cells = tuple(np.indices(expected.shape).reshape(expected.ndim, -1))
        np.testing.assert_array_equal(table.at(cells), expected.ravel())
        keys, values = table.nonzero()
        np.testing.assert_array_equal(keys, np.flatnonzero(expected))
        np.testing.assert_array_equal(values, expected.ravel()[keys])
        assert table.count_candidates() >= len(keys)
    if not body.reward_depends_on_observation:
        assert (interpret(program)["R"] == interpret(program)["R"][..., :1]).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(statements(), max_size=4))
def test_a_file_is_accepted_exactly_when_all_rows_are_distributions(program):
    program = [("T", (None,), "identity"), ("O", (None, None), [1.0, 0.0]), *program]
    expected = interpret(program)
    text = UNNAMED_HEAD + "".join(render(*statement) for statement in program)
    if all(np.allclose(expected[letter].sum(-1), 1) for letter in "TO"):
        tables = parse_tables(text)
        np.testing.assert_array_equal(tables.moves.toarray().reshape(SIZES["T"]), expected["T"])
        np.testing.assert_array_equal(tables.sights.toarray().reshape(SIZES["O"]), expected["O"])
    else:
        try:
            parse_tables(text)
        except PomdpFileError as error:
            assert " sums to " in str(error)  # noqa: PT017
        else:
            raise AssertionError("a row that is no distribution was accepted")


# The shipped POMDPs against what their authors say of them.
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
