"""The one call for one's own data: its number, its control, and what it takes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from information.samples import samples

from beliefscope.information import BestBound, Gaussian, mutual_information

RNG = np.random.default_rng(0)
MEMORY = RNG.normal(size=(1000, 2)).astype(np.float32)
BELIEF = (MEMORY + RNG.normal(size=(1000, 2))).astype(np.float32)


class Asked(NamedTuple):
    """What the estimator was asked."""

    key: list
    x: np.ndarray
    y: np.ndarray


@pytest.fixture
def asked(monkeypatch):
    """The closed form of Gaussian vectors stands in for the best bound, and writes down what it is asked."""
    questions = []

    def estimate(self, key, x, y, *, watch=None):
        questions.append(Asked(jax.random.key_data(key).tolist(), x, y))
        return Gaussian().estimate(key, x, y)

    monkeypatch.setattr(BestBound, "estimate", estimate)
    return questions


def test_the_control_has_the_same_memories_beside_beliefs_dealt_at_random(asked):
    estimate = mutual_information(MEMORY, BELIEF)
    found, control = asked
    np.testing.assert_array_equal(found.x, MEMORY)
    np.testing.assert_array_equal(found.y, BELIEF)
    np.testing.assert_array_equal(control.x, MEMORY)
    np.testing.assert_array_equal(np.unique(control.y, axis=0), np.unique(BELIEF, axis=0))
    assert np.mean(np.all(control.y == BELIEF, axis=1)) < 0.01
    assert found.key != control.key
    assert estimate.bits == pytest.approx(1, abs=0.15)
    assert estimate.shuffled is not None
    assert estimate.shuffled.bits == pytest.approx(0, abs=0.02)
    assert "bits (Gaussian, N = 1000); shuffled " in str(estimate)


@pytest.mark.parametrize(
    ("memory", "belief", "key"),
    [
        (MEMORY, BELIEF, None),
        (MEMORY, BELIEF, jax.random.key(0)),
        (MEMORY, BELIEF, jax.random.PRNGKey(0)),
        (jnp.asarray(MEMORY), jnp.asarray(BELIEF), None),
        (torch.from_numpy(MEMORY), torch.from_numpy(BELIEF).double(), None),
        (MEMORY.tolist(), torch.from_numpy(BELIEF), None),
    ],
)
def test_the_same_numbers_are_the_same_question_whatever_the_kind_of_array(asked, memory, belief, key):
    mutual_information(memory, belief, key=key)
    mutual_information(MEMORY, BELIEF)
    for one, other in zip(asked[:2], asked[2:], strict=True):
        assert one.key == other.key
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)


def test_another_key_is_another_question(asked):
    mutual_information(MEMORY, BELIEF)
    mutual_information(MEMORY, BELIEF, key=jax.random.key(1))
    assert len({str(question.key) for question in asked}) == 4
    assert not np.array_equal(asked[1].y, asked[3].y)


@pytest.mark.parametrize(
    ("memory", "belief", "sentence"),
    [
        (MEMORY * np.nan, BELIEF, "every number in memory is finite, but got '2000 NaN or infinite of 2000'"),
        (MEMORY, BELIEF[:, :, None] * np.nan, "every number in belief is finite"),
        (MEMORY, BELIEF[:-1], r"memory and belief need the same number of samples, one pair a row, but got"),
        (MEMORY[:999], BELIEF[:999], "needs at least 1000 pairs, but got 999"),
        (MEMORY[:, None], BELIEF, r"memory is a batch of vectors \[N, d\] here and not of sets"),
        (torch.zeros(1000, 2, requires_grad=True), BELIEF, r"memory is an array of real numbers .* tensor\.detach"),
    ],
)
def test_bad_input_is_named_in_one_sentence(memory, belief, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        mutual_information(memory, belief)
    assert "\n" not in str(error.value)


def test_a_constant_memory_has_exactly_no_information_and_neither_has_its_control():
    estimate = mutual_information(np.ones(1000), BELIEF)
    assert estimate.shuffled is not None
    assert estimate.bits == estimate.shuffled.bits == 0


@pytest.mark.slow
def test_two_bits_of_gaussian_vectors_are_found_beside_a_control_of_none():
    estimate = mutual_information(*samples("Gaussian, d = 4, 2 bits", 4000))
    assert estimate.bits == pytest.approx(2, abs=0.14)
    assert estimate.interval is not None
    assert estimate.interval[0] < 2 < estimate.interval[1]
    assert 0 < estimate.standard_error < 0.1
    assert estimate.shuffled is not None
    assert estimate.num_samples == estimate.shuffled.num_samples == 4000
    assert estimate.shuffled.bits == pytest.approx(0, abs=0.05)
    assert "(best bound, N = 4000); shuffled " in str(estimate)
