"""The Kalman filter against the conditioning of one large Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.belief import KalmanFilter
from beliefscope.belief.exact import mean_and_covariance
from beliefscope.pomdp import LinearGaussian

D, SEEN, STEPS = 3, 2, 6


def random_process(seed=0):
    rng = np.random.default_rng(seed)

    def covariance(size):
        root = rng.normal(size=(size, size))
        return root @ root.T + 0.1 * np.eye(size)

    return {
        "initial_mean": rng.normal(size=D),
        "initial_covariance": covariance(D),
        "transition": 0.6 * rng.normal(size=(D, D)),
        "process_covariance": covariance(D),
        "observation": rng.normal(size=(SEEN, D)),
        "observation_covariance": covariance(SEEN),
        "action_effect": rng.normal(size=(2, D)),
    }


def condition_joint_gaussian(process, actions, observations):
    """Mean and covariance of s_T given o_0:T, from the joint distribution of all states and observations."""
    a, c = process["transition"], process["observation"]
    steps = len(observations)
    means, blocks = [process["initial_mean"]], [process["initial_covariance"]]
    for action in actions:
        means.append(a @ means[-1] + process["action_effect"][action])
        blocks.append(a @ blocks[-1] @ a.T + process["process_covariance"])
    joint = np.zeros((steps, D, steps, D))
    for i in range(steps):
        block = blocks[i]
        for j in range(i, steps):
            joint[j, :, i, :], joint[i, :, j, :] = block, block.T
            block = a @ block
    joint = joint.reshape(steps * D, steps * D)
    seen = np.kron(np.eye(steps), c)
    noise = np.kron(np.eye(steps), process["observation_covariance"])
    gain = joint @ seen.T @ np.linalg.inv(seen @ joint @ seen.T + noise)
    mean = np.concatenate(means)
    mean = mean + gain @ (np.concatenate(observations) - seen @ mean)
    covariance = joint - gain @ seen @ joint
    return mean[-D:], covariance[-D:, -D:]


def test_belief_is_the_conditioned_joint_gaussian():
    process = random_process()
    filter = KalmanFilter(LinearGaussian(**{name: jnp.asarray(value) for name, value in process.items()}))
    rng = np.random.default_rng(1)
    actions, observations = rng.integers(0, 2, STEPS), rng.normal(size=(STEPS + 1, SEEN))

    @jax.jit
    def follow(actions, observations):
        key = jax.random.key(0)
        beliefs = [filter.init(key, observations[0])]
        for time in range(STEPS):
            beliefs.append(filter.update(key, beliefs[-1], actions[time], observations[time + 1]))
        return beliefs

    for time, belief in enumerate(follow(jnp.asarray(actions), jnp.asarray(observations, jnp.float32))):
        mean, covariance = condition_joint_gaussian(process, actions[:time], observations[: time + 1])
        np.testing.assert_allclose(belief.mean, mean, atol=5e-4)
        np.testing.assert_allclose(belief.covariance, covariance, atol=5e-4)


def test_the_papers_random_walk_settles_at_the_golden_ratio():
    """p' = (p + 1) / (p + 2): the stationary variance of a unit walk seen with unit noise is (√5 − 1) / 2."""
    filter = KalmanFilter(LinearGaussian.random_walk(1, initial_std=1.0, process_std=1.0, observation_std=1.0))
    belief = filter.init(jax.random.key(0), jnp.zeros(1))
    assert belief.covariance[0, 0] == pytest.approx(0.5)
    update = jax.jit(lambda belief: filter.update(jax.random.key(0), belief, 0, jnp.ones(1)))
    for _ in range(30):
        belief = update(belief)
    assert belief.covariance[0, 0] == pytest.approx((np.sqrt(5) - 1) / 2, rel=1e-5)
    assert belief.mean[0] == pytest.approx(1, abs=1e-4)


def test_a_sampled_step_has_the_moments_of_the_matrices():
    matrices = random_process(3)
    process = LinearGaussian(**{name: jnp.asarray(value) for name, value in matrices.items()})
    keys = jax.random.split(jax.random.key(0), 40_000)
    state = jnp.array([0.3, -1.0, 0.5])
    moved = np.asarray(jax.jit(jax.vmap(lambda key: process.sample_transition(key, state, 1)))(keys))
    expected = matrices["transition"] @ np.asarray(state) + matrices["action_effect"][1]
    np.testing.assert_allclose(moved.mean(0), expected, atol=0.06)
    np.testing.assert_allclose(np.cov(moved.T), matrices["process_covariance"], atol=0.15)


def test_features_are_the_mean_and_the_flat_covariance():
    filter = KalmanFilter(LinearGaussian.random_walk(2, initial_std=1.0, process_std=1.0, observation_std=1.0))
    belief = filter.init(jax.random.key(0), jnp.array([2.0, -2.0]))
    features = filter.features(jax.random.key(0), belief)
    np.testing.assert_allclose(features, [1, -1, 0.5, 0, 0, 0.5], atol=1e-6)
    means, covariances = mean_and_covariance(features[None])
    np.testing.assert_allclose(means, [[1, -1]], atol=1e-6)
    np.testing.assert_allclose(covariances, [np.eye(2) / 2], atol=1e-6)
