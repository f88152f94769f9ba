"""The particle filter against the exact filter, and in its two orders."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.belief import ExactFilter, ParticleFilter, filter_of_paper
from beliefscope.pomdp import HikeState, MountainHike, TabularPOMDP, Variant

STATES, STEPS = 5, 6


def noisy_pomdp():
    """Five states, the last of them terminal, seen through much noise."""
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(STATES), (2, STATES))
    transition[:, -1] = np.eye(STATES)[-1]
    return TabularPOMDP(
        initial=np.array([0.4, 0.3, 0.2, 0.1, 0.0]),
        transition=transition,
        reward=np.zeros((2, STATES)),
        observation=rng.dirichlet(np.full(3, 2.0), STATES),
        discount=0.9,
        horizon=STEPS,
    )


POMDP = noisy_pomdp()
HISTORY = jnp.array([0, 1, 1, 0, 1, 0]), jnp.array([0, 2, 1, 1, 0, 2, 1])


@eqx.filter_jit
def follow(key, filter):
    actions, seen = HISTORY

    def step(belief, now):
        time, action, observation = now
        return filter.update(jax.random.fold_in(key, time), belief, action, observation), None

    first = filter.init(jax.random.fold_in(key, STEPS), seen[0])
    return jax.lax.scan(step, first, (jnp.arange(STEPS), actions, seen[1:]))[0]


def error(filter, truth, repeats=300):
    """Root mean square error of the weighted histogram against the exact belief."""
    beliefs = eqx.filter_vmap(lambda key: follow(key, filter))(jax.random.split(jax.random.key(1), repeats))
    histograms = jax.vmap(lambda belief: jnp.zeros(STATES).at[belief.particles].add(belief.weights))(beliefs)
    return float(jnp.sqrt(jnp.mean((histograms - truth) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resampling", "last", "knows"),
    [("multinomial", False, False), ("multinomial", True, True), ("systematic", False, True)],
)
def test_error_falls_with_the_square_root_of_the_number_of_particles(resampling, last, knows):
    truth = follow(jax.random.key(0), ExactFilter(POMDP, condition_on_termination=knows)).probabilities
    assert (truth[-1] == 0) == knows
    sizes = [50, 400, 3200]
    options = {"resampling": resampling, "resample_last": last, "condition_on_termination": knows}
    found = [error(ParticleFilter(POMDP, num_particles=size, **options), truth) for size in sizes]
    assert np.polyfit(np.log(sizes), np.log(found), 1)[0] == pytest.approx(-0.5, abs=0.06)
    assert found[-1] < 2 * 0.5 / 3200**0.5  # independent draws of the belief itself would err by at most half of that


def test_features_are_an_unweighted_set_that_stands_for_the_belief():
    filter = ParticleFilter(POMDP, num_particles=4000)
    truth = follow(jax.random.key(0), ExactFilter(POMDP)).probabilities
    belief = follow(jax.random.key(2), filter)
    features = filter.features(jax.random.key(3), belief)
    assert features.shape == (4000, STATES)
    np.testing.assert_allclose(features.mean(0), truth, atol=0.04)


def test_order_text_leaves_weights_and_order_code_leaves_none():
    hike = MountainHike()
    seen = jnp.array([-0.9])

    def run(key, filter):
        return filter.update(key, filter.init(key, seen), 0, jnp.array([-0.4]))

    text, code = (
        eqx.filter_jit(run)(jax.random.key(0), filter_of_paper(hike, variant, num_particles=100))
        for variant in ("text", "code")
    )
    assert np.std(text.weights) > 1e-3
    np.testing.assert_allclose(code.weights, 0.01)
    assert len(np.unique(text.particles.y)) > 95  # moved after resampling: all different, but for the border
    assert len(np.unique(code.particles.y)) < 90  # resampled after moving: some twice
    assert text.effective_sample_size == pytest.approx(1 / np.sum(np.square(text.weights)), rel=1e-3)
    assert code.effective_sample_size < 99


def test_weights_are_the_normalised_likelihoods_of_the_particles():
    hike = MountainHike(varying=True)
    filter = ParticleFilter(hike, num_particles=50, condition_on_termination=False)
    seen = jnp.array([-0.8])
    belief = eqx.filter_jit(lambda key: filter.update(key, filter.init(key, seen), 1, seen))(jax.random.key(0))
    likelihood = np.exp(jax.vmap(hike.log_observation, (None, 0))(seen, belief.particles))
    np.testing.assert_allclose(belief.weights, likelihood / likelihood.sum(), rtol=1e-4)


def test_particles_in_the_goal_are_absorbed_in_the_text_and_walk_on_in_the_code():
    at_top = HikeState(jnp.full(10, 0.8), jnp.full(10, 0.8), jnp.full(10, 1))
    variants: tuple[tuple[Variant, bool], ...] = (("text", True), ("code", False))
    for variant, stay in variants:
        hike = MountainHike.of_paper(variant)
        filter = filter_of_paper(hike, variant, num_particles=10)
        belief = filter.init(jax.random.key(0), jnp.array([-0.5]))
        belief = eqx.tree_at(lambda b: b.particles, belief, at_top)
        moved = filter.update(jax.random.key(1), belief, 0, jnp.array([0.0])).particles
        assert (np.asarray(moved.x) == np.float32(0.8)).all() == stay


def test_knowing_that_the_episode_goes_on_gives_no_weight_to_the_goal():
    hike = MountainHike(goal_radius=1.0)
    spread = HikeState(jnp.linspace(-1, 1, 20), jnp.zeros(20), jnp.ones(20, int))
    inside = np.asarray(jax.vmap(hike.is_terminal)(spread))
    assert inside.any()
    assert not inside.all()
    for knows in (True, False):
        filter = ParticleFilter(hike, num_particles=20, condition_on_termination=knows)
        weights = filter._weigh(
            jax.random.key(0), spread, 0, jnp.array([-0.5]), jnp.asarray(False), terminal=False
        ).weights
        assert (np.asarray(weights)[inside].sum() == 0) == knows


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"num_particles": 0}, "the number of particles is a whole number from 1 to 100000, but got 0; the paper uses"),
        ({"num_particles": -5}, "the number of particles"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        ParticleFilter(MountainHike(), **arguments)
