"""What holds for every filter."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from zoo import FILTERS

from beliefscope.belief import Health, run_filter
from beliefscope.pomdp import RandomPolicy, rollout

# One filter of each kind in the quick tests.
QUICK = {"exact", "exact, termination unknown", "exact, nothing seen first", "particles", "product"}
pytestmark = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FILTERS]
)


def whole(belief):
    return belief


@functools.cache
def play(name):
    """Three episodes with the filter riding along and all its beliefs kept."""
    pomdp, filter = FILTERS[name]
    return rollout(jax.random.key(5), pomdp, RandomPolicy(pomdp), num_episodes=3, observer=filter, keep=whole)


def health_of(filter, beliefs):
    """The health records of a filter, of each part where there are several."""
    return jax.tree.leaves(filter.health(beliefs), is_leaf=lambda node: isinstance(node, Health))


def test_beliefs_along_an_episode_are_finite_healthy_and_normalised(name):
    _, filter = FILTERS[name]
    beliefs = run_filter(jax.random.key(0), filter, play(name).trajectory)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(beliefs))
    for weights in (getattr(beliefs, "probabilities", None), getattr(beliefs, "weights", None)):
        if weights is not None:
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
            assert (weights >= 0).all()
    for health in health_of(filter, beliefs):
        assert not health.impossible.any()
        assert (health.effective_sample_size >= 0.999).all()


def test_features_are_vectors_or_sets_of_fixed_size(name):
    _, filter = FILTERS[name]
    beliefs = play(name).observer
    features = jax.vmap(filter.features)(jax.random.split(jax.random.key(0), 3), beliefs)
    for part in jax.tree.leaves(features):
        assert part.ndim in (2, 3)
        assert np.isfinite(part).all()


def test_a_filter_riding_along_ends_where_one_run_afterwards_does(name):
    """Exactly for closed-form filters; for particles, whose draws differ, in the mean of many."""
    _, filter = FILTERS[name]
    run = play(name)
    after = run_filter(jax.random.key(9), filter, run.trajectory)
    for riding, later in zip(jax.tree.leaves(run.kept), jax.tree.leaves(after), strict=True):
        assert riding.shape == later.shape
        if "particles" not in name:
            np.testing.assert_allclose(riding, later, atol=1e-5)


def test_single_beliefs_equal_batched_ones(name):
    _, filter = FILTERS[name]
    trajectory = play(name).trajectory
    alone = run_filter(jax.random.key(3), filter, jax.tree.map(lambda leaf: leaf[:1], trajectory))
    batch = run_filter(jax.random.key(3), filter, trajectory)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b[0], rtol=1e-4, atol=1e-5), alone, batch)


def test_an_impossible_observation_keeps_a_sane_belief_and_raises_the_flag_for_good(name):
    _, filter = FILTERS[name]
    trajectory = play(name).trajectory
    first, second = (jax.tree.map(lambda leaf, t=t: leaf[0, t], trajectory.observations) for t in (0, 1))
    absurd = jax.tree.map(
        lambda leaf: jnp.full_like(leaf, 99 if jnp.issubdtype(leaf.dtype, jnp.integer) else jnp.nan), second
    )

    @eqx.filter_jit
    def follow(key):
        before = filter.init(key, first)
        hit = filter.update(key, before, jnp.asarray(0), absurd)
        return hit, filter.update(key, hit, jnp.asarray(0), second)

    for belief in follow(jax.random.key(0)):
        assert all(not np.isnan(leaf).any() for leaf in jax.tree.leaves(belief))
        assert all(health.impossible for health in health_of(filter, belief))


def test_an_action_out_of_range_is_refused(name):
    pomdp, filter = FILTERS[name]
    first = jax.tree.map(lambda leaf: leaf[0, 0], play(name).trajectory.observations)
    belief = eqx.filter_jit(filter.init)(jax.random.key(0), first)
    with pytest.raises(ValueError, match="an action is an integer from 0 to"):
        filter.update(jax.random.key(0), belief, pomdp.num_actions, first)
