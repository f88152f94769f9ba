"""The axis for returns: where the optimum and the start are, and that its ticks are round and spread."""

import math

import numpy as np
import pytest

from beliefscope.report.style import ReturnScale

MAZE = ReturnScale(reference=1.4567, start=-4.8)


def test_the_reference_is_at_one_and_the_start_at_e_to_the_minus_three():
    np.testing.assert_allclose(MAZE.place(np.array([1.4567, -4.8])), [1, math.exp(-3)])


def test_where_nothing_was_learned_the_axis_is_linear():
    flat = ReturnScale(reference=2.0, start=2.0)
    np.testing.assert_array_equal(flat.place(np.array([-1.0, 2.0, 5.0])), [-1, 2, 5])
    assert flat.ticks(-3.2, 7.1) == [-2, 0, 2, 4, 6]
    assert flat.ticks(-0.032, 0.01) == [-0.03, -0.02, -0.01, 0, 0.01]


def test_ticks_are_round_returns_spread_over_the_axis():
    assert MAZE.ticks(-4.8, 1.4567) == [-4, -1.5, -0.5, 0.5, 1, 1.4]
    assert ReturnScale(-20.0, -37.0).ticks(-37.0, -20.0) == [-35, -28, -25, -23, -21, -20]


@pytest.mark.parametrize("scale", [MAZE, ReturnScale(0.53, -8.0), ReturnScale(-17.2, -81.9), ReturnScale(1e-3, 0.0)])
@pytest.mark.parametrize("below", [0.0, 0.5, 5.0, 1e4])
def test_ticks_lie_inside_apart_and_across_the_axis(scale, below):
    low, high = scale.start - below * (scale.reference - scale.start), scale.reference
    ticks = scale.ticks(low, high)
    places = scale.place(np.array([low, *ticks, high]))
    gap = (places[-1] - places[0]) / 5
    assert low <= ticks[0]
    assert ticks[-1] <= high
    assert len(ticks) == 6
    assert np.diff(places[1:-1]).min() > 0.45 * gap
    assert np.diff(places).max() < 1.55 * gap
    assert all(tick == pytest.approx(float(f"{tick:.2g}"), rel=1e-9) for tick in ticks)


def test_one_return_has_one_tick():
    assert MAZE.ticks(1.0, 1.0) == [1.0]


def test_returns_too_close_to_tell_apart_on_the_axis_still_have_ticks():
    ticks = ReturnScale(reference=1e18, start=0.0).ticks(0.0, 1e-3)
    assert 2 <= len(ticks) <= 6
    assert all(0 <= tick <= 1e-3 for tick in ticks)
