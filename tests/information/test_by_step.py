"""Sufficiency at each step: of memories that know the state from some step on, whose share is known."""

import numpy as np
import pytest

from beliefscope.information import sufficiency_by_step


def rows(number, seed, *, times):
    """A state of four; the belief knows it, and the memory knows it from t = 2 on, before that nothing."""
    draw = np.random.default_rng(seed)
    state, time = draw.integers(4, size=number), draw.integers(4, size=number) if times is None else times
    memory = np.where((time >= 2)[:, None], np.eye(4)[state], 0.25)
    return memory, np.eye(4)[state], time


def test_a_memory_that_knows_from_the_third_step_on():
    found = sufficiency_by_step(rows(1500, 0, times=None), rows(800, 1, times=np.repeat(np.arange(4), 200)))
    assert [step.time for step in found] == [0, 1, 2, 3]
    assert [step.number for step in found] == [200] * 4
    for step in found:
        assert step.available == pytest.approx(2, abs=0.1)
        assert step.share is not None
        assert step.share.low <= step.share.value <= step.share.high
    shares = [step.share.value for step in found if step.share is not None]
    assert max(shares[:2]) < 0.05
    assert min(shares[2:]) > 0.97


def test_steps_that_few_episodes_reach_have_no_number_and_certain_ones_no_share():
    memory, belief, time = rows(800, 2, times=np.repeat(np.arange(4), 200))
    belief[time == 3] = np.eye(4)[0]  # known to all
    keep = np.flatnonzero((time != 1) | (np.arange(800) < 210))
    pairs = rows(1500, 0, times=None)
    known = pairs[1].copy()
    known[pairs[2] == 3] = np.eye(4)[0]
    found = sufficiency_by_step((pairs[0], known, pairs[2]), (memory[keep], belief[keep], time[keep]))
    assert [step.time for step in found] == [0, 2, 3]
    assert found[-1].share is None
    with pytest.raises(ValueError, match="at least 500 pairs"):
        sufficiency_by_step([array[:10] for array in pairs], pairs)
