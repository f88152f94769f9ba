"""Correlations against scipy and by hand; their intervals by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from beliefscope.results.correlations import Points, partial, pearson, rounded, spearman, trend_free

RNG = np.random.default_rng(0)


def points(returns, bits):
    """Arrays [runs, checkpoints] as points."""
    runs, checkpoints = np.shape(returns)
    run, checkpoint = np.divmod(np.arange(runs * checkpoints), checkpoints)
    return Points(np.ravel(returns).astype(float), np.ravel(bits).astype(float), run, checkpoint)


def some(runs=4, checkpoints=11):
    returns = RNG.normal(size=(runs, checkpoints))
    return points(returns, 0.5 * returns + RNG.normal(size=(runs, checkpoints)))


def test_the_coefficients_are_scipys():
    given = some()
    assert pearson(given).value == pytest.approx(stats.pearsonr(given.returns, given.bits).statistic)
    assert spearman(given).value == pytest.approx(stats.spearmanr(given.returns, given.bits).statistic)
    ties = given._replace(returns=np.round(given.returns))
    assert spearman(ties).value == pytest.approx(stats.spearmanr(ties.returns, ties.bits).statistic)


def test_returns_that_differ_in_their_last_bits_are_ties():
    given = some()
    noisy = given._replace(returns=np.round(given.returns) + 3 + 1e-9 * RNG.normal(size=44))
    assert spearman(noisy).value == pytest.approx(stats.spearmanr(np.round(given.returns), given.bits).statistic)
    np.testing.assert_array_equal(rounded(np.array([1.45671234, -1234567.8, 0.0])), [1.45671, -1234570.0, 0.0])


def test_the_interval_is_the_jackknife_by_hand():
    given = some(runs=5)
    found = pearson(given)
    z = [
        np.arctanh(stats.pearsonr(given.returns[given.run != run], given.bits[given.run != run]).statistic)
        for run in range(5)
    ]
    error = np.sqrt(4 / 5 * np.sum((np.array(z) - np.mean(z)) ** 2))
    reach = stats.t.ppf(0.975, 4) * error
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(np.arctanh(found.value) + np.array([-reach, reach]))))
    assert (found.num_runs, found.num_points) == (5, 55)


def test_two_curves_that_merely_both_rise_correlate_until_the_trend_is_taken_away():
    rise = np.linspace(0, 5, 51)
    given = points(rise + RNG.normal(size=(20, 51)), rise + RNG.normal(size=(20, 51)))
    assert pearson(given).low > 0.6
    without = trend_free(given)
    assert without.low < 0 < without.high


def test_the_partial_coefficient_is_that_of_the_residuals():
    given, held = some(), RNG.normal(size=44)
    given = given._replace(returns=given.returns + 3 * held, bits=given.bits + 3 * held)
    r = np.atleast_2d(np.corrcoef([given.returns, given.bits, held]))
    by_hand = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert partial(given, held).value == pytest.approx(by_hand)
    assert pearson(given).value > by_hand + 0.2


@pytest.mark.parametrize("runs", [4, 20])
def test_the_interval_covers_the_truth_in_autocorrelated_runs(runs):
    """Each run is its own level plus a slow wandering; the truth is the correlation of the whole population."""
    covered, trials, share, slow = 0, 200, 0.6, 0.9
    for _ in range(trials):
        series = np.zeros((2, runs, 30))
        shocks = RNG.normal(size=(2, runs, 30)) * np.sqrt(1 - slow**2)
        series[:, :, 0] = RNG.normal(size=(2, runs))
        for time in range(1, 30):
            series[:, :, time] = slow * series[:, :, time - 1] + shocks[:, :, time]
        returns = series[0]
        bits = share * series[0] + np.sqrt(1 - share**2) * series[1]
        found = pearson(points(returns, bits))
        covered += found.low <= share <= found.high
    assert covered / trials >= 0.9


def test_what_never_varies_has_no_correlation_and_one_run_no_interval():
    found = pearson(points(np.ones((3, 5)), RNG.normal(size=(3, 5))))
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    one = pearson(some(runs=1))
    assert math.isfinite(one.value)
    assert math.isnan(one.high)


def test_wrong_points_are_refused():
    given = some()
    with pytest.raises(ValueError, match="one entry for each point"):
        pearson(given._replace(bits=given.bits[1:]))
    with pytest.raises(ValueError, match="leave out runs that failed"):
        pearson(given._replace(bits=given.bits * np.nan))
    with pytest.raises(ValueError, match="one value for each point"):
        partial(given, np.ones(3))


def test_two_points_have_no_coefficient_and_three_have_none_given_another():
    few = Points(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 0]))
    assert all(math.isnan(of(few).value) for of in (pearson, spearman, trend_free))
    three = Points(*(np.array(each) for each in ([0.0, 1.0, 5.0], [0.0, 2.0, 3.0], [0, 1, 2], [0, 0, 0])))
    assert not math.isnan(pearson(three).value)
    assert math.isnan(partial(three, np.array([1.0, 4.0, 2.0])).value)
