"""Reads a `.pomdp` file into a `TabularPOMDP`; whatever the file holds, the only error is a `PomdpFileError`.

A file has two parts. The preamble gives discount, values, states, actions, observations and start, in any order. The
body holds statements `T`, `O` and `R`, each for one cell, one row or one matrix.
"""

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float64

from beliefscope.errors import require
from beliefscope.pomdp.pomdp_file.scan import (
    ANY,
    MAX_CELLS,
    RESERVED,
    Names,
    PomdpFileError,
    Scanner,
    Statements,
    Table,
    either,
    is_name,
    make_names,
)
from beliefscope.pomdp.tabular import ROW_SUM_TOLERANCE, RewardFunction, TabularPOMDP

MAX_BYTES = 1 << 30
# A single probability may exceed 1 by as much as a row's sum may.
MAX_PROBABILITY = 1 + ROW_SUM_TOLERANCE
MAX_COUNTS = {"states": 1_000_000, "actions": 10_000, "observations": 1_000_000}
_REQUIRED = ("discount", "states", "actions", "observations")
_ENTRIES = (*_REQUIRED, "values", "start")
MAX_REWARD = 1e38  # what still fits into single precision
_HORIZONS = {"tiger": 50, "crying-baby": 50, "cheese-maze": 100}
CLASSICS = tuple(_HORIZONS)
HORIZON = 100  # of a .pomdp file where none is given: the format has none


class Preamble(NamedTuple):
    """What a file says before its first statement."""

    discount: float
    rewards_are_costs: bool
    states: Names
    actions: Names
    observations: Names
    initial: Float64[np.ndarray, " states"]


class Body(NamedTuple):
    """The statements about T, O and R, and whether a reward depends on the observation."""

    moves: Statements
    sights: Statements
    rewards: Statements
    reward_depends_on_observation: bool


class FileTables(NamedTuple):
    """What a file says, as arrays on the host."""

    preamble: Preamble
    moves: scipy.sparse.csr_array  # row a · S + s: T(· | s, a)
    sights: scipy.sparse.csr_array  # row a · S + s': O(· | s', a)
    rewards: Table  # over action, state, next state, observation
    reward_depends_on_observation: bool


def read_pomdp(path: str | os.PathLike[str], *, horizon: int) -> TabularPOMDP:
    """The POMDP that a file describes; episodes are cut after `horizon` actions, which the format does not state."""
    return parse_pomdp(_read_text(Path(path)), horizon=horizon, name=Path(path).name)


def parse_pomdp(text: str, *, horizon: int, name: str = "<text>") -> TabularPOMDP:
    """The POMDP that a text describes; `name` is what errors call it."""
    preamble, moves, sights, rewards, depends = parse_tables(text, name=name)
    states = preamble.states.count
    firsts = range(0, preamble.actions.count * states, states)
    rule = RewardFunction(lambda s, a, n, o: rewards.at((a, s, n, o)), depends_on_observation=depends)
    try:
        return TabularPOMDP(
            initial=preamble.initial,
            transition=[moves[first : first + states] for first in firsts],
            reward=rule,
            observation=[sights[first : first + states] for first in firsts],
            discount=preamble.discount,
            horizon=horizon,
            state_names=preamble.states.names,
            action_names=preamble.actions.names,
            observation_names=preamble.observations.names,
        )
    except ValueError as error:
        raise PomdpFileError(f"{name}: {error}") from error


def parse_tables(text: str, *, name: str = "<text>") -> FileTables:
    """The checked tables that a text describes, before any of them becomes a JAX array."""
    scanner = Scanner(text, name)
    preamble = read_preamble(scanner)
    body = read_body(scanner, preamble)
    rows = (preamble.actions, preamble.states)
    moves = _distributions(f"{name}: T", body.moves, rows)
    sights = _distributions(f"{name}: O", body.sights, rows)
    if body.reward_depends_on_observation:
        _check_pairs(name, moves, sights, preamble.states.count)
    return FileTables(preamble, moves, sights, Table(body.rewards), body.reward_depends_on_observation)


def classic(name: str, *, horizon: int | None = None) -> TabularPOMDP:
    """One of `CLASSICS`, with a horizon that suits it unless another is given."""
    require(
        name in CLASSICS,
        rule="a classic POMDP is chosen by its name",
        received=name,
        advice=f"use {either(*map(repr, CLASSICS))}",
    )
    return parse_pomdp(
        classic_text(name), horizon=_HORIZONS[name] if horizon is None else horizon, name=f"{name}.pomdp"
    )


def classic_text(name: str) -> str:
    """The file of one of `CLASSICS`."""
    return resources.files("beliefscope.pomdp").joinpath("files", f"{name}.pomdp").read_text(encoding="utf-8")


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            raise PomdpFileError(f"{path}: expected a .pomdp file, but there is no such file")
        if path.stat().st_size > MAX_BYTES:
            raise PomdpFileError(f"{path}: expected at most {MAX_BYTES} bytes, but found {path.stat().st_size}")
        data = path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise PomdpFileError(f"{path}: expected a readable file, but got {error.strerror!r}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PomdpFileError(f"{path.name}, line {line}: expected UTF-8 text, but found other bytes") from error


def _distributions(label: str, statements: Statements, row_axes: tuple[Names, Names]) -> scipy.sparse.csr_array:
    """The statements as a sparse matrix, all of whose rows sum to 1."""
    table = Table(statements)
    if table.count_candidates() > MAX_CELLS:
        raise PomdpFileError(f"{label} has more than {MAX_CELLS} non-zero entries, which is more than is supported")
    actions, states = row_axes
    rows, columns = actions.count * states.count, statements.sizes[-1]
    keys, values = table.nonzero()
    row_of_cell = keys // columns
    sums = np.bincount(row_of_cell, weights=values, minlength=rows)
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= ROW_SUM_TOLERANCE))
    if wrong.size:
        action, state = divmod(int(wrong[0]), states.count)
        row = f"{label} : {actions.label(action)} : {states.label(state)}"
        raise PomdpFileError(f"{row} sums to {sums[wrong[0]]:.9g}, but expected 1")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row_of_cell, minlength=rows))])
    return scipy.sparse.csr_array((values, keys % columns, starts), shape=(rows, columns))


def _check_pairs(name: str, moves: scipy.sparse.csr_array, sights: scipy.sparse.csr_array, states: int) -> None:
    """Refuse rewards that would be kept for too many pairs of a transition and an observation."""
    cells = moves.tocoo()
    pairs = int(np.diff(sights.indptr)[cells.row // states * states + cells.col].sum())
    if pairs > MAX_CELLS:
        what = "pairs of a transition and an observation, on all of which its rewards depend"
        raise PomdpFileError(f"{name}: expected at most {MAX_CELLS} {what}, but found {pairs}")


def read_preamble(scanner: Scanner) -> Preamble:
    """Everything up to the first `T`, `O` or `R`."""
    found: dict[str, Any] = {}
    while scanner.word not in ("T", "O", "R", ""):
        if scanner.word in found:
            raise scanner.unexpected(f"{scanner.word!r} only once")
        keyword = scanner.expect(*_ENTRIES)
        found[keyword] = _read_entry(scanner, keyword, found)
    missing = [keyword for keyword in _REQUIRED if keyword not in found]
    if missing:
        raise scanner.unexpected(f"{missing[0]!r} in the preamble, before all statements")
    states, actions, observations = found["states"], found["actions"], found["observations"]
    _check_size(scanner, states=states.count, actions=actions.count, observations=observations.count)
    return Preamble(
        discount=found["discount"],
        rewards_are_costs=found.get("values") == "cost",
        states=states,
        actions=actions,
        observations=observations,
        initial=found.get("start", np.full(states.count, 1 / states.count)),
    )


def _read_entry(scanner: Scanner, keyword: str, found: dict[str, Any]) -> Any:
    if keyword == "start":
        return _read_start(scanner, found.get("states"))
    scanner.expect(":")
    if keyword == "discount":
        return scanner.number(low=0.0, high=1.0)
    if keyword == "values":
        return scanner.expect("reward", "cost")
    return _read_names(scanner, keyword)


def _read_names(scanner: Scanner, keyword: str) -> Names:
    kind, most = keyword.removesuffix("s"), MAX_COUNTS[keyword]
    word = scanner.word
    if word.isascii() and word.isdigit():
        if len(word) > 9 or not 1 <= int(word) <= most:
            raise scanner.unexpected(f"a number of {keyword} from 1 to {most}")
        scanner.take()
        return make_names(kind, int(word), None)
    names: dict[str, int] = {}
    while is_name(scanner.word):
        if scanner.word in names:
            raise scanner.unexpected(f"distinct names of {keyword}")
        names[scanner.take()] = len(names)
    if not names or not _at_keyword(scanner):
        raise scanner.unexpected(f"the number of {keyword} or their names (a letter, then letters, digits, '_' or '-')")
    if len(names) > most:
        raise scanner.complaint(f"expected at most {most} {keyword}, but found {len(names)}")
    return Names(kind, len(names), tuple(names), names)


def _read_start(scanner: Scanner, states: Names | None) -> Float64[np.ndarray, " states"]:
    if states is None:
        raise scanner.complaint("expected 'states' before 'start'")
    how = scanner.take() if scanner.word in ("include", "exclude") else None
    scanner.expect(":")
    if how is not None:
        return _spread_evenly(_read_chosen(scanner, states) ^ (how == "exclude"), scanner)
    if scanner.accept("uniform"):
        return np.full(states.count, 1 / states.count)
    if scanner.word in states.index:
        return np.eye(1, states.count, states.index[scanner.take()])[0]
    index = states.find(scanner.word)
    numbers = scanner.numbers()
    if index is not None and states.count > 1 and len(numbers.values) == 1:
        return np.eye(1, states.count, index)[0]
    expected = f"{states.count} probabilities, a state or 'uniform'"
    near = ("uniform", *(states.names or ()))
    row = scanner.check(numbers, count=states.count, low=0.0, high=MAX_PROBABILITY, expected=expected, near=near)
    if not abs(row.sum() - 1) <= ROW_SUM_TOLERANCE:
        raise scanner.complaint(f"start sums to {row.sum():.9g}, but expected 1", numbers.start)
    return row


def _read_chosen(scanner: Scanner, states: Names) -> Bool[np.ndarray, " states"]:
    chosen = np.zeros(states.count, bool)
    while (index := states.find(scanner.word)) is not None:
        chosen[index] = True
        scanner.take()
    if not chosen.any() or not _at_keyword(scanner):
        raise scanner.unexpected(f"a state's name or an index below {states.count}", near=states.names or ())
    return chosen


def _spread_evenly(chosen: Bool[np.ndarray, " states"], scanner: Scanner) -> Float64[np.ndarray, " states"]:
    if not chosen.any():
        raise scanner.complaint("expected at least one state to start from, but found all of them excluded")
    return chosen / chosen.sum()


def _at_keyword(scanner: Scanner) -> bool:
    """Does a list of names end here?"""
    return scanner.word in RESERVED or scanner.word == ""


def _check_size(scanner: Scanner, *, states: int, actions: int, observations: int) -> None:
    """Refuse what would not fit into memory (one entry a row) or into 64-bit keys."""
    rows = max(actions * states, actions * observations)
    cells = actions * states * states * observations
    if rows > MAX_CELLS or cells >= 1 << 62:
        counts = f"{states} states, {actions} actions and {observations} observations"
        raise scanner.complaint(f"expected a POMDP of at most {MAX_CELLS} table rows, but found {counts}")


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
    """What follows the indices of `R`; returns whether it depends on the observation."""
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
