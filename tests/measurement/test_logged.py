"""Logged histories are believed only if they can have happened, whatever way they are written."""

import re
import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.belief import ExactFilter, ParticleFilter, filter_of_paper
from beliefscope.measurement import pairs_from_trajectories
from beliefscope.measurement.written_observations import as_the_pomdp_gives_them
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, RandomPolicy, TabularPOMDP, TMaze, classic, rollout

MAZE = TMaze(3)
N = 50  # episodes


def logged(pomdp, *, key=0) -> dict[str, Any]:
    """Episodes of the random policy; the memory is the time."""
    played = rollout(jax.random.key(key), pomdp, RandomPolicy(pomdp), num_episodes=N).trajectory
    steps = played.actions.shape[1]
    return {
        "memory": np.broadcast_to(np.arange(steps, dtype=float)[None, :, None], (N, steps, 1)),
        "actions": np.asarray(played.actions),
        "observations": jax.tree.map(lambda leaf: np.asarray(leaf)[:, :-1], played.observations),
        "lengths": np.maximum(np.asarray(played.lengths), 1),
    }


def paired(log, pomdp: POMDP = MAZE, filter=None):
    return pairs_from_trajectories(jax.random.key(1), pomdp, filter or ExactFilter(pomdp), **log)


@pytest.fixture(scope="module")
def log():
    return logged(MAZE)


def refused(words, *arguments, **given):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        paired(*arguments, **given)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_one_hot_observations_give_the_pairs_of_the_observations_themselves(log):
    plain, encoded = paired(log), paired({**log, "observations": np.eye(4)[log["observations"]]})
    jax.tree.map(np.testing.assert_array_equal, plain, encoded)


def test_many_codes_are_decoded_in_little_more_memory_than_they_take():
    number = 100
    pomdp = TabularPOMDP(
        initial=np.full(number, 1 / number),
        transition=np.eye(number)[None],
        reward=np.ones((1, number)),
        observation=np.eye(number),
        discount=0.9,
        horizon=20,
    )
    seen = np.random.default_rng(0).integers(number, size=(200, 20))
    codes = np.eye(number, dtype=np.float32)[seen]
    tracemalloc.start()
    found = as_the_pomdp_gives_them(pomdp, codes, np.ones(seen.shape, bool), "a rule")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, seen)
    assert most < 10 * codes.nbytes


class Far(TMaze):
    """Codes that lie far from zero and close together."""

    def __init__(self):
        super().__init__(3)

    def encode_observation(self, observation):
        return jnp.stack([5000 + 0.1 * observation, *3 * [0.0 * observation]])


class Picture(TMaze):
    """An observation is a record of a picture of two rows."""

    def __init__(self):
        super().__init__(3)

    def sample_observation(self, key, state, action=None) -> Any:
        return {"picture": jnp.zeros((2, 2))}

    def encode_observation(self, observation: Any):
        return observation["picture"].ravel()


def test_codes_that_are_no_one_hot_ones_are_decoded_too(log):
    far, seen = Far(), np.array(log["observations"])
    codes = np.asarray(jax.vmap(jax.vmap(far.encode_observation))(seen))
    counted = np.ones(seen.shape, bool)
    np.testing.assert_array_equal(as_the_pomdp_gives_them(far, codes, counted, "rule"), seen)
    pictures = np.arange(5 * 3 * 4.0).reshape(5, 3, 4).astype(np.float32)
    found: Any = as_the_pomdp_gives_them(Picture(), pictures, np.ones((5, 3), bool), "rule")
    np.testing.assert_array_equal(found["picture"], pictures.reshape(5, 3, 2, 2))


def test_a_huge_number_is_no_code(log):
    codes = np.eye(4)[np.array(log["observations"])]
    codes[0, 1, 2] = 1e308
    with pytest.raises(ValueError, match="in episode 0 at step 1"):
        as_the_pomdp_gives_them(MAZE, codes, np.ones(codes.shape[:2], bool), "rule")


def test_padding_may_be_anything(log):
    beyond = np.arange(log["actions"].shape[1]) >= log["lengths"][:, None]
    padded = {
        **log,
        "actions": np.where(beyond, -1, log["actions"]),
        "observations": np.where(beyond[..., None], np.nan, np.eye(4)[log["observations"]]),
    }
    jax.tree.map(np.testing.assert_array_equal, paired(log), paired(padded))


def test_actions_off_by_one_are_refused(log):
    said = refused(
        "an action is an integer from 0 to 3, but got '4 in episode ", {**log, "actions": log["actions"] + 1}
    )
    assert "count actions from 0" in said
    said = refused("every logged history is possible", {**log, "actions": (log["actions"] + 1) % 4})
    assert re.search(
        r"got '\d+ of 50 impossible ones, the first in episode \d+ at step \d+: after action \d the obs", said
    )
    assert "action t is the one taken after observation t" in said


def test_shifted_actions_are_refused(log):
    refused("every logged history is possible", {**log, "actions": np.roll(log["actions"], 1, axis=1)})


def test_the_wrong_maze_is_refused_with_what_was_possible_in_it():
    sign, corridor, junction = 0, 2, 3
    log = {
        "memory": np.zeros((2, 4, 1)),
        "actions": np.zeros((2, 4), int),
        "observations": np.array([[sign, corridor, junction, junction], [1, corridor, corridor, junction]]),
        "lengths": np.array([2, 4]),
    }
    said = refused("1 of 2 impossible ones, the first in episode 1 at step 2", log, TMaze(2))
    assert "after action 0 the observation 2, where 3 was possible" in said


def test_a_filter_of_another_pomdp_is_refused(log):
    refused("the filter is one of this POMDP, which has 4 actions, 12 states", log, filter=ExactFilter(TMaze(50)))
    refused("the filter is one of this POMDP", log, filter=ExactFilter(classic("tiger")))
    refused("has a ProductFilter", log, filter=filter_of_paper(Irrelevant(MAZE, 1)))
    refused("has a ProductFilter", log, Irrelevant(MAZE, 1), filter=ExactFilter(MAZE))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("actions", [[0, 1], [0]], "actions is one array of numbers, which NumPy can read, but got 'list of rows that"),
        ("memory", [[[0.0]], [[0.0], [1.0]]], "memory is one array of numbers"),
        ("observations", [[0, 1], [0]], "each part of the observations is one array of numbers, which NumPy can read"),
        ("lengths", ["a"], "lengths is one array of numbers"),
        ("actions", np.full((N, MAZE.horizon), 0.5), "actions are whole numbers, but got '0.5'"),
        (
            "observations",
            np.full((N, MAZE.horizon), 0.5),
            "an observation of TMaze is int32[], but got '0.5 in episode 0",
        ),
        ("observations", np.full((N, MAZE.horizon), 4), "an integer from 0 to 3, but got '4 in episode 0 at step 0'"),
        (
            "observations",
            np.full((N, MAZE.horizon, 4), 0.7),
            "an encoded observation is what encode_observation of TMaze",
        ),
        ("observations", np.full((N, MAZE.horizon, 4), np.inf), "an encoded observation is what encode_observation of"),
        ("observations", np.zeros((N, MAZE.horizon, 3)), f"or encoded ({N}, {MAZE.horizon}, 4), but got"),
    ],
)
def test_what_is_no_log_gets_one_sentence(log, name, value, words):
    refused(words, {**log, name: value})


def test_irrelevant_variables_are_decoded_with_the_rest():
    pomdp = Irrelevant(MAZE, 2)
    log = logged(pomdp)
    seen = log["observations"]
    codes = np.concatenate([np.eye(4)[seen.relevant], seen.irrelevant], axis=-1)
    plain, encoded = (
        paired({**log, "observations": each}, pomdp, filter=filter_of_paper(pomdp)) for each in (seen, codes)
    )
    np.testing.assert_array_equal(plain.belief.relevant, encoded.belief.relevant)
    np.testing.assert_allclose(plain.belief.irrelevant, encoded.belief.irrelevant, atol=1e-5)


def test_depleted_particles_are_told_apart_from_impossible_histories():
    maze = TMaze(3, 0.3)
    log, few = logged(maze), ParticleFilter(maze, num_particles=2)
    with pytest.warns(UserWarning, match=r"depleted in \d+ of 50 histories, all of which are possible"):
        pairs = paired(log, maze, filter=few)
    assert np.asarray(pairs.health.impossible).any()
    wrong = {**log, "observations": np.where(log["observations"] == 2, 3, log["observations"])}
    refused("every logged history is possible", wrong, maze, filter=few)


@pytest.mark.slow
def test_continuous_observations_are_taken_as_they_are():
    hike = MountainHike(horizon=4)
    pairs = paired(logged(hike), hike, filter=ParticleFilter(hike, num_particles=20))
    assert pairs.belief.shape == (N, 20, 2)
