"""Entropies and smoothed information against closed forms, limits and numerical integration."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import entropy, norm

from beliefscope.information import discrete_entropy, exact_entropy, smoothed_information
from beliefscope.information.entropy import row_labels


def test_exact_entropies():
    assert exact_entropy([0.5, 0.25, 0.125, 0.125]) == pytest.approx(1.75)
    assert exact_entropy([1.0, 0.0]) == 0
    p = np.random.default_rng(0).dirichlet(np.ones(50))
    assert exact_entropy(p) == pytest.approx(entropy(p, base=2))
    for bad in ([0.5, 0.6], [1.5, -0.5], [], [[1.0]], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="non-negative numbers that sum to 1"):
            exact_entropy(bad)


def test_frequent_rows_have_the_entropy_of_their_distribution():
    rng = np.random.default_rng(0)
    p = (rng.dirichlet(np.ones(102)) + 1 / 102) / 2
    values = rng.dirichlet(np.ones(106), size=102).astype(np.float32)
    result = discrete_entropy(values[rng.choice(102, size=20_000, p=p)])
    assert result.bits == pytest.approx(entropy(p, base=2), abs=0.03)
    assert result.distinct == 102
    assert not result.flagged


def test_the_correction_removes_most_of_the_bias():
    rng = np.random.default_rng(1)
    draws = rng.integers(0, 20, size=(200, 200, 1)).astype(float)
    corrected = np.mean([discrete_entropy(rows).bits for rows in draws])
    plug_in = np.mean([entropy(np.unique(rows, return_counts=True)[1], base=2) for rows in draws])
    assert abs(corrected - np.log2(20)) < 0.1 * abs(plug_in - np.log2(20))


def test_many_distinct_rows_are_flagged():
    def flagged(distinct, num_samples):
        return discrete_entropy(np.arange(num_samples) % distinct).flagged

    assert not flagged(10, 100)
    assert flagged(11, 100)


def test_one_value_has_no_entropy():
    assert discrete_entropy(np.ones((100, 3))) == (0.0, 1, False)


def test_the_last_bits_of_single_precision_do_not_split_a_belief():
    rng = np.random.default_rng(2)
    true = rng.dirichlet(np.full(106, 0.3), size=50)
    symbols = rng.integers(0, 50, size=2000)
    rows = (true[symbols] * (1 + 3e-7 * rng.normal(size=(2000, 106)))).astype(np.float32)
    result = discrete_entropy(rows)
    assert result.distinct <= 51  # an entry on an edge of both roundings is rare, not impossible
    assert result.bits == pytest.approx(entropy(np.bincount(symbols), base=2) + 49 / 4000 / np.log(2), abs=0.02)


def test_simple_fractions_on_the_edge_of_a_rounding_are_not_split():
    for value in (1 / 64, 1 / 2**13, 0.12345, 1.0, 0.1, 1e-5):
        near = np.array([value * (1 - 1e-7), value, value * (1 + 1e-7)])
        assert len(set(row_labels(near[:, None]))) == 1


def test_beliefs_that_differ_in_an_unlikely_state_are_distinct():
    rows = np.array([[1.0, 1e-9, 0.0], [1.0, 1e-10, 0.0], [1.0, 0.0, 1e-9], [1.0, 1.01e-9, 0.0], [1.0, 1e-9, 1e-40]])
    labels = row_labels(rows)
    assert labels[0] == labels[4]
    assert len(set(labels)) == 4


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match="every number in rows is finite"):
        discrete_entropy([[np.nan], [1.0]])


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
