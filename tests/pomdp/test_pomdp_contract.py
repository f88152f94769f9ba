"""What holds for every POMDP."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from zoo import POMDPS

from beliefscope.pomdp import CLASSICS, NO_OBSERVATION, RandomPolicy, check_pomdp, rollout

pytestmark = pytest.mark.parametrize("name", POMDPS)


def one_step(pomdp, key, action):
    """A start and a step, everything a POMDP does."""
    keys = jax.random.split(key, 4)
    state = pomdp.sample_initial(keys[0])
    first = pomdp.sample_observation(keys[1], state)
    moved = pomdp.sample_transition(keys[2], state, action)
    seen = pomdp.sample_observation(keys[3], moved, action)
    reward = pomdp.reward(state, action, moved, seen)
    codes = pomdp.encode_observation(first), pomdp.encode_observation(seen)
    return state, first, moved, seen, reward, codes, pomdp.is_terminal(moved), pomdp.state_features(moved)


def assert_same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, other)


@pytest.mark.slow
def test_the_checker_finds_nothing_wrong(name):
    if name == "mountain hike, code":
        with pytest.raises(ValueError, match="a terminal state moves under action"):
            check_pomdp(POMDPS[name])
    else:
        check_pomdp(POMDPS[name])


def test_compiled_and_batched_steps_equal_single_ones(name):
    pomdp = POMDPS[name]
    keys = jax.random.split(jax.random.key(1), 5)
    actions = jnp.arange(5) % pomdp.num_actions
    batch = jax.jit(jax.vmap(lambda key, action: one_step(pomdp, key, action)))(keys, actions)
    single = jax.jit(lambda key, action: one_step(pomdp, key, action))(keys[3], actions[3])
    assert_same(jax.tree.map(lambda leaf: leaf[3], batch), single)


@pytest.mark.slow
def test_an_episode_is_the_same_in_any_batch(name):
    pomdp = POMDPS[name]
    few, many = (rollout(jax.random.key(2), pomdp, RandomPolicy(pomdp), num_episodes=n).trajectory for n in (2, 64))
    assert_same(few, jax.tree.map(lambda leaf: leaf[:2], many))


@pytest.mark.parametrize("action", [-1, 1000])
def test_an_action_out_of_range_is_refused_in_one_sentence(name, action):
    pomdp = POMDPS[name]
    state = pomdp.sample_initial(jax.random.key(0))
    with pytest.raises(ValueError, match=rf"an action is an integer from 0 to {pomdp.num_actions - 1}, but got"):
        pomdp.sample_transition(jax.random.key(0), state, action)


def test_a_null_observation_is_encoded_as_zeros(name):
    pomdp = POMDPS[name]

    @jax.jit
    def first(key):
        seen = pomdp.sample_observation(key, pomdp.sample_initial(key))
        return seen, pomdp.encode_observation(seen)

    seen, code = first(jax.random.key(0))
    assert np.any(code) == (name not in CLASSICS)
    if name in CLASSICS:
        assert seen == NO_OBSERVATION
