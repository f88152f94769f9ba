"""Dynamic programming against closed forms and against policies that are simply played."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from beliefscope.pomdp import (
    Irrelevant,
    MountainHike,
    TabularPOMDP,
    TMaze,
    classic,
    discounted_return,
    maximal_return,
    rollout,
    value_iteration,
)


class KnowingPolicy:
    """Right in the corridor; at the junction towards the treasure that the first observation announced."""

    def init_memory(self):
        return jnp.asarray(-1)

    def act(self, key, memory, previous_action, observation):
        layout = jnp.where(memory < 0, observation, memory)
        return layout, jnp.where(observation == 3, jnp.where(layout == 0, 1, 3), 0)


jax.tree_util.register_static(KnowingPolicy)


@pytest.mark.parametrize(("length", "expected"), [(50, 1.4567), (100, 0.5305), (5, 4 * 0.98**5), (1, 3.92)])
def test_the_treasure_is_worth_its_discounted_distance(length, expected):
    assert maximal_return(TMaze(length)) == (pytest.approx(expected, abs=5e-5), True)


@pytest.mark.parametrize("length", [1, 4, 20])
def test_dynamic_programming_gives_the_closed_form_without_noise(length):
    table = TMaze(length).tabular()
    best = maximal_return(table)
    assert best is not None
    assert best.value == pytest.approx(4 * 0.98**length, rel=1e-6)
    assert not best.exact


def test_a_horizon_too_short_for_the_treasure_earns_nothing():
    assert maximal_return(TMaze(5, horizon=5)) == (0.0, True)
    assert maximal_return(TMaze(5, horizon=6)) == (pytest.approx(4 * 0.98**5), True)
    assert maximal_return(TMaze(5, horizon=5).tabular()) == (pytest.approx(0.0), False)


@pytest.mark.parametrize(("length", "stochasticity"), [(1, 0.3), (3, 0.3), (3, 0.9), (6, 0.5)])
def test_with_noise_a_policy_that_sees_only_observations_earns_the_maximum(length, stochasticity):
    maze = TMaze(length, stochasticity)
    run = rollout(jax.random.key(0), maze, KnowingPolicy(), num_episodes=40_000).trajectory
    returns = np.asarray(discounted_return(run.rewards, maze.discount))
    best = maximal_return(maze)
    assert best is not None
    assert best.exact
    assert returns.mean() == pytest.approx(best.value, abs=5 * float(returns.std()) / 200)


def test_irrelevant_variables_change_nothing_and_continuous_pomdps_have_no_line():
    assert maximal_return(Irrelevant(TMaze(4), 3)) == maximal_return(TMaze(4))
    assert maximal_return(MountainHike()) is None


def test_values_solve_the_linear_program():
    rng = np.random.default_rng(0)
    transition, reward = rng.dirichlet(np.ones(5), (3, 5)), rng.normal(size=(3, 5))
    pomdp = TabularPOMDP(
        initial=np.full(5, 0.2),
        transition=transition,
        reward=reward,
        observation=np.eye(5),
        discount=0.9,
        horizon=9,
    )
    # min Σ V(s) subject to V(s) ≥ R(s, a) + γ Σ T V for every s and a.
    constraints = (0.9 * transition - np.eye(5)).reshape(-1, 5)
    solution = linprog(np.ones(5), A_ub=constraints, b_ub=-reward.reshape(-1), bounds=(None, None))
    values = value_iteration(pomdp)
    assert solution.x is not None
    np.testing.assert_allclose(values.state, solution.x, atol=1e-5)
    np.testing.assert_allclose(values.action.max(1), values.state)
    assert value_iteration(pomdp, steps=0).state.tolist() == [0] * 5
    np.testing.assert_allclose(value_iteration(pomdp, steps=1).state, reward.max(0), atol=1e-6)


def test_qmdp_bounds_tigers_known_optimum():
    """Cassandra's optimal value of Tiger's uniform belief is 19.37 for γ = 0.95; QMDP sees the tiger after one step."""
    best = maximal_return(classic("tiger", horizon=1000))
    assert best is not None
    assert best.value >= 19.37
    # By hand: act (listening is best: −1), then open the right door for 10 for ever.
    assert best.value == pytest.approx(-1 + 0.95 * 10 / 0.05, rel=1e-6)


def test_an_endless_sum_needs_a_discount():
    pomdp = TabularPOMDP(
        initial=np.ones(1),
        transition=np.ones((1, 1, 1)),
        reward=np.ones((1, 1)),
        observation=np.ones((1, 1)),
        discount=1.0,
        horizon=4,
    )
    with pytest.raises(ValueError, match="values of an endless episode need a discount below 1, but got"):
        value_iteration(pomdp)
    assert value_iteration(pomdp, steps=4).state.tolist() == [4.0]
