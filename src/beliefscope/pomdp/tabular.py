"""Finite POMDPs given as arrays p0, T, R, O, kept sparse.

The arrays may be dense or `scipy.sparse`; only the non-zero probabilities are stored. Observations may depend on the
action (O of shape [A, S', O], as in `.pomdp` files: nothing is observed before the first action) or not (O of shape
[S, O], as in the paper: o_0 is observed too), and rewards on the state reached and on what is observed there.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.pomdp.interface import NO_OBSERVATION, POMDP, Action, check_action, checked_discount, checked_horizon
from beliefscope.pomdp.sparse import SparseRows, canonical

ROW_SUM_TOLERANCE = 1e-5
Matrix = np.ndarray | scipy.sparse.sparray


class RewardFunction(NamedTuple):
    """R as a function of index arrays (state, action, next state, observation) instead of a table."""

    function: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    depends_on_observation: bool = False


class TabularPOMDP(POMDP):
    """A POMDP of S states, A actions and O observations, all integers.

    Takes p0 [S]; T [A, S, S'] or a sequence of A matrices; R [A, S], [A, S, S'], [A, S, S', O] or a `RewardFunction`;
    O [S', O] or [A, S', O] (or a sequence of A matrices). States that no action leaves and no action rewards are
    terminal. The reward of a transition of probability zero is taken as zero.
    """

    initial: Float[Array, " states"]
    successors: SparseRows  # row a · S + s: T(· | s, a)
    expected_reward: Float[Array, " transitions"]  # R of each entry of `successors`, averaged over what is observed
    observed_reward: SparseRows | None  # row e, column o: R of entry e when o is observed, where that matters
    emissions: SparseRows  # row a · S + s' (row s' if the action does not matter): O(· | s', a)
    emitters: SparseRows  # row a · O + o (row o if the action does not matter): O(o | ·, a)
    terminal: Bool[Array, " states"]
    exploration: Float[Array, " actions"]  # running sum of the exploration policy's probabilities
    num_states: int = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    num_observations: int = eqx.field(static=True)
    observes_first: bool = eqx.field(static=True)  # is o_0 seen? Exactly where O does not depend on the action
    discount: float = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    state_names: tuple[str, ...] | None = eqx.field(static=True)
    action_names: tuple[str, ...] | None = eqx.field(static=True)
    observation_names: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        *,
        initial: np.ndarray,
        transition: np.ndarray | Sequence[Matrix],
        reward: np.ndarray | RewardFunction,
        observation: Matrix | Sequence[Matrix],
        discount: float,
        horizon: int,
        state_names: tuple[str, ...] | None = None,
        action_names: tuple[str, ...] | None = None,
        observation_names: tuple[str, ...] | None = None,
        exploration: Sequence[float] | None = None,
    ) -> None:
        tables = _checked_tables(initial, transition, observation)
        self.num_states, self.num_actions = len(tables.initial), tables.num_actions
        self.num_observations = tables.emissions.shape[1]
        self.observes_first = not tables.observation_follows_action
        self.discount, self.horizon = checked_discount(discount), checked_horizon(horizon)
        self.state_names = _checked_names("state", state_names, self.num_states)
        self.action_names = _checked_names("action", action_names, self.num_actions)
        self.observation_names = _checked_names("observation", observation_names, self.num_observations)
        self.exploration = jnp.asarray(np.cumsum(_checked_exploration(exploration, self.num_actions)))

        rewards = _evaluate_rewards(tables, reward)
        self.initial = jnp.asarray(tables.initial)
        self.successors = SparseRows(tables.moves, rows_at_once=self.num_states)
        self.emissions = SparseRows(tables.emissions)
        self.emitters = SparseRows(tables.emitters())
        self.expected_reward = jnp.asarray(rewards.expected)
        self.observed_reward = None if rewards.observed is None else SparseRows(rewards.observed)
        self.terminal = jnp.asarray(_find_terminal(tables, rewards))

    @property
    def observation_size(self) -> int:
        return self.num_observations

    def sample_initial(self, key: PRNGKeyArray) -> Int[Array, ""]:
        cumulative = jnp.cumsum(self.initial)
        return _first_above(cumulative, jax.random.uniform(key) * cumulative[-1])

    def sample_transition(self, key: PRNGKeyArray, state: Int[ArrayLike, ""], action: Action) -> Int[Array, ""]:
        check_action(action, self.num_actions)
        return self.successors.sample(key, self._move_row(state, action))

    def sample_observation(
        self, key: PRNGKeyArray, state: Int[ArrayLike, ""], action: Action | None = None
    ) -> Int[Array, ""]:
        if action is None and not self.observes_first:
            return jnp.asarray(NO_OBSERVATION, self.emissions.column.dtype)
        return self.emissions.sample(key, self._sight_row(state, action, self.num_states))

    def reward(
        self,
        state: Int[ArrayLike, ""],
        action: Action,
        next_state: Int[ArrayLike, ""],
        observation: Int[ArrayLike, ""] | None = None,
    ) -> Float[Array, ""]:
        entry, exists = self.successors.find(self._move_row(state, action), next_state)
        if observation is None or self.observed_reward is None:
            return jnp.where(exists, self.expected_reward[entry], 0)
        place, depends = self.observed_reward.find(entry, observation)
        return jnp.where(exists & depends, self.observed_reward.value[place], 0)

    def is_terminal(self, state: Int[ArrayLike, ""]) -> Bool[Array, ""]:
        return self.terminal[state]

    def sample_exploration(self, key: PRNGKeyArray) -> Int[Array, ""]:
        return _first_above(self.exploration, jax.random.uniform(key) * self.exploration[-1])

    def encode_observation(self, observation: Int[ArrayLike, ""]) -> Float[Array, " observations"]:
        """One-hot; all zeros when nothing was observed."""
        return jax.nn.one_hot(observation, self.num_observations)

    def state_features(self, state: Int[ArrayLike, ""]) -> Float[Array, " states"]:
        return jax.nn.one_hot(state, self.num_states)

    def log_observation(
        self, observation: Int[ArrayLike, ""], state: Int[ArrayLike, ""], action: Action | None = None
    ) -> Float[Array, ""]:
        if action is None and not self.observes_first:
            return jnp.zeros(())
        entry, exists = self.emissions.find(self._sight_row(state, action, self.num_states), observation)
        return jnp.where(exists, jnp.log(self.emissions.value[entry]), -jnp.inf)

    def initial_distribution(self) -> Float[Array, " states"]:
        return self.initial

    def predict(self, belief: Float[Array, " states"], action: Action) -> Float[Array, " states"]:
        flow = self.successors.block(action)
        return jnp.zeros_like(belief).at[flow.column].add(flow.value * belief[flow.row])

    def likelihood(self, observation: Int[ArrayLike, ""], action: Action | None = None) -> Float[Array, " states"]:
        if action is None and not self.observes_first:
            return jnp.ones(self.num_states)
        seen_index = jnp.asarray(observation)
        known = (seen_index >= 0) & (seen_index < self.num_observations)
        seen = self.emitters.block(self._sight_row(observation, action, self.num_observations))
        return jnp.zeros(self.num_states).at[seen.column].add(jnp.where(known, seen.value, 0))

    def terminal_states(self) -> Bool[Array, " states"]:
        return self.terminal

    def _move_row(self, state: Int[ArrayLike, ""], action: Action) -> Int[ArrayLike, ""]:
        return action * self.num_states + state

    def _sight_row(self, index: Int[ArrayLike, ""], action: Action | None, rows_per_action: int) -> Int[ArrayLike, ""]:
        """The index of O's row or column: every action has its own unless O does not depend on the action."""
        return index if self.observes_first or action is None else action * rows_per_action + index


def _first_above(cumulative: Float[Array, " n"], level: Float[Array, ""]) -> Int[Array, ""]:
    return jnp.minimum(jnp.searchsorted(cumulative, level, side="right"), len(cumulative) - 1)


def _checked_exploration(policy: Sequence[float] | None, actions: int) -> np.ndarray:
    chances = np.full(actions, 1 / actions) if policy is None else np.asarray(policy, dtype=np.float64)
    proper = bool((chances >= 0).all()) and bool(abs(chances.sum() - 1) <= ROW_SUM_TOLERANCE)
    require(
        chances.shape == (actions,) and proper,
        rule=f"an exploration policy gives {actions} probabilities that sum to 1",
        received=chances.tolist(),
        advice="give one probability for each action",
    )
    return chances


def _checked_names(what: str, names: tuple[str, ...] | None, count: int) -> tuple[str, ...] | None:
    require(
        names is None or len(names) == len(set(names)) == count,
        rule=f"a POMDP has one distinct name for each {what}",
        received=names,
        advice=f"pass {count} distinct names, or none",
    )
    return names


class _Tables(NamedTuple):
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


class _Rewards(NamedTuple):
    """R of each non-zero transition, in the order of `_Tables.moves`, in the precision that JAX will hold it in."""

    expected: np.ndarray  # averaged over what is observed
    observed: scipy.sparse.csr_array | None  # row: transition, column: observation; None where it does not matter


def _checked_tables(initial: Any, transition: Any, observation: Any) -> _Tables:
    """p0, T and O in their sparse form; shapes that disagree and rows that are not distributions are refused."""
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
    return _Tables(start, *stacked, observation_follows_action=follows_action)


def _evaluate_rewards(tables: _Tables, reward: np.ndarray | RewardFunction) -> _Rewards:
    """R at every non-zero transition and, if it depends on the observation, at every non-zero observation there."""
    states = len(tables.initial)
    moves = tables.moves.tocoo()
    source, action, target = moves.row % states, moves.row // states, moves.col
    rule = reward if isinstance(reward, RewardFunction) else _table_rule(tables, np.asarray(reward))
    if not rule.depends_on_observation:
        return _Rewards(_finite(rule.function(source, action, target, np.zeros_like(source))), None)
    # One entry for each pair of a transition and an observation that may follow it.
    emission_row = action * states + target if tables.observation_follows_action else target
    transition, place = _entries_of_rows(tables.emissions, emission_row)
    seen, chance = tables.emissions.indices[place], tables.emissions.data[place]
    values = _finite(rule.function(source[transition], action[transition], target[transition], seen))
    expected = np.bincount(transition, weights=chance * values, minlength=len(source))
    shape = (len(source), tables.emissions.shape[1])
    return _Rewards(expected, canonical(scipy.sparse.csr_array((values, (transition, seen)), shape=shape)))


def _entries_of_rows(matrix: scipy.sparse.csr_array, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All entries of some rows, which may repeat: for each its number among `rows` and its place in the matrix."""
    first = matrix.indptr[rows]
    counts = matrix.indptr[rows + 1] - first
    number = np.repeat(np.arange(len(rows)), counts)
    entries_before = np.cumsum(counts) - counts
    place_in_row = np.arange(len(number)) - entries_before[number]
    return number, first[number] + place_in_row


def _find_terminal(tables: _Tables, rewards: _Rewards) -> np.ndarray:
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


def _table_rule(tables: _Tables, reward: np.ndarray) -> RewardFunction:
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
    require(bad.size == 0, rule="rewards are finite", received=bad[:1].tolist(), advice="correct R")
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
    raise ValueError(f"{label} holds probabilities that sum to 1, but got {found}; correct that row.")
