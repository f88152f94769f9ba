"""Writing and reading back gives the same POMDP."""

import os

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.pomdp_file import PomdpFileError, format_pomdp, parse_pomdp, read_pomdp, write_pomdp
from beliefscope.pomdp.tabular import TabularPOMDP


def random_pomdp(seed, *, actions=2, states=3, observations=2, reward_axes=3, named=True, dyadic=False):
    rng = np.random.default_rng(seed)

    def distributions(*shape):
        even = np.full(shape[-1], 1 / shape[-1])
        if dyadic:
            return rng.multinomial(8, even, size=shape[:-1]) / 8
        weights = rng.multinomial(2, even, size=shape[:-1]) * rng.random(shape)  # most rows have zeros
        return weights / weights.sum(-1, keepdims=True)

    sizes = (actions, states, states, observations)[:reward_axes]
    rewards = rng.choice([0, 0, 1, -2.5] if dyadic else [0, 0.1, -1e-7, 3e8, 2 / 3], sizes)
    return TabularPOMDP(
        initial=distributions(states),
        transition=distributions(actions, states, states),
        reward=rewards,
        observation=distributions(actions, states, observations),
        discount=float(rng.random()),
        horizon=5,
        state_names=tuple(f"s-{i}" for i in range(states)) if named else None,
        action_names=tuple(f"a_{i}" for i in range(actions)) if named else None,
        observation_names=tuple(f"o{i}" for i in range(observations)) if named else None,
    )


SIZES = {
    "actions": st.integers(1, 3),
    "states": st.integers(1, 4),
    "observations": st.integers(1, 3),
    "reward_axes": st.integers(2, 4),
    "named": st.booleans(),
}


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.fixed_dictionaries(SIZES))
def test_probabilities_and_rewards_read_back_bit_for_bit(seed, sizes):
    pomdp = random_pomdp(seed, **sizes)
    again = parse_pomdp(format_pomdp(pomdp), horizon=pomdp.horizon)
    assert jax.tree.structure(again) == jax.tree.structure(pomdp)
    assert eqx.tree_equal(stored(again), stored(pomdp))
    # Running sums and means over observations are recomputed, from rounded numbers the first time.
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(pomdp), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    assert eqx.tree_equal(parse_pomdp(format_pomdp(again), horizon=again.horizon), again)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.fixed_dictionaries(SIZES))
def test_pomdps_of_exact_fractions_read_back_bit_for_bit(seed, sizes):
    pomdp = random_pomdp(seed, dyadic=True, **sizes)
    assert eqx.tree_equal(parse_pomdp(format_pomdp(pomdp), horizon=pomdp.horizon), pomdp)


def tiny_pomdp(*, observation_shape=(1, 1, 1), state_names=None):
    return TabularPOMDP(
        initial=np.ones(1),
        transition=np.ones((1, 1, 1)),
        reward=np.ones((1, 1)),
        observation=np.ones(observation_shape),
        discount=0.5,
        horizon=1,
        state_names=state_names,
    )


def stored(pomdp):
    """The arrays that are kept as given, without sums of them."""
    tables = [pomdp.successors, pomdp.emissions, pomdp.emitters]
    rewards = pomdp.expected_reward if pomdp.observed_reward is None else pomdp.observed_reward.value
    entries = [[table.start, table.row, table.column, table.value] for table in tables]
    return entries, pomdp.initial, rewards, pomdp.terminal


def test_numbers_too_small_for_single_precision_are_zero():
    text = "discount: 1 states: 2 actions: 1 observations: 2 T: * identity O: * : * : 0 1\n"
    pomdp = parse_pomdp(text + "T: 0 : 0 : 1 1e-50 O: 0 : 1 : 1 1e-46 R: * : 0 : * : * 1e-60", horizon=1)
    assert eqx.tree_equal(pomdp, parse_pomdp(text, horizon=1))
    smallest = parse_pomdp(text + "T: 0 : 0 : 1 1e-45", horizon=1)
    assert eqx.tree_equal(parse_pomdp(format_pomdp(smallest), horizon=1), smallest)


def test_rewards_are_written_with_wildcards_where_they_do_not_vary():
    pomdp = TabularPOMDP(
        initial=np.array([0.5, 0.5]),
        transition=np.full((3, 2, 2), 0.5),
        reward=np.array([[[-1, -1], [-1, -1]], [[2, 2], [0, 0]], [[3, 4], [0, 5]]]),
        observation=np.ones((3, 2, 1)),
        discount=0.5,
        horizon=1,
    )
    rewards = [line for line in format_pomdp(pomdp).splitlines() if line.startswith("R")]
    assert rewards == [
        "R: 0 : * : * : * -1.0",
        "R: 1 : 0 : * : * 2.0",
        "R: 2 : 0 : 0 : * 3.0",
        "R: 2 : 0 : 1 : * 4.0",
        "R: 2 : 1 : 1 : * 5.0",
    ]


def test_a_file_is_written_whole_and_leaves_nothing_else(tmp_path):
    pomdp = random_pomdp(0)
    path = tmp_path / "some.pomdp"
    path.write_text("old")
    write_pomdp(pomdp, path)
    assert path.read_text() == format_pomdp(pomdp)
    assert os.listdir(tmp_path) == ["some.pomdp"]
    assert eqx.tree_equal(read_pomdp(path, horizon=5), read_pomdp(str(path), horizon=5))


def test_a_refused_pomdp_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "some.pomdp"
    path.write_text("old")
    with pytest.raises(PomdpFileError, match="no observation before the first action"):
        write_pomdp(tiny_pomdp(observation_shape=(1, 1)), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["some.pomdp"]


@pytest.mark.parametrize("name", ["two words", "1st", "T", "uniform", "é", "", "a:b", "#"])
def test_names_that_the_format_cannot_hold_are_refused(name):
    with pytest.raises(PomdpFileError, match="names each state"):
        format_pomdp(tiny_pomdp(state_names=(name,)))
