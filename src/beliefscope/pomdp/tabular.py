"""Finite POMDPs given as arrays p0, T, R, O, kept sparse.

The arrays may be dense or `scipy.sparse`; only the non-zero probabilities are stored. Observations may depend on the
action (O of shape [A, S', O], as in `.pomdp` files: nothing is observed before the first action) or not (O of shape
[S, O], as in the paper: o_0 is observed too), and rewards on the state reached and on what is observed there.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from beliefscope.errors import require
from beliefscope.pomdp.eager import check_action, checked_discount, checked_horizon
from beliefscope.pomdp.interface import NO_OBSERVATION, POMDP, Action
from beliefscope.pomdp.sparse import SparseRows
from beliefscope.pomdp.tables import (
    ROW_SUM_TOLERANCE,
    RewardFunction,
    checked_tables,
    evaluate_rewards,
    terminal_states,
)

Matrix = np.ndarray | scipy.sparse.sparray


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
        tables = checked_tables(initial, transition, observation)
        self.num_states, self.num_actions = len(tables.initial), tables.num_actions
        self.num_observations = tables.emissions.shape[1]
        self.observes_first = not tables.observation_follows_action
        self.discount, self.horizon = checked_discount(discount), checked_horizon(horizon)
        self.state_names = _checked_names("state", state_names, self.num_states)
        self.action_names = _checked_names("action", action_names, self.num_actions)
        self.observation_names = _checked_names("observation", observation_names, self.num_observations)
        self.exploration = jnp.asarray(np.cumsum(_checked_exploration(exploration, self.num_actions)))

        rewards = evaluate_rewards(tables, reward)
        self.initial = jnp.asarray(tables.initial)
        self.successors = SparseRows(tables.moves, rows_at_once=self.num_states)
        self.emissions = SparseRows(tables.emissions)
        self.emitters = SparseRows(tables.emitters())
        self.expected_reward = jnp.asarray(rewards.expected)
        self.observed_reward = None if rewards.observed is None else SparseRows(rewards.observed)
        self.terminal = jnp.asarray(terminal_states(tables, rewards))

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
        """Where O's row or column stands: every action has its own unless O does not depend on the action."""
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
