"""The particle filter against the exact filter, in its two orders, and its resampling against another's."""

import blackjax.smc.resampling as oracle
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.belief import ExactFilter, ParticleFilter, filter_of_paper, multinomial, systematic
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
        weights = filter._weigh(spread, 0, jnp.array([-0.5]), jnp.asarray(False), terminal=False).weights
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


# Resampling: unbiased, faithful to zero weights, and equal to an implementation from elsewhere.
SCHEMES = {"multinomial": multinomial, "systematic": systematic}


def counts(scheme, weights, draws):
    keys = jax.random.split(jax.random.key(0), draws)
    ancestors = jax.jit(jax.vmap(scheme, (0, None)))(keys, jnp.asarray(weights, jnp.float32))
    return np.asarray(jax.vmap(lambda chosen: jnp.bincount(chosen, length=len(weights)))(ancestors))


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("size", [2, 7, 32, 33, 100])
def test_each_particle_is_drawn_as_often_as_its_weight_says(name, size):
    weights = np.random.default_rng(size).dirichlet(np.full(size, 0.3))
    drawn = counts(SCHEMES[name], weights, 4000)
    noise = np.sqrt(size * weights * (1 - weights) / 4000)
    np.testing.assert_allclose(drawn.mean(0), size * weights, atol=5 * noise.max() + 1e-3)
    assert (drawn.sum(1) == size).all()


def test_systematic_counts_are_rounded_up_or_down():
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    drawn = counts(systematic, weights, 500)
    assert (drawn >= np.floor(50 * weights - 1e-4)).all()
    assert (drawn <= np.ceil(50 * weights + 1e-4)).all()


def test_systematic_spreads_less_than_multinomial():
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    spread = {name: counts(scheme, weights, 2000).var(0).sum() for name, scheme in SCHEMES.items()}
    assert spread["systematic"] < 0.5 * spread["multinomial"]
    truth = (50 * weights * (1 - weights)).sum()
    assert spread["multinomial"] == pytest.approx(truth, rel=0.05)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 64), min_size=40, max_size=40).filter(any), st.integers(0, 1000))
def test_systematic_draws_what_blackjax_draws(grains, seed):
    """With weights of few binary digits both compute the same levels without rounding, up to ties."""
    grains = np.array(grains) / sum(grains)
    weights = jnp.asarray(np.round(grains * 2**12) / 2**12, jnp.float32)
    weights = weights.at[jnp.argmax(weights)].add(1 - weights.sum())
    key = jax.random.key(seed)
    np.testing.assert_array_equal(systematic(key, weights), oracle.systematic(key, weights, 40))


@pytest.mark.parametrize("name", SCHEMES)
def test_a_particle_of_weight_zero_is_never_drawn(name):
    """Blocks of zeros between weights whose plain running sum in single precision is not monotonic."""
    weights = np.random.default_rng(1).random(1000) ** 8
    weights[np.random.default_rng(2).random(1000) < 0.5] = 0
    drawn = counts(SCHEMES[name], weights / weights.sum(), 2000)
    assert drawn[:, weights == 0].sum() == 0
