"""Reads a `.pomdp` file into a `TabularPOMDP`; whatever the file holds, the only error is a `PomdpFileError`."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from beliefscope.pomdp.file_format.body import read_body
from beliefscope.pomdp.file_format.errors import PomdpFileError
from beliefscope.pomdp.file_format.names import Names
from beliefscope.pomdp.file_format.preamble import Preamble, read_preamble
from beliefscope.pomdp.file_format.scanner import Scanner
from beliefscope.pomdp.file_format.statements import MAX_CELLS, Statements
from beliefscope.pomdp.file_format.table import Table
from beliefscope.pomdp.tables import ROW_SUM_TOLERANCE, RewardFunction
from beliefscope.pomdp.tabular import TabularPOMDP

MAX_BYTES = 1 << 30


class FileTables(NamedTuple):
    """What a file says, as arrays on the host."""

    preamble: Preamble
    moves: scipy.sparse.csr_array  # row a · S + s: T(· | s, a)
    sights: scipy.sparse.csr_array  # row a · S + s': O(· | s', a)
    rewards: Table  # over action, state, next state, observation
    reward_depends_on_observation: bool


def read_pomdp(path: str | os.PathLike[str], *, horizon: int) -> TabularPOMDP:
    """The POMDP that a file describes; episodes are cut after `horizon` actions, of which the format says nothing."""
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
