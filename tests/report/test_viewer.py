"""The viewer's data against the traces they stand for, unpacked here as the page unpacks them."""

import base64
import json
import zlib

import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.pomdp import altitude
from beliefscope.report.viewer import GRID, POINTS, StoredTrace, packed, viewer_data

RNG = np.random.default_rng(0)
MAZE = {"class": "TMaze", "length": 5, "stochasticity": 0.0}
HIKE = {"class": "MountainHike", "varying": True, "goal_radius": 0.1, "one_hot_orientation": True}


def unpacked(entry):
    codes = np.frombuffer(zlib.decompress(base64.b64decode(entry["data"])), "<u1" if entry["top"] < 255 else "<u2")
    top = entry["top"]
    numbers = entry["low"] + codes / top * (entry["high"] - entry["low"])
    numbers = np.where(codes > top, np.nan, numbers**2 if entry["root"] else numbers)
    return numbers.reshape(entry["shape"])


def arrays(lengths=(4, 6), states=1, observations=4, memory=8, **beliefs):
    """A made-up trace whose beliefs are nearly sure; after an episode's end there is NaN, or 0 among whole numbers."""
    shape = (2, max(1, *lengths))
    steps = {
        "actions": RNG.integers(0, 4, shape).astype(np.int16),
        "rewards": RNG.normal(size=shape).astype(np.float32),
        "values": RNG.normal(size=(*shape, 4)).astype(np.float32),
        "observations": RNG.normal(size=(*shape, observations)).astype(np.float32),
        "states": RNG.integers(0, 12, (*shape, states)).astype(np.float32),
        "memory": RNG.uniform(-1, 1, (*shape, memory)).astype(np.float16),
        **{name: RNG.dirichlet(np.full(size, 0.01), shape).astype(np.float16) for name, size in beliefs.items()},
    }
    for array in steps.values():
        for episode, length in zip(array, lengths, strict=True):
            episode[length:] = np.nan if array.dtype.kind == "f" else 0
    return {"lengths": np.array(lengths, np.int32), **steps}


def stored(given, pomdp=MAZE, environment="T-Maze", cell="GRU"):
    return StoredTrace(environment, cell, 0, 100, pomdp, given)


def only(trace):
    """The world and the trace of a single one, its arrays unpacked."""
    (environment,) = viewer_data([trace])["environments"]
    (found,) = environment["traces"]
    return environment["world"], {name: unpacked(entry) for name, entry in found["arrays"].items()}


def cloud(shape, *, dimensions=6, cells=10):
    """A belief in particles of the Varying Mountain Hike, and its decoded cells."""
    particles = RNG.uniform(-1, 1, (*shape, 200, dimensions)).astype(np.float16)
    centres = RNG.uniform(-1, 1, (cells, dimensions)).astype(np.float32)
    for set_of in (particles, centres):
        turned = RNG.integers(0, 4, set_of.shape[:-1])
        set_of[..., 2:] = np.eye(4)[turned] if dimensions == 6 else turned[..., None]
    return {"belief": particles, "decoded_cells": centres}


@pytest.mark.parametrize("top", [62, 254, 65534])
def test_what_is_packed_comes_back_within_half_a_step(top):
    array = RNG.normal(size=(7, 5, 3))
    np.testing.assert_allclose(unpacked(packed(array, top=top)), array, rtol=0, atol=1.0001 * np.ptp(array) / top / 2)


def test_probabilities_come_back_to_four_thousandths_and_small_ones_better():
    array = np.concatenate([RNG.uniform(size=500), 0.01 * RNG.uniform(size=500), [0.0, 1.0]])
    error = np.abs(unpacked(packed(array, root=True)) - array)
    assert error.max() < 0.004
    assert error[array < 0.01].max() < 0.0005


def test_constants_empty_arrays_and_what_is_not_finite_are_packed_too():
    np.testing.assert_array_equal(unpacked(packed(np.full((2, 3), 0.7))), np.full((2, 3), 0.7))
    assert unpacked(packed(np.zeros((0, 3)))).shape == (0, 3)
    np.testing.assert_array_equal(unpacked(packed(np.array([0.0, np.nan, np.inf, 1.0]))), [0.0, np.nan, np.nan, 1.0])
    assert np.isnan(unpacked(packed(np.full(3, np.nan)))).all()


def test_the_steps_of_both_episodes_stand_end_to_end_without_what_follows_an_end():
    given = arrays((4, 6), belief=16, decoded=16)
    world, found = only(stored(given))
    assert world == {"kind": "maze", "length": 5}
    for name, tolerance in {"actions": 1e-3, "states": 1e-3, "values": 1e-4, "memory": 0.017, "belief": 0.005}.items():
        expected = np.concatenate([given[name][0, :4], given[name][1]])
        assert np.isfinite(found[name]).all()
        np.testing.assert_allclose(found[name], expected, atol=tolerance)
    returns = np.concatenate([np.cumsum(given["rewards"][0, :4]), np.cumsum(given["rewards"][1])])
    np.testing.assert_allclose(found["returns"], returns, atol=1e-3)


@pytest.mark.parametrize("lengths", [(0, 3), (0, 0)])
def test_an_episode_without_a_step_has_nothing_to_show(lengths):
    _, found = only(stored(arrays(lengths, belief=16, decoded=16)))
    assert {len(array) for array in found.values()} == {sum(lengths)}


def test_irrelevant_variables_stand_apart_with_mean_deviation_and_truth():
    given = arrays(states=3, observations=6, **{"belief.relevant": 16, "decoded.relevant": 16})
    mean, truth = np.array([0.5, -1.0]), given["states"][1, 0, 1:]
    given["belief.irrelevant"] = np.broadcast_to(np.array([*mean, 4.0, 0.1, 0.1, 0.25], np.float16), (2, 6, 6))
    pomdp = {"class": "Irrelevant", "pomdp": MAZE, "dimensions": 2}
    world, found = only(stored(given, pomdp))
    assert world["kind"] == "maze"
    np.testing.assert_allclose(found["normal"][4], np.stack([mean, [2.0, 0.5], truth], axis=-1), atol=1e-3)
    assert found["observations"].shape == (10, 4)
    assert found["states"].shape == (10, 1)
    assert found["belief"].shape == found["decoded"].shape == (10, 16)


@pytest.mark.parametrize("dimensions", [6, 3])
def test_hikers_have_places_and_orientations(dimensions):
    given = arrays((5, 5), states=3, observations=1, decoded=10) | cloud((2, 5), dimensions=dimensions)
    _, found = only(stored(given, HIKE))
    particles, centres = given["belief"].reshape(10, 200, dimensions), given["decoded_cells"]
    np.testing.assert_allclose(found["x"], particles[..., 0], atol=0.009)
    np.testing.assert_allclose(found["y"], particles[..., 1], atol=0.009)
    np.testing.assert_allclose(found["cell_y"], centres[:, 1], atol=0.005)

    def orientation(features):
        return features[..., 2:].argmax(-1) if dimensions == 6 else features[..., 2]

    np.testing.assert_allclose(found["facing"], orientation(particles), atol=0.005)
    np.testing.assert_array_equal(found["cell_facing"].argmax(-1), orientation(centres))


def test_the_mountain_is_the_pomdps():
    given = arrays((5, 5), states=3, observations=1, decoded=10) | cloud((2, 5))
    world, _ = only(stored(given, HIKE))
    heights = unpacked(world["altitude"])
    assert heights.shape == (GRID, GRID)
    for row, column in [(0, 0), (10, 40), (59, 0)]:
        x, y = (jnp.asarray(-1 + 2 * index / (GRID - 1)) for index in (column, row))
        assert heights[row, column] == pytest.approx(float(altitude(x, y)), abs=0.005)
    assert world["goal"] == [0.8, 0.8, 0.1]
    assert world["moves"][0] == [[0.0, 0.1], [-0.1, 0.0], [0.0, -0.1], [0.1, 0.0]]


def test_any_other_pomdp_is_shown_by_the_form_of_its_belief():
    table = {"class": "TabularPOMDP", "state_names": ["<b>left</b>", "right"], "action_names": None}
    world, _ = only(stored(arrays(belief=2, decoded=2), table))
    assert world["kind"] == "table"
    assert world["states"] == ["<b>left</b>", "right"]
    assert world["actions"] == ["action 0", "action 1", "action 2", "action 3"]
    world, found = only(stored(arrays((5, 5), decoded=10) | cloud((2, 5), dimensions=3), {"class": "mine.Walk"}))
    assert world["kind"] == "cloud"
    assert "facing" not in found
    world, found = only(stored(arrays((5, 5), decoded=10) | cloud((2, 5), dimensions=1), {"class": "mine.Line"}))
    assert world["kind"] == "cloud"
    assert {"x", "cell_x"} < set(found)
    assert not {"y", "cell_y"} & set(found)  # states of one number are drawn as one
    gaussian = arrays() | {"belief": np.ones((2, 6, 2), np.float16)}
    world, found = only(stored(gaussian, {"class": "LinearGaussian"}))
    assert world["kind"] == "normal"
    assert found["normal"].shape == (10, 1, 3)


def test_names_stay_as_they_are_and_traces_in_their_order():
    name = "<script>alert('&')</script>"
    given = arrays(belief=16, decoded=16)
    traces = [stored(given, environment=name, cell=cell) for cell in ("<i>B</i>", "A")] + [stored(given)]
    data = json.loads(json.dumps(viewer_data(traces), allow_nan=False))
    assert [environment["name"] for environment in data["environments"]] == [name, "T-Maze"]
    assert [trace["cell"] for trace in data["environments"][0]["traces"]] == ["<i>B</i>", "A"]
    assert data["environments"][0]["traces"][0]["lengths"] == [4, 6]


def test_75_long_traces_stay_below_6_mb_even_of_memories_that_are_noise():
    maze = stored(arrays((200, 200), memory=64, belief=206, decoded=206))
    hike = stored(
        arrays((160, 160), states=3, observations=1, memory=64, decoded=100) | cloud((2, 160), cells=100), HIKE, "Hike"
    )
    for trace in (maze, hike):
        assert 75 * len(json.dumps(viewer_data([trace]))) < 6e6
    _, found = only(hike)
    assert found["x"].shape == (320, POINTS // 320)
