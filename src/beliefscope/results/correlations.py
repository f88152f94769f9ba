"""Do return and information rise together? Correlations over all (checkpoint, run) points, with honest intervals.

The unit is the training run, not the point: the checkpoints of a run resemble each other, so intervals come from
leaving out one run at a time. Any two curves that both rise are correlated. So two more coefficients are given: the
trend-free one (both minus their mean over runs at each checkpoint) and the partial one given the entropy of the belief.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from beliefscope.errors import require
from beliefscope.paper import AGGREGATED, PEARSON, SPEARMAN, called
from beliefscope.results.curves import Curve, Panel, counted

_DIGITS = 6  # of a return, before it is ranked: episodes of equal return differ in their last bits
_LEVEL = 0.95
_MIN_POINTS = 3  # two points lie on a line, whatever they are
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


class Correlated(NamedTuple):
    """How return and information correlate in one environment, for one cell or all of them."""

    environment: str
    instrument: str
    cell: str
    pearson: Correlation
    pearson_printed: float | None  # the paper's
    spearman: Correlation
    spearman_printed: float | None
    trend_free: Correlation
    partial: Correlation  # given H(b), where it is known at every point


_NOTHING = Correlation(math.nan, math.nan, math.nan, 0, 0)


def pearson(points: Points) -> Correlation:
    """Pearson's coefficient of Ĵ and Î."""
    return _with_interval(points, _pearson)


def spearman(points: Points) -> Correlation:
    """Spearman's coefficient, Ĵ rounded to six significant digits before it is ranked."""
    return _with_interval(points._replace(returns=rounded(points.returns)), _spearman)


def trend_free(points: Points) -> Correlation:
    """Pearson's coefficient of both minus their means over the runs at the same checkpoint: the correlation without
    the trend that all runs share."""
    return _with_interval(_without_trend(_checked(points)), _pearson)


def partial(points: Points, given: Values) -> Correlation:
    """Pearson's coefficient of the residuals of both after a linear fit to a third variable, such as H(b)."""
    checked = _checked(points)
    require(
        given.shape == checked.returns.shape,
        rule="what is held fixed has one value for each point",
        received=(given.shape, checked.returns.shape),
        advice="pass arrays of one length",
    )
    return _with_interval(checked, _pearson, given)


def correlated(panel: Panel) -> list[Correlated]:
    """A row for all cells of a panel, and one for each."""
    curves = {cell: counted(panel, cell)[0] for cell in panel.curves}
    return [
        _row(panel, cell, each)
        for cell, each in {AGGREGATED: [curve for each in curves.values() for curve in each], **curves}.items()
    ]


def points(curves: Iterable[Curve]) -> tuple[Points, np.ndarray]:
    """Every checkpoint at which return and bits are finite, and H(b) there (NaN where unknown or flagged)."""
    found: list[tuple[float, float, int, int, float]] = []
    for number, curve in enumerate(curves):
        rows = zip(*(curve.values[name] for name in ("return", "bits", "entropy")), curve.episode, strict=True)
        found += [(j, i, number, episode, h) for j, i, h, episode in rows if math.isfinite(j) and math.isfinite(i)]
    returns, bits, run, checkpoint, entropy = np.array(found, float).reshape(-1, 5).T
    return Points(returns, bits, run.astype(int), checkpoint.astype(int)), entropy


def correlations_csv(rows: Iterable[Correlated]) -> str:
    """A line for each row: every coefficient with the ends of its interval, and the paper's."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    about, measured = ("environment", "instrument", "cell"), ("pearson", "spearman", "trend_free", "partial")
    printed = ("pearson_printed", "spearman_printed")
    writer.writerow([*about, *(f"{name}{end}" for name in measured for end in ("", "_low", "_high")), *printed])
    for row in rows:
        found = [getattr(row, name) for name in measured]
        numbers = [number for each in found for number in (each.value, each.low, each.high)]
        shown = ["" if math.isnan(number) else f"{number:.4f}" for number in numbers]
        writer.writerow([*(getattr(row, name) for name in about), *shown, *(getattr(row, name) for name in printed)])
    return text.getvalue()


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

    fewest = _MIN_POINTS + (given is not None)  # what is held fixed takes one more
    runs, every = np.unique(points.run), np.ones(len(points.run), bool)
    value = of(every) if len(every) >= fewest else math.nan
    without = (
        np.array([_fisher(of(points.run != run)) for run in runs]) if len(runs) >= _MIN_RUNS else np.array([math.nan])
    )
    if math.isnan(value) or not np.isfinite(without).all():
        return Correlation(value, math.nan, math.nan, len(runs), len(points.run))
    error = math.sqrt((len(runs) - 1) / len(runs) * np.sum((without - without.mean()) ** 2))
    from scipy import stats  # it takes a second to import, and a table needs none of it

    reach = float(stats.t.ppf((1 + _LEVEL) / 2, len(runs) - 1)) * error
    low, high = (math.tanh(_fisher(value) + side * reach) for side in (-1, 1))
    return Correlation(value, low, high, len(runs), len(points.run))


def _row(panel: Panel, cell: str, curves: Iterable[Curve]) -> Correlated:
    found, entropy = points(curves)
    known = len(found.run) > 0
    given_entropy = known and bool(np.isfinite(entropy).all())
    return Correlated(
        environment=panel.environment,
        instrument=str(panel.instrument),
        cell=called(cell),
        pearson=pearson(found) if known else _NOTHING,
        pearson_printed=PEARSON.get(panel.environment, {}).get(cell),
        spearman=spearman(found) if known else _NOTHING,
        spearman_printed=SPEARMAN.get(panel.environment, {}).get(cell),
        trend_free=trend_free(found) if known else _NOTHING,
        partial=partial(found, entropy) if given_entropy else _NOTHING,
    )


def _pearson(x: Values, y: Values) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    # Numbers that are equal but for rounding have no correlation.
    tiny = 1e-12 * len(x)
    if scale == 0 or np.abs(x).max() < tiny or np.abs(y).max() < tiny:
        return math.nan
    return float(np.clip(x @ y / scale, -1, 1))


def _spearman(x: Values, y: Values) -> float:
    from scipy import stats

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
        rule="returns, bits, runs and checkpoints have one entry for each point, and there is at least one point",
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
