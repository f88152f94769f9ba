"""Finite POMDPs from arrays, against the dense arrays themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from beliefscope.pomdp import NO_OBSERVATION, RewardFunction, TabularPOMDP

S, A, Z = 4, 3, 2  # states, actions, observations


def dense_tables(seed=0):
    """Random p0, T [A, S, S'], O [A, S', O], R [A, S, S', O] with some zeros; state 3 is terminal."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(S), (A, S)) * (rng.random((A, S, S)) < 0.7)
    transition[..., 0] += 1 - transition.sum(-1)
    transition[:, 3] = np.eye(S)[3]
    reward = rng.normal(size=(A, S, S, Z))
    reward[:, 3] = 0
    return rng.dirichlet(np.ones(S)), transition, rng.dirichlet(np.ones(Z), (A, S)), reward


def build(**changes):
    initial, transition, observation, reward = dense_tables()
    parts = {"initial": initial, "transition": transition, "observation": observation, "reward": reward}
    return TabularPOMDP(**{**parts, "discount": 0.9, "horizon": 5, **changes})


def every_reward(pomdp, with_observation):
    a, s, n, o = (grid.ravel() for grid in np.meshgrid(*map(np.arange, (A, S, S, Z)), indexing="ij"))
    look_up = (
        (lambda s, a, n, o: pomdp.reward(s, a, n, o)) if with_observation else lambda s, a, n, o: pomdp.reward(s, a, n)
    )
    return np.asarray(jax.jit(jax.vmap(look_up))(s, a, n, o)).reshape(A, S, S, Z)


def test_predict_and_likelihood_are_matrix_products():
    _, transition, observation, _ = dense_tables()
    pomdp = build()
    belief = np.random.default_rng(1).dirichlet(np.ones(S)).astype(np.float32)
    for action in range(A):
        predicted = eqx.filter_jit(pomdp.predict)(jnp.asarray(belief), action)
        np.testing.assert_allclose(predicted, belief @ transition[action], atol=1e-6)
        for seen in range(Z):
            likelihood = eqx.filter_jit(pomdp.likelihood)(seen, action)
            np.testing.assert_allclose(likelihood, observation[action][:, seen], atol=1e-6)


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_rewards_of_every_shape_are_looked_up(axes):
    _, transition, observation, reward = dense_tables()
    reward = reward[(slice(None),) * axes + (0,) * (4 - axes)]
    full = np.broadcast_to(reward.reshape(reward.shape + (1,) * (4 - axes)), (A, S, S, Z))
    possible = (transition > 0)[..., None] & (observation > 0)[:, None]
    pomdp = build(reward=reward)
    np.testing.assert_allclose(np.where(possible, every_reward(pomdp, True), 0), np.where(possible, full, 0), atol=1e-6)
    mean = np.einsum("asno,ano->asn", full, observation)
    expected = np.where(transition > 0, mean, 0)
    np.testing.assert_allclose(every_reward(pomdp, False)[..., 0], expected, atol=1e-6)


def test_a_reward_function_equals_its_table():
    table = dense_tables()[3]
    rule = RewardFunction(lambda s, a, n, o: table[a, s, n, o], depends_on_observation=True)
    np.testing.assert_array_equal(every_reward(build(reward=rule), True), every_reward(build(), True))


def test_samples_follow_the_tables():
    initial, transition, observation, _ = dense_tables()
    pomdp = build()
    keys = jax.random.split(jax.random.key(0), 40_000)
    drawn = np.bincount(jax.jit(jax.vmap(pomdp.sample_initial))(keys), minlength=S) / len(keys)
    np.testing.assert_allclose(drawn, initial, atol=0.015)
    moved = jax.jit(jax.vmap(lambda key: pomdp.sample_transition(key, 1, 2)))(keys)
    np.testing.assert_allclose(np.bincount(moved, minlength=S) / len(keys), transition[2, 1], atol=0.015)
    seen = jax.jit(jax.vmap(lambda key: pomdp.sample_observation(key, 1, 2)))(keys)
    np.testing.assert_allclose(np.bincount(seen, minlength=Z) / len(keys), observation[2, 1], atol=0.015)


def test_an_observation_of_the_state_alone_is_seen_first_and_one_of_the_action_is_not():
    late, first = build(), build(observation=dense_tables()[2][0])
    assert (late.observes_first, first.observes_first) == (False, True)
    assert late.sample_observation(jax.random.key(0), 0) == NO_OBSERVATION
    np.testing.assert_array_equal(late.likelihood(NO_OBSERVATION), np.ones(S))
    np.testing.assert_allclose(first.likelihood(1), dense_tables()[2][0][:, 1], atol=1e-6)
    np.testing.assert_array_equal(first.likelihood(1), first.likelihood(1, 2))


def test_log_observation_is_the_logarithm_of_the_table():
    observation = dense_tables()[2]
    logs = jax.jit(jax.vmap(build().log_observation, (None, 0, None)))(1, jnp.arange(S), 2)
    np.testing.assert_allclose(logs, np.log(observation[2][:, 1]), atol=1e-5)


def test_sparse_and_dense_tables_give_the_same_pomdp_and_are_left_untouched():
    _, transition, observation, _ = dense_tables()
    given = [scipy.sparse.csr_array(matrix) for matrix in transition]
    given[0].data[0] = 0.0  # an explicit zero, which a careless reader would squeeze out in place
    given[0][0, 0] += 1 - given[0][[0]].sum()
    before = [matrix.copy() for matrix in given]
    sparse = build(transition=given, observation=[scipy.sparse.csr_array(matrix) for matrix in observation])
    dense = build(transition=np.array([matrix.toarray() for matrix in before]))
    for one, other in zip(jax.tree.leaves(sparse), jax.tree.leaves(dense), strict=True):
        np.testing.assert_array_equal(one, other)
    for matrix, original in zip(given, before, strict=True):
        np.testing.assert_array_equal(matrix.indices, original.indices)
        np.testing.assert_array_equal(matrix.data, original.data)


def test_only_states_that_no_action_leaves_or_rewards_are_terminal():
    assert build().terminal.tolist() == [False, False, False, True]
    reward = dense_tables()[3]
    reward[1, 3, 3, 0] = 1e-3
    assert not build(reward=reward).terminal.any()
    transition = dense_tables()[1]
    transition[2, 3] = np.eye(S)[1]
    assert not build(transition=transition).terminal.any()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"initial": np.array([0.5, 0.5, 0.5, 0.0])}, "p0 holds probabilities that sum to 1, but got the sum 1.5"),
        ({"transition": np.ones((A, S, S))}, r"T\[0\]\[0\] holds probabilities that sum to 1, but got the sum 4"),
        ({"transition": np.ones((A, S, S + 1))}, r"T has the axes \[actions, states, states\]"),
        ({"observation": np.full((A, S, Z), -0.5)}, r"O\[0\]\[0\] holds .* but got the entry -0.5"),
        ({"observation": np.full((1, S, Z), 0.5)}, "O has one matrix for each of the 3 actions, but got 1"),
        ({"observation": np.full((S + 1, Z), 0.5)}, "O has the axes"),
        ({"reward": np.zeros((S, A))}, r"R has the shape \(3, 4\)"),
        ({"reward": np.full((A, S), np.nan)}, "rewards are finite, but got"),
        ({"initial": np.array([np.nan, 0.5, 0.5, 0.0])}, "p0 holds probabilities"),
        ({"state_names": ("a", "b")}, "one distinct name for each state"),
        ({"action_names": ("a", "a", "b")}, "one distinct name for each action"),
        ({"exploration": (0.5, 0.6, 0.1)}, "an exploration policy gives 3 probabilities that sum to 1, but got"),
        ({"exploration": (0.5, 0.5)}, "an exploration policy gives 3 probabilities"),
        ({"discount": -0.1}, "a discount"),
        ({"horizon": 0}, "a horizon"),
    ],
)
def test_bad_tables_get_one_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        build(**changes)


def test_double_precision_is_kept_throughout():
    with jax.enable_x64(True):
        pomdp = build()
        first = pomdp.sample_observation(jax.random.key(0), 0)
        later = pomdp.sample_observation(jax.random.key(0), 0, 1)
        assert first.dtype == later.dtype
        assert pomdp.initial.dtype == np.float64
        np.testing.assert_allclose(
            pomdp.predict(pomdp.initial, 1), dense_tables()[0] @ dense_tables()[1][1], atol=1e-12
        )
