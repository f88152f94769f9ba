"""The statements of a `.pomdp` file: `T`, `O` and `R`, each for one cell, one row or one matrix."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from beliefscope.pomdp.file_format.names import Names
from beliefscope.pomdp.file_format.preamble import MAX_PROBABILITY, Preamble
from beliefscope.pomdp.file_format.scanner import Scanner, either
from beliefscope.pomdp.file_format.statements import ANY, MAX_CELLS, Statements

MAX_REWARD = 1e38  # what still fits into single precision


class Body(NamedTuple):
    """The statements about T, O and R, and whether one of the latter tells observations apart."""

    moves: Statements
    sights: Statements
    rewards: Statements
    reward_depends_on_observation: bool


def read_body(scanner: Scanner, preamble: Preamble) -> Body:
    """Everything from the first statement to the end of the file."""
    actions, states, observations = preamble.actions, preamble.states, preamble.observations
    axes: dict[str, tuple[Names, ...]] = {
        "T": (actions, states, states),
        "O": (actions, states, observations),
        "R": (actions, states, states, observations),
    }
    tables = {letter: Statements(tuple(names.count for names in axes[letter])) for letter in axes}
    depends = False
    while scanner.word:
        if scanner.word not in tables:
            raise scanner.unexpected("'T', 'O', 'R' or the end of the file")
        letter = scanner.take()
        indices = _read_indices(scanner, axes[letter], at_least=2 if letter == "R" else 1)
        if letter == "R":
            depends |= _read_reward(scanner, tables["R"], indices, sign=-1 if preamble.rewards_are_costs else 1)
        else:
            _read_probabilities(scanner, tables[letter], indices, reset=preamble.initial if letter == "T" else None)
    return Body(tables["T"], tables["O"], tables["R"], depends)


def _read_indices(scanner: Scanner, axes: Sequence[Names], *, at_least: int) -> tuple[int, ...]:
    """As many indices as the statement names, `ANY` for a wildcard."""
    indices: list[int] = []
    while len(indices) < len(axes) and (len(indices) < at_least or scanner.word == ":"):
        scanner.expect(":")
        indices.append(_read_index(scanner, axes[len(indices)]))
    return tuple(indices)


def _read_index(scanner: Scanner, names: Names) -> int:
    index = ANY if scanner.word == "*" else names.find(scanner.word)
    if index is None:
        article = "a" if names.kind == "state" else "an"
        expected = f"{article} {names.kind} name, an index below {names.count} or '*'"
        raise scanner.unexpected(expected, near=names.names or ())
    scanner.take()
    return index


def _read_probabilities(
    scanner: Scanner, table: Statements, indices: tuple[int, ...], *, reset: Float64[np.ndarray, " states"] | None
) -> None:
    """What follows the indices of `T` or `O`; `reset` is p0 for `T`, None for `O`."""
    open_sizes = table.sizes[len(indices) :]
    if not open_sizes:
        table.set(indices, scanner.number(low=0.0, high=MAX_PROBABILITY))
        return
    special = None if reset is None else "identity" if len(open_sizes) == 2 else "reset"
    if scanner.accept("uniform"):
        table.set(indices, 1 / open_sizes[-1])
    elif special == "identity" and scanner.accept("identity"):
        states = open_sizes[0]
        _set_block(scanner, table, indices, np.arange(states) * (states + 1), np.ones(states))
    elif reset is not None and special == "reset" and scanner.accept("reset"):
        places = np.flatnonzero(reset)
        _set_block(scanner, table, indices, places, reset[places])
    else:
        words = ["uniform"] if special is None else ["uniform", special]
        values = _read_values(scanner, open_sizes, words, low=0.0, high=MAX_PROBABILITY)
        places = np.flatnonzero(values)
        _set_block(scanner, table, indices, places, values[places])


def _read_reward(scanner: Scanner, table: Statements, indices: tuple[int, ...], *, sign: int) -> bool:
    """What follows the indices of `R`; does it tell observations apart?"""
    open_sizes = table.sizes[len(indices) :]
    if not open_sizes:
        table.set(indices, 0.0 + sign * scanner.number(low=-MAX_REWARD, high=MAX_REWARD))  # 0.0: no negative zeros
        return indices[-1] != ANY
    values = 0.0 + sign * _read_values(scanner, open_sizes, [], low=-MAX_REWARD, high=MAX_REWARD)
    rows = values.reshape(-1, open_sizes[-1])
    if (rows == rows[:, :1]).all():
        table.set(indices, 0.0)
        for target, value in enumerate(rows[:, 0].tolist()):
            table.set((*indices, target) if len(open_sizes) == 2 else indices, value)
        return False
    places = np.flatnonzero(values)
    _set_block(scanner, table, indices, places, values[places])
    return True


def _read_values(
    scanner: Scanner, sizes: tuple[int, ...], words: list[str], *, low: float, high: float
) -> Float64[np.ndarray, " values"]:
    """A row or a matrix, flat; `words` are what could have stood there instead."""
    count = int(np.prod(sizes))
    expected = either(f"{count} numbers", *map(repr, words))
    return scanner.check(scanner.numbers(), count=count, low=low, high=high, expected=expected, near=words)


def _set_block(
    scanner: Scanner, table: Statements, indices: tuple[int, ...], places: np.ndarray, values: np.ndarray
) -> None:
    if len(table) + len(places) > MAX_CELLS:
        raise scanner.complaint(f"expected at most {MAX_CELLS} non-zero entries of T, O or R, but found more")
    table.set_block(indices, places, values)
