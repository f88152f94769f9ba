"""Wildcards and overriding against an interpreter that loops over every cell of every statement."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.file_format import PomdpFileError
from beliefscope.pomdp.file_format.body import read_body
from beliefscope.pomdp.file_format.preamble import read_preamble
from beliefscope.pomdp.file_format.reader import parse_tables
from beliefscope.pomdp.file_format.scanner import Scanner
from beliefscope.pomdp.file_format.table import Table

ACTIONS, STATES, OBSERVATIONS = 2, 3, 2
START = [0.5, 0.0, 0.5]
SIZES = {
    "T": (ACTIONS, STATES, STATES),
    "O": (ACTIONS, STATES, OBSERVATIONS),
    "R": (ACTIONS, STATES, STATES, OBSERVATIONS),
}
HEAD = "discount: 1 states: 3 actions: 2 observations: 2 start: 0.5 0 0.5\n"


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
    scanner = Scanner(HEAD + "".join(render(*statement) for statement in program), "text")
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
    text = HEAD + "".join(render(*statement) for statement in program)
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
