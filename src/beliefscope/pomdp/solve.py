"""Dynamic programming on the fully observed problem, and from it the most that any agent can expect to earn."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from beliefscope.errors import is_whole, require
from beliefscope.pomdp.interface import POMDP
from beliefscope.pomdp.irrelevant import Irrelevant
from beliefscope.pomdp.t_maze import TREASURE, TMaze
from beliefscope.pomdp.tabular import TabularPOMDP

_CHANGE = 1e-10  # of a value that has converged, at most


class Values(NamedTuple):
    """Optimal values when the state is observed."""

    state: np.ndarray  # V [S]
    action: np.ndarray  # Q [S, A]


class MaximalReturn(NamedTuple):
    """The maximal expected return, or a bound that no policy exceeds."""

    value: float
    exact: bool


def value_iteration(pomdp: TabularPOMDP, *, steps: int | None = None) -> Values:
    """V and Q with `steps` actions left, or, without `steps`, for ever: until no value changes any more."""
    require(
        isinstance(pomdp, TabularPOMDP),
        rule="value iteration needs a TabularPOMDP",
        received=type(pomdp).__name__,
        advice="use the tabular() of a T-Maze",
    )
    require(
        steps is None or (is_whole(steps) and steps >= 0),
        rule="the number of steps is a whole number of at least 0",
        received=steps,
        advice="pass the number of actions left, or nothing",
    )
    require(
        steps is not None or pomdp.discount < 1,
        rule="values of an endless episode need a discount below 1",
        received=pomdp.discount,
        advice="pass steps=… for values with that many actions left",
    )
    moves = _transition_matrix(pomdp)
    gain = moves.multiply(_reward_matrix(pomdp, moves)).sum(axis=1)
    values, done = np.zeros(pomdp.num_states), 0
    actions = np.zeros((pomdp.num_states, pomdp.num_actions))
    while steps is None or done < steps:
        actions = (gain + pomdp.discount * (moves @ values)).reshape(pomdp.num_actions, pomdp.num_states).T
        previous, values, done = values, actions.max(axis=1), done + 1
        if steps is None and np.abs(values - previous).max() < _CHANGE:
            break
    return Values(values, actions)


def maximal_return(pomdp: POMDP) -> MaximalReturn | None:
    """The largest possible mean of Σ_{t<H} γ^t r_t: exact for T-Mazes, a bound for finite POMDPs, else None.

    In the T-Maze an agent can earn the value of the fully observed problem, because an optimal policy needs only what
    the agent knows. Going right is optimal in every corridor cell of both layouts. The agent recognises the junction
    when it is there. At the junction only the layout matters, which the first observation showed. Irrelevant variables
    change nothing. For other finite POMDPs the bound is QMDP's (Littman et al., 1995), as if the state were observed
    after the first action.
    """
    if isinstance(pomdp, Irrelevant):
        return maximal_return(pomdp.pomdp)
    if isinstance(pomdp, TMaze):
        if pomdp.stochasticity == 0:
            reachable = pomdp.horizon > pomdp.length
            return MaximalReturn(TREASURE * pomdp.discount**pomdp.length if reachable else 0.0, exact=True)
        return MaximalReturn(_qmdp(pomdp.tabular()), exact=True)
    if isinstance(pomdp, TabularPOMDP):
        return MaximalReturn(_qmdp(pomdp), exact=False)
    return None


def _qmdp(pomdp: TabularPOMDP) -> float:
    """E_{o_0} max_a Σ_s b_0(s) Q(s, a) with H actions left."""
    values = value_iteration(pomdp, steps=pomdp.horizon).action
    initial = np.asarray(pomdp.initial, dtype=np.float64)
    if not pomdp.observes_first:
        return float((initial @ values).max())
    seen = [np.asarray(pomdp.likelihood(o), np.float64) for o in range(pomdp.num_observations)]
    return float(sum(((initial * likelihood) @ values).max() for likelihood in seen))


def _transition_matrix(pomdp: TabularPOMDP) -> scipy.sparse.csr_array:
    """T as rows a · S + s, in float64."""
    start = np.asarray(pomdp.successors.start)
    entries = slice(0, start[-1])
    data = np.asarray(pomdp.successors.value[entries], dtype=np.float64)
    shape = (pomdp.num_actions * pomdp.num_states, pomdp.num_states)
    return scipy.sparse.csr_array((data, np.asarray(pomdp.successors.column[entries]), start), shape=shape)


def _reward_matrix(pomdp: TabularPOMDP, moves: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    data = np.asarray(pomdp.expected_reward, dtype=np.float64)
    return scipy.sparse.csr_array((data, moves.indices, moves.indptr), shape=moves.shape)
