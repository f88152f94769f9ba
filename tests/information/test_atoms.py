"""Smoothed information against its limits and numerical integration."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from beliefscope.information import exact_entropy, smoothed_information

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
MEMORIES = RNG.uniform(-1, 1, size=(30, 8))
WEIGHTS = RNG.dirichlet(np.ones(30))
LABELS = np.arange(30) // 2


def test_little_noise_gives_the_entropy_of_the_belief():
    result = smoothed_information(KEY, MEMORIES, LABELS, WEIGHTS, noise=1e-3)
    assert result.bits == pytest.approx(exact_entropy(WEIGHTS.reshape(15, 2).sum(1)), abs=1e-9)
    assert result.entropy == pytest.approx(result.bits)
    assert result.standard_error < 1e-9


def test_much_noise_leaves_nothing():
    result = smoothed_information(KEY, MEMORIES, LABELS, WEIGHTS, noise=1e4)
    assert abs(result.bits) < 4 * result.standard_error < 1e-3


def test_equal_memories_cannot_be_told_apart():
    memories = np.array([[0.0], [0.0], [1.0], [1.0]])
    result = smoothed_information(KEY, memories, [0, 1, 2, 3], np.full(4, 0.25), noise=0.01)
    assert result.bits == pytest.approx(1.0)
    assert result.entropy == pytest.approx(2.0)


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_two_atoms_agree_with_numerical_integration(noise):
    p, places = np.array([0.3, 0.7]), np.array([0.0, 1.5])

    def information_at(h):
        joint = p * norm.pdf(h, places, noise)
        terms = joint * np.log2(np.maximum(joint, 1e-300) / (p * joint.sum()))
        return terms.sum()

    truth = quad(information_at, -8 * noise, 1.5 + 8 * noise, limit=200)[0]
    result = smoothed_information(KEY, places[:, None], [7, 3], p, noise=noise, num_samples=20_000)
    assert abs(result.bits - truth) < 4 * result.standard_error
    assert result.standard_error < 0.01


def test_beliefs_may_be_rows():
    beliefs = np.random.default_rng(1).dirichlet(np.ones(5), size=15).astype(np.float32)[LABELS]
    by_rows = smoothed_information(KEY, MEMORIES, beliefs, WEIGHTS, noise=0.7)
    assert by_rows == pytest.approx(smoothed_information(KEY, MEMORIES, LABELS, WEIGHTS, noise=0.7))


def test_atoms_of_no_weight_and_double_atoms_change_little_or_nothing():
    once = smoothed_information(KEY, MEMORIES, LABELS, WEIGHTS, noise=0.7, num_samples=2000)
    more = smoothed_information(
        KEY,
        np.concatenate([MEMORIES, MEMORIES, 5 + MEMORIES]),
        np.concatenate([LABELS, LABELS, 100 + LABELS]),
        np.concatenate([WEIGHTS / 2, WEIGHTS / 2, 0 * WEIGHTS]),
        noise=0.7,
        num_samples=2000,
    )
    assert more.entropy == pytest.approx(once.entropy)
    assert abs(more.bits - once.bits) < 4 * np.hypot(more.standard_error, once.standard_error)


def test_the_reported_standard_error_is_the_spread_over_keys():
    results = [
        smoothed_information(jax.random.key(seed), MEMORIES, LABELS, WEIGHTS, noise=0.7, num_samples=20)
        for seed in range(20)
    ]
    spread, reported = np.std([r.bits for r in results], ddof=1), np.mean([r.standard_error for r in results])
    assert spread / 2 < reported < 2 * spread


def test_one_atom_has_no_information():
    assert smoothed_information(KEY, [[1.0, 2.0]], [0], [1.0], noise=0.1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"noise": 0.0}, "the noise is a positive number, but got 0.0"),
        ({"noise": float("inf")}, "the noise is a positive number"),
        ({"num_samples": 1}, "at least 2 draws, but got 1"),
        ({"weights": WEIGHTS[:5]}, "sum to 1|one entry for each atom"),
        ({"weights": 2 * WEIGHTS}, "sum to 1"),
        ({"labels": LABELS[:5]}, r"one entry for each atom, but got \(30, 5, 30\)"),
        ({"labels": LABELS + 0.5}, r"labels are one integer for each atom \[K\] or one row"),
        ({"memories": MEMORIES * np.nan}, "every number in memories is finite"),
    ],
)
def test_bad_input_is_named(changed, sentence):
    given = {"memories": MEMORIES, "labels": LABELS, "weights": WEIGHTS, "noise": 0.1, "num_samples": 5} | changed
    with pytest.raises(ValueError, match=sentence):
        smoothed_information(KEY, given.pop("memories"), given.pop("labels"), given.pop("weights"), **given)
