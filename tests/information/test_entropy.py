"""Entropies against closed forms, and rows that differ in their last digits only."""

import numpy as np
import pytest
from scipy.stats import entropy

from beliefscope.information import discrete_entropy, exact_entropy
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
