"""Sufficiency against memories whose share is known exactly, of every kind of belief and at each step."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import entropy, norm

from beliefscope.information import sufficiency as measured
from beliefscope.information import sufficiency_by_step

# All have few shapes, since each new one is compiled anew.
N = 3000
RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, size=(N, 2))
STATES = np.eye(4)[2 * BITS[:, 0] + BITS[:, 1]]  # two independent bits, both known
TIME = RNG.integers(0, 3, size=N)
NOISE = RNG.normal(size=(N, 2))


def sufficiency(*arguments, **options) -> Any:
    return measured(*arguments, **options)


def binary(p):
    return entropy([p, 1 - p], base=2)


def holds(ratio, truth, *, within=0.03):
    assert ratio.low - within <= truth <= ratio.high + within
    assert ratio.value == pytest.approx(truth, abs=within)
    assert ratio.low <= ratio.value <= ratio.high


def test_a_memory_of_noise_holds_nothing():
    found = sufficiency(NOISE, STATES, TIME)
    holds(found.given_time.best, 0.0, within=0.01)
    holds(found.plain.best, 0.0, within=0.01)
    assert found.given_time.available == pytest.approx(2, abs=0.02)
    assert found.entropy == 0


def test_a_memory_of_one_of_two_bits_holds_half():
    memory = np.stack([BITS[:, 0] + 0.1 * NOISE[:, 0], NOISE[:, 1]], axis=1)
    found = sufficiency(memory, STATES, TIME)
    for ratio in (found.given_time.linear, found.given_time.mlp, found.given_time.best, found.plain.best):
        holds(ratio, 0.5, within=0.02)
    assert found.value == found.given_time.best


def test_a_memory_that_is_the_belief_holds_all_of_it():
    beliefs = RNG.dirichlet([0.5, 0.5, 0.5, 0.5], size=N)
    found = sufficiency(beliefs[:, :2] @ [[1, 1], [0, 1]] + beliefs[:, 2:], STATES, TIME)
    assert found.value.value < 0.05  # of other rows' beliefs, that is: a memory of nothing
    found = sufficiency(np.log(beliefs[:, :2] + 1e-3), beliefs, TIME)
    assert 0.3 < found.value.value < 0.9  # two of the four numbers
    holds(sufficiency(BITS + 0.1 * NOISE, STATES, TIME).value, 1.0, within=0.005)


@pytest.mark.parametrize("flipped", [0.05, 0.2])
def test_a_memory_of_a_bit_that_is_sometimes_wrong_holds_what_a_noisy_channel_lets_through(flipped):
    """The belief knows one bit, the memory that bit but for flips: I(h; s) = 1 − H(flipped)."""
    wrong = np.random.default_rng(1).random(N) < flipped
    belief = np.eye(4)[BITS[:, 0]]
    memory = np.stack([BITS[:, 0] ^ wrong, NOISE[:, 0]], axis=1)
    found = sufficiency(memory, belief, TIME)
    holds(found.value, 1 - binary(flipped), within=0.05)
    assert found.given_time.available == pytest.approx(1, abs=0.02)


def test_a_belief_that_is_unsure_is_what_counts_and_not_a_state_drawn_from_it():
    """Beliefs (p, 1 − p) or (1 − p, p): I(b; s) = 1 − H(p), all of which the memory of the side holds."""
    belief = np.zeros((N, 4))
    belief[:, 0] = np.where(BITS[:, 0], 0.9, 0.1)
    belief[:, 1] = 1 - belief[:, 0]
    found = sufficiency(np.stack([BITS[:, 0] + 0.1 * NOISE[:, 0], NOISE[:, 1]], axis=1), belief, TIME)
    assert found.given_time.available == pytest.approx(1 - binary(0.1), abs=0.02)
    holds(found.value, 1.0, within=0.005)


def test_what_the_time_tells_is_not_the_memorys_merit():
    """The state is (side, step): the time tells the step, log2 8 bits, the belief one bit more."""
    time = np.random.default_rng(2).integers(0, 8, size=N)
    belief = np.eye(16)[2 * time + BITS[:, 0]]
    clock = np.stack([time + 0.01 * NOISE[:, 0], NOISE[:, 1]], axis=1)
    side = np.stack([BITS[:, 0] + 0.1 * NOISE[:, 0], NOISE[:, 1]], axis=1)
    found = sufficiency(clock, belief, time)
    assert found.given_time.available == pytest.approx(1, abs=0.03)
    assert found.plain.available == pytest.approx(4, abs=0.03)
    holds(found.time_alone, 0.75, within=0.01)
    holds(found.value, 0.0, within=0.02)
    found = sufficiency(side, belief, time)
    holds(found.value, 1.0, within=0.01)
    holds(found.plain.best, 0.25, within=0.03)


@pytest.mark.slow
def test_the_baseline_of_many_times_is_good_though_each_is_seen_seldom():
    """100 steps and two sides, 18 training rows a step: the belief knows 1 bit beyond the time, not 3."""
    time = np.random.default_rng(3).integers(0, 100, size=N)
    belief = np.eye(200)[2 * time + BITS[:, 0]]
    found = sufficiency(NOISE, belief, time)
    assert found.given_time.available == pytest.approx(1, abs=0.1)
    holds(found.value, 0.0, within=0.02)


@pytest.mark.slow
def test_a_function_of_a_memory_holds_no_more():
    memory = np.stack([BITS[:, 0] + 0.5 * NOISE[:, 0], BITS[:, 1] + 0.5 * NOISE[:, 1]], axis=1)
    whole = sufficiency(memory, STATES, TIME).value
    functions = {
        "one column": memory[:, [0, 0]],
        "rounded": np.round(memory, 1),
        "noisy": memory + NOISE[::-1],
        "a sum": memory @ [[1, 1], [0.5, 0.5]],
        "scaled": memory * [1e6, 1e-6] + 1e3,
    }
    for name, function in functions.items():
        found = sufficiency(function, STATES, TIME).value
        assert found.value <= whole.value + (whole.high - whole.low) / 2 + (found.high - found.low) / 2, name


@pytest.mark.slow
def test_particles_are_counted_in_cells_and_their_entropy_corrected():
    """Particles of N(±2, 1), the side in the memory: the cells' distribution follows from the normal one."""
    side = 4.0 * BITS[:, 0] - 2
    sets = np.random.default_rng(4).normal(size=(N, 64, 1)) + side[:, None, None]
    found = sufficiency(np.stack([side + NOISE[:, 0], NOISE[:, 1]], axis=1), sets, TIME)
    edges = np.linspace(sets.min(), sets.max(), 11)
    low, high = (np.diff(norm.cdf(edges, loc=centre)) for centre in (-2, 2))
    knows = entropy((low + high) / 2, base=2) - (entropy(low, base=2) + entropy(high, base=2)) / 2
    assert found.given_time.available == pytest.approx(knows, abs=0.02)
    assert found.entropy == pytest.approx((entropy(low, base=2) + entropy(high, base=2)) / 2, abs=0.02)
    assert (found.num_particles, found.num_cells, found.coarser.num_cells) == (64, 10, 5)
    assert found.coarser.given_time.available < found.given_time.available
    # What the memory tells of the side, s the side: by the trapezium rule over its number h.
    grid = np.linspace(-8, 8, 4001)
    posterior = norm.pdf(grid, loc=2) / (norm.pdf(grid, loc=2) + norm.pdf(grid, loc=-2))
    mixed = posterior[:, None] * high + (1 - posterior[:, None]) * low
    weight = (norm.pdf(grid, loc=2) + norm.pdf(grid, loc=-2)) / 2
    left = np.trapezoid(weight * entropy(mixed, base=2, axis=1), grid)
    holds(found.value, (entropy((low + high) / 2, base=2) - left) / knows, within=0.02)


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_gaussian_beliefs_of_a_noisy_memory_have_a_closed_form(noise):
    """μ ~ N(0, V_t), s | μ ~ N(μ, S), h = μ + noise: all normal, and V depends on the time."""
    variance, within = 1.0 + 2 * TIME, 0.5
    mean = np.sqrt(variance)[:, None] * np.random.default_rng(5).normal(size=(N, 1))
    covariance = np.full((N, 1, 1), within)
    memory = np.concatenate([mean + np.sqrt(noise) * NOISE[:, :1], NOISE[:, 1:]], axis=1)
    found = sufficiency(memory, (mean, covariance), TIME)
    variances = np.array([1.0, 3.0, 5.0])
    knows = np.mean(np.log2((variances + within) / within)) / 2
    left = within + variances * noise / (variances + noise)
    held = np.mean(np.log2((variances + within) / left)) / 2
    assert found.given_time.available == pytest.approx(knows, abs=0.03)
    assert found.entropy == pytest.approx(np.log2(2 * np.pi * np.e * within) / 2, abs=1e-6)
    # A decoder with one slope for all times is a little short of the best one, and never above it.
    assert held / knows - 0.08 <= found.value.value <= held / knows + 0.03


def test_no_share_is_given_of_next_to_nothing():
    belief = np.tile([0.4, 0.3, 0.2, 0.1], (N, 1))
    found = sufficiency(NOISE, belief, TIME)
    assert found.value is None
    assert found.plain.best is None
    assert "too few for a share" in str(found)


def test_the_key_decides_and_without_one_the_same_arrays_give_the_same_numbers():
    once, again = (sufficiency(BITS + 0.6 * NOISE, STATES, TIME) for _ in range(2))
    assert once == again
    other = sufficiency(BITS + 0.6 * NOISE, STATES, TIME, key=jax.random.key(1))
    assert other != once
    assert other.value.value == pytest.approx(once.value.value, abs=0.05)


def test_it_prints_what_it_says():
    text = str(sufficiency(BITS + 0.1 * NOISE, STATES, TIME))
    assert text.startswith("Given the time, the memory holds 100% [100, 100] of the 2.0")
    assert "bits that the belief knows about the state (linear 98% [" in text
    assert str(sufficiency(BITS + 0.1 * NOISE, STATES)).startswith("The memory holds 100% [")


def test_without_times_there_is_the_plain_share_alone():
    found = sufficiency(BITS + 0.1 * NOISE, STATES)
    assert found.given_time is None
    assert found.time_alone is None
    assert found.value == found.plain.best


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((NOISE[:100], STATES[:100]), "the number of rows of memory is at least 500, but got 100"),
        ((NOISE, STATES[:-1]), "belief has a row for each memory"),
        ((NOISE, STATES * 2), "each belief is a row of probabilities"),
        ((NOISE, STATES, TIME[:-1]), "time has a whole number for each of the 3000 memories"),
        ((NOISE, STATES, NOISE[:, 0]), "time has a whole number for each of the 3000 memories"),
        ((NOISE, (NOISE, NOISE)), "a belief that is a pair has means"),
        ((NOISE, (NOISE, np.zeros((N, 2, 2)))), "covariances positive definite, but got 'a smallest eigenvalue of 0'"),
        ((NOISE, (NOISE, np.full((N, 2, 2), np.nan))), "covariances positive definite, but got 'NaN or infinity'"),
        ((NOISE * np.nan, STATES), "every number in memory is finite"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        sufficiency(*arguments)
    assert "\n" not in str(caught.value)


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
