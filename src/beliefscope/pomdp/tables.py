"""The arrays p0, T, R, O of a finite POMDP on the host: checked, in float64, sparse."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from beliefscope.errors import require
from beliefscope.pomdp.sparse import canonical

ROW_SUM_TOLERANCE = 1e-5


class Tables(NamedTuple):
    """p0 [S], T as rows a · S + s [A · S, S'], O as rows a · S + s' [A · S', O], or [S', O] for every action."""

    initial: np.ndarray
    moves: scipy.sparse.csr_array
    emissions: scipy.sparse.csr_array
    observation_follows_action: bool

    @property
    def num_actions(self) -> int:
        return self.moves.shape[0] // len(self.initial)

    def emitters(self) -> scipy.sparse.csr_array:
        """O with the observation first: rows a · O + o, columns s'."""
        states = len(self.initial)
        blocks = [self.emissions[first : first + states].T for first in range(0, self.emissions.shape[0], states)]
        return canonical(scipy.sparse.vstack(blocks, format="csr"))


class RewardFunction(NamedTuple):
    """R as a function of index arrays (state, action, next state, observation) instead of a table."""

    function: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    depends_on_observation: bool = False


class Rewards(NamedTuple):
    """R of each non-zero transition, in the order of `Tables.moves`, in the precision that JAX will hold it in."""

    expected: np.ndarray  # averaged over what is observed
    observed: scipy.sparse.csr_array | None  # row: transition, column: observation; None where it does not matter


def checked_tables(initial: Any, transition: Any, observation: Any) -> Tables:
    """Bring p0, T and O to their sparse form; shapes that disagree or rows that are no distributions are refused."""
    start = np.asarray(initial, dtype=np.float64)
    moves = [canonical(matrix) for matrix in transition]
    follows_action = not _is_matrix(observation)
    sights = list(map(canonical, observation)) if follows_action else [canonical(observation)]
    states = len(start)
    _check_shapes("T", moves, (states, states), "[actions, states, states]")
    _check_shapes(
        "O", sights, (states, sights[0].shape[1]), "[states, observations] or [actions, states, observations]"
    )
    require(
        not follows_action or len(sights) == len(moves),
        rule=f"O has one matrix for each of the {len(moves)} actions",
        received=len(sights),
        advice="give O the shape [actions, states, observations], or [states, observations] for all actions alike",
    )
    _check_rows("p0", canonical(start[None]))
    for action, matrix in enumerate(moves):
        _check_rows(f"T[{action}]", matrix)
    for action, matrix in enumerate(sights):
        _check_rows(f"O[{action}]" if follows_action else "O", matrix)
    stacked = (scipy.sparse.vstack(moves, format="csr"), scipy.sparse.vstack(sights, format="csr"))
    return Tables(start, *stacked, observation_follows_action=follows_action)


def evaluate_rewards(tables: Tables, reward: np.ndarray | RewardFunction) -> Rewards:
    """R at every non-zero transition and, where it depends on the observation, at every non-zero observation of it."""
    states = len(tables.initial)
    moves = tables.moves.tocoo()
    source, action, target = moves.row % states, moves.row // states, moves.col
    rule = reward if isinstance(reward, RewardFunction) else _table_rule(tables, np.asarray(reward))
    if not rule.depends_on_observation:
        return Rewards(_finite(rule.function(source, action, target, np.zeros_like(source))), None)
    sight_row = action * states + target if tables.observation_follows_action else target
    first, last = tables.emissions.indptr[sight_row], tables.emissions.indptr[sight_row + 1]
    transition = np.repeat(np.arange(len(source)), last - first)
    place = np.arange(len(transition)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    place = place + np.repeat(first, last - first)
    seen, weight = tables.emissions.indices[place], tables.emissions.data[place]
    values = _finite(rule.function(source[transition], action[transition], target[transition], seen))
    expected = np.bincount(transition, weights=weight * values, minlength=len(source))
    shape = (len(source), tables.emissions.shape[1])
    return Rewards(expected, canonical(scipy.sparse.csr_array((values, (transition, seen)), shape=shape)))


def terminal_states(tables: Tables, rewards: Rewards) -> np.ndarray:
    """Which states no action leaves and no action rewards."""
    states = len(tables.initial)
    moves = tables.moves.tocoo()
    stays = moves.row % states == moves.col
    certain = stays & (np.abs(moves.data - 1) <= ROW_SUM_TOLERANCE)
    rewarded = rewards.expected != 0 if rewards.observed is None else np.diff(rewards.observed.indptr) > 0
    harmless = np.bincount(moves.col[certain & ~rewarded], minlength=states)
    leaves = np.bincount((moves.row % states)[~stays], minlength=states)
    return (harmless == tables.num_actions) & (leaves == 0)


def _is_matrix(table: Any) -> bool:
    return scipy.sparse.issparse(table) or np.ndim(table[0]) == 1


def _table_rule(tables: Tables, reward: np.ndarray) -> RewardFunction:
    states, seen = len(tables.initial), tables.emissions.shape[1]
    full = (tables.num_actions, states, states, seen)
    require(
        reward.ndim in (2, 3, 4) and reward.shape == full[: reward.ndim],
        rule=f"R has the shape {full[:2]}, {full[:3]} or {full}",
        received=reward.shape,
        advice="order its axes action, state, next state, observation",
    )
    return RewardFunction(
        lambda s, a, n, o: reward[(a, s, n, o)[: reward.ndim]], depends_on_observation=reward.ndim == 4
    )


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values).astype(jnp.result_type(float)).astype(np.float64)
    bad = values[~np.isfinite(values)]
    require(bad.size == 0, rule="rewards are finite", received=bad[:1].tolist(), advice="mend R")
    return values


def _check_shapes(name: str, matrices: Sequence[scipy.sparse.csr_array], shape: tuple[int, int], axes: str) -> None:
    wrong = [matrix.shape for matrix in matrices if matrix.shape != shape]
    require(
        len(matrices) > 0 and not wrong,
        rule=f"{name} has the axes {axes}, so each matrix has the shape {shape}",
        received=wrong[0] if wrong else "no matrix",
        advice="check it against p0's length",
    )


def _check_rows(name: str, matrix: scipy.sparse.csr_array) -> None:
    """Every row is a distribution: its entries are not negative and sum to 1."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    negative = np.flatnonzero(~(matrix.data >= 0))
    if negative.size:
        _refuse_row(name, int(rows[negative[0]]), f"the entry {matrix.data[negative[0]]:g}")
    sums = np.bincount(rows, weights=matrix.data, minlength=matrix.shape[0])
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= ROW_SUM_TOLERANCE))
    if wrong.size:
        _refuse_row(name, int(wrong[0]), f"the sum {sums[wrong[0]]:g}")


def _refuse_row(name: str, row: int, found: str) -> None:
    label = name if name == "p0" else f"{name}[{row}]"
    raise ValueError(f"{label} holds probabilities that sum to 1, but got {found}; mend that row.")
