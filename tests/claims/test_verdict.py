"""The statistics behind the verdicts: intervals, corrections, two groups."""

import math

import numpy as np
import pytest
from scipy import stats

from beliefscope.claims import ledger
from beliefscope.claims.verdict import (
    ashman_d,
    correlation_interval,
    difference_interval,
    holm,
    mean_interval,
    two_means,
)
from beliefscope.results.correlations import Points, pearson


def test_intervals_are_scipys():
    one, other = [1.0, 2.0, 4.0, 4.5], [0.5, 0.7, 1.9]
    found, wanted = mean_interval([*one, math.nan]), stats.ttest_1samp(one, 0)
    interval = wanted.confidence_interval(0.95)
    assert found == pytest.approx((np.mean(one), interval.low, interval.high, wanted.pvalue))
    found, wanted = difference_interval(one, other), stats.ttest_ind(one, other, equal_var=False)
    interval = wanted.confidence_interval(0.95)
    assert found == pytest.approx((np.mean(one) - np.mean(other), interval.low, interval.high, wanted.pvalue))


def test_seeds_that_agree_leave_no_doubt_and_one_seed_says_nothing():
    assert mean_interval([2.0, 2.0, 2.0]).p == 0
    assert mean_interval([0.0, 0.0]).p == 1
    assert difference_interval([2.0, 2.0], [1.0, 1.0]).p == 0
    assert math.isnan(mean_interval([2.0]).low)
    assert math.isnan(mean_interval([]).value)
    assert math.isnan(difference_interval([1.0, 2.0], [1.0]).p)


def test_a_correlations_p_value_agrees_with_its_interval():
    rng = np.random.default_rng(1)
    run, checkpoint = np.divmod(np.arange(60), 10)
    returns = rng.normal(size=60)
    for weight in (0.0, 0.2, 0.4, 1.0):
        found = pearson(Points(returns, weight * returns + rng.normal(size=60), run, checkpoint))
        assert (found.low > 0 or found.high < 0) == (correlation_interval(found).p < 0.05)


def test_holms_correction_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and never less than before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_two_means_and_ashmans_d_by_hand():
    values = np.array([10.0, 1.0, 12.0, 0.0, 2.0])
    assert two_means(values) == 6.0
    # Means 11 and 1, variances 1 and 2/3.
    assert ashman_d(values[values > 6], values[values < 6]) == pytest.approx(math.sqrt(2) * 10 / math.sqrt(5 / 3))
    assert math.isnan(two_means(np.array([3.0, 3.0])))
    assert math.isnan(two_means(np.zeros(0)))
    assert ashman_d(np.array([1.0]), np.array([2.0])) == math.inf


def test_two_means_is_the_best_of_all_splits():
    values = np.random.default_rng(2).normal(size=40)
    ordered = np.sort(values)
    cost = [ordered[:k].var() * k + ordered[k:].var() * (40 - k) for k in range(1, 40)]
    assert (values > two_means(values)).sum() == 39 - int(np.argmin(cost))


def test_halves_of_a_single_group_are_as_far_apart_as_the_eighth_claims_remark_says():
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    for values, wanted in ((stats.norm.ppf(quantiles), "2.65"), (quantiles, "3.46")):
        threshold = two_means(values)
        assert f"{ashman_d(values[values > threshold], values[values < threshold]):.2f}" == wanted
        assert wanted in ledger({})[7].remark
