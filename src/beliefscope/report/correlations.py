"""Do return and information rise together? Correlations over all (checkpoint, run) points, with honest intervals.

The unit is the training run, not the point: the checkpoints of a run resemble each other, so that intervals come from
leaving out one run at a time. Two curves that merely both rise correlate; beside the plain coefficient stand the
trend-free one (both less their mean over runs at each checkpoint) and the partial one given the entropy of the belief.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from beliefscope.errors import require

_DIGITS = 6  # of a return, before it is ranked: episodes of equal return differ in their last bits
_LEVEL = 0.95
_MIN_RUNS = 3  # two runs give two numbers, which may agree by chance or, without their trend, by necessity

Values = Float[np.ndarray, " points"]
Labels = Int[np.ndarray, " points"]
Coefficient = Callable[[Values, Values], float]


class Correlation(NamedTuple):
    """A coefficient and its 95 % interval; NaN where there is nothing to correlate, or too few runs for an interval."""

    value: float
    low: float
    high: float
    num_runs: int
    num_points: int


class Points(NamedTuple):
    """The checkpoints of some runs; runs and checkpoints are any labels."""

    returns: Values  # Ĵ
    bits: Values  # Î
    run: Labels
    checkpoint: Labels


def pearson(points: Points) -> Correlation:
    """Pearson's coefficient of Ĵ and Î."""
    return _with_interval(points, _pearson)


def spearman(points: Points) -> Correlation:
    """Spearman's coefficient, Ĵ rounded to six significant digits before it is ranked."""
    return _with_interval(points._replace(returns=rounded(points.returns)), _spearman)


def trend_free(points: Points) -> Correlation:
    """Pearson's coefficient of both less their means over the runs at the same checkpoint: what is left of it once
    all that happens to every run alike is taken away."""
    return _with_interval(_without_trend(_checked(points)), _pearson)


def partial(points: Points, given: Values) -> Correlation:
    """Pearson's coefficient of what a linear fit to a third variable, H(b) say, leaves of both."""
    checked = _checked(points)
    require(
        given.shape == checked.returns.shape,
        rule="what is held fixed has one value for each point",
        received=(given.shape, checked.returns.shape),
        advice="pass arrays of one length",
    )
    return _with_interval(checked, _pearson, given)


def rounded(values: Values) -> Values:
    """To six significant digits."""
    return np.array([float(f"{value:.{_DIGITS - 1}e}") for value in values])


def _with_interval(points: Points, coefficient: Coefficient, given: Values | None = None) -> Correlation:
    """Delete-one-run jackknife of Fisher's z, with Student's t of one degree of freedom less than there are runs."""
    points = _checked(points)

    def of(kept: np.ndarray) -> float:
        returns, bits = points.returns[kept], points.bits[kept]
        if given is not None:
            returns, bits = (_residuals(values, given[kept]) for values in (returns, bits))
        return coefficient(returns, bits)

    runs, value = np.unique(points.run), of(np.ones(len(points.run), bool))
    without = (
        np.array([_fisher(of(points.run != run)) for run in runs]) if len(runs) >= _MIN_RUNS else np.array([math.nan])
    )
    if math.isnan(value) or not np.isfinite(without).all():
        return Correlation(value, math.nan, math.nan, len(runs), len(points.run))
    error = math.sqrt((len(runs) - 1) / len(runs) * np.sum((without - without.mean()) ** 2))
    reach = float(stats.t.ppf((1 + _LEVEL) / 2, len(runs) - 1)) * error
    low, high = (math.tanh(_fisher(value) + side * reach) for side in (-1, 1))
    return Correlation(value, low, high, len(runs), len(points.run))


def _pearson(x: Values, y: Values) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    # Numbers that are equal but for rounding have no correlation.
    tiny = 1e-12 * len(x)
    if scale == 0 or np.abs(x).max() < tiny or np.abs(y).max() < tiny:
        return math.nan
    return float(np.clip(x @ y / scale, -1, 1))


def _spearman(x: Values, y: Values) -> float:
    return _pearson(stats.rankdata(x), stats.rankdata(y))


def _fisher(value: float) -> float:
    return math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12)) if not math.isnan(value) else math.nan


def _residuals(values: Values, given: Values) -> Values:
    design = np.stack([np.ones_like(given), given], axis=1)
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def _without_trend(points: Points) -> Points:
    _, place = np.unique(points.checkpoint, return_inverse=True)
    count = np.bincount(place)

    def centred(values: Values) -> Values:
        return values - (np.bincount(place, values) / count)[place]

    return points._replace(returns=centred(points.returns), bits=centred(points.bits))


def _checked(points: Points) -> Points:
    lengths = {len(part) for part in points}
    require(
        len(lengths) == 1 and lengths != {0},
        rule="returns, bits, runs and checkpoints have one entry for each point, of which there is at least one",
        received=[len(part) for part in points],
        advice="pass arrays of one length",
    )
    require(
        bool(np.isfinite(points.returns).all() and np.isfinite(points.bits).all()),
        rule="returns and bits are finite",
        received="NaN or infinity",
        advice="leave out runs that failed",
    )
    return points
