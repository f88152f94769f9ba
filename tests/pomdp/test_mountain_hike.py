"""The Mountain Hike against its definition in the paper and the reading of its altitude."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from beliefscope.pomdp import HikeState, MountainHike, altitude

MOVES = [(0, 0.1), (-0.1, 0), (0, -0.1), (0.1, 0)]


def paper_altitude(point):
    crests = [((0, 0), (0.005, 1)), ((0, -0.8), (1, 0.01)), ((0, 0.8), (1, 0.01))]
    density = max(scipy.stats.multivariate_normal(mean, np.diag(cov)).pdf(point) for mean, cov in crests)
    return -np.exp(-density) + 0.2 * point[0] + 0.2 * point[1] - 0.02


def at(x, y, orientation=1):
    return HikeState(jnp.asarray(float(x)), jnp.asarray(float(y)), jnp.asarray(orientation))


def test_altitude_is_the_formula_and_always_negative():
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    ours = np.asarray(jax.jit(partial(altitude, xp=jnp))(jnp.asarray(x), jnp.asarray(y)))
    np.testing.assert_allclose(altitude(x, y), ours, atol=2e-6)
    expected = [paper_altitude(point) for point in zip(x.ravel(), y.ravel(), strict=True)]
    np.testing.assert_allclose(ours.ravel(), expected, atol=2e-6)
    assert ours.max() < 0


@pytest.mark.parametrize("action", range(4))
@pytest.mark.parametrize("orientation", range(4))
def test_moves_turn_with_the_orientation_by_the_printed_matrix(orientation, action):
    hike = MountainHike(varying=True, transition_std=1e-9)
    angle = np.pi / 2 * orientation
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ MOVES[action]
    moved = hike.sample_transition(jax.random.key(0), at(0.2, -0.3, orientation), action)
    np.testing.assert_allclose([moved.x, moved.y], np.add(turned, (0.2, -0.3)), atol=1e-6)
    assert moved.orientation == orientation


def test_translation_noise_is_gaussian_and_positions_are_clamped():
    hike = MountainHike()
    keys = jax.random.split(jax.random.key(0), 20_000)
    moved = jax.jit(jax.vmap(lambda key: hike.sample_transition(key, at(0, 0), 0)))(keys)
    assert scipy.stats.kstest(np.asarray(moved.x) + 0.1, "norm", (0, 0.05)).pvalue > 1e-4
    assert scipy.stats.kstest(np.asarray(moved.y), "norm", (0, 0.05)).pvalue > 1e-4
    edge = jax.jit(jax.vmap(lambda key: hike.sample_transition(key, at(-0.99, 1), 0)))(keys)
    assert edge.x.min() == -1
    assert edge.y.max() == 1
    assert 0.9 < np.mean(edge.x == -1) < 1


def test_observation_is_the_altitude_with_gaussian_noise_and_its_density():
    hike = MountainHike(observation_std=0.2)
    keys = jax.random.split(jax.random.key(0), 20_000)
    seen = jax.jit(jax.vmap(lambda key: hike.sample_observation(key, at(0.3, 0.1))))(keys)
    truth = scipy.stats.norm(paper_altitude((0.3, 0.1)), 0.2)
    assert scipy.stats.kstest(np.asarray(seen[:, 0]), "norm", (paper_altitude((0.3, 0.1)), 0.2)).pvalue > 1e-4
    assert hike.log_observation(jnp.array([-0.7]), at(0.3, 0.1)) == pytest.approx(truth.logpdf(-0.7), abs=1e-5)


def test_reward_is_the_altitude_reached_until_the_top():
    hike = MountainHike()
    assert hike.reward(at(0, 0), 0, at(0.1, 0.2)) == pytest.approx(paper_altitude((0.1, 0.2)), abs=1e-6)
    assert hike.reward(at(0.8, 0.8), 0, at(0.8, 0.8)) == 0


def test_the_top_is_terminal_within_its_radius_and_holds_who_reaches_it():
    hike = MountainHike()
    assert hike.is_terminal(at(0.8, 0.89))
    assert not hike.is_terminal(at(0.8, 0.91))
    assert hike.sample_transition(jax.random.key(0), at(0.8, 0.85), 1).x == jnp.asarray(0.8)


def test_starts_are_where_the_paper_says():
    keys = jax.random.split(jax.random.key(0), 4000)
    north = jax.vmap(MountainHike().sample_initial)(keys)
    assert set(zip(north.x.tolist(), north.y.tolist(), north.orientation.tolist(), strict=True)) == {
        (np.float32(-0.8), np.float32(-0.8), 1)
    }
    varying = jax.vmap(MountainHike(varying=True).sample_initial)(keys)
    np.testing.assert_allclose(np.bincount(varying.orientation) / 4000, 0.25, atol=0.04)
    assert (MountainHike().horizon, MountainHike(varying=True).horizon) == (80, 160)


def test_variant_code_has_a_larger_goal_that_does_not_hold_particles():
    text, code = (MountainHike.of_paper(variant, varying=True) for variant in ("text", "code"))
    assert (text.goal_radius, code.goal_radius) == (0.1, 0.2)
    assert code.is_terminal(at(0.8, 0.65))
    assert code.sample_transition(jax.random.key(0), at(0.8, 0.8), 1).x != jnp.asarray(0.8)
    assert text.state_features(at(0.1, 0.2, 3)).tolist() == pytest.approx([0.1, 0.2, 0, 0, 0, 1])
    assert code.state_features(at(0.1, 0.2, 3)).tolist() == pytest.approx([0.1, 0.2, 3])
    assert MountainHike.of_paper("code").state_features(at(0.1, 0.2)).tolist() == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"transition_std": 0.0}, "transition_std is a standard deviation above 0, but got 0.0"),
        ({"observation_std": -1.0}, "observation_std is a standard deviation above 0, but got -1.0"),
        ({"goal_radius": 0.0}, "radius is above 0 and at most 2"),
        ({"horizon": -1}, "a horizon is a whole number"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        MountainHike(**arguments)
