"""What was found, in sentences: two or three for each environment, made from its numbers, and what makes them doubtful.

`findings(results)` gives them in the order of the page. Intervals are of 95 %: over runs where there are three, else
those that the runs' own measurements have.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from beliefscope.claims.verdict import mean_interval
from beliefscope.paper import AGGREGATED, called
from beliefscope.results import Results
from beliefscope.results.correlations import Correlated, Correlation
from beliefscope.results.curves import Curve, Panel

_MIN_RUNS = 3
# What is said of the numbers that have a warning which begins with these words.
_SIGNS = {
    "failed fit": "the fit failed",
    "not converged": "the fit had not converged",
    "below a decoder's bound": "less than a decoder proves",
    "above H(b)": "above H(b), which cannot be",
    "near the ceiling": "near the most that the method can report",
    "at least": "a lower bound alone, for want of pairs",
    "too few pairs": "too low for want of pairs",
    "the interval is wide": "a wide interval",
    "% of the rows are rare atoms": "an atoms bound that may be far below, for want of pairs",
    "I(": "controls that contradict each other",
}


class Finding(NamedTuple):
    """What the numbers of one environment say."""

    environment: str
    sentences: tuple[str, ...]
    doubts: str  # how many numbers carry which warning; empty where none does


class _Interval(NamedTuple):
    value: float
    low: float
    high: float


def findings(results: Results) -> list[Finding]:
    """Of every environment of which anything was measured."""
    found = []
    for environment in results.environments:
        said = (_sufficiency(results, environment), _bits(results, environment), _together(results, environment))
        sentences = tuple(sentence for sentence in said if sentence)
        if sentences:
            found.append(Finding(environment, sentences, doubts(results, environment)))
    return found


def doubts(results: Results, environment: str) -> str:
    """How many of an environment's numbers carry which warning."""
    rows = zip(results.table["environment"], results.table["warnings"], strict=True)
    warned = [text or "" for name, text in rows if name == environment]
    each = [text.split("; ") for text in warned]
    counts = {
        meaning: sum(any(one.lstrip("0123456789").startswith(sign) for one in texts) for texts in each)
        for sign, meaning in _SIGNS.items()
    }
    said = [f"{meaning} ({count:,})" for meaning, count in counts.items() if count]
    return f"Warnings, among {len(warned):,} measurements: {'; '.join(said)}." if said else ""


def _sufficiency(results: Results, environment: str) -> str:
    """The share that the last memories hold, and that of the untrained ones on the same histories."""
    for panel in results.shares_of(environment):
        held = {cell: _held(curves) for cell, curves in panel.curves.items()}
        shares = {cell: each for cell, each in held.items() if not math.isnan(each.value)}
        before = {cell: _untrained(curves) for cell, curves in panel.curves.items()}
        if len(shares) == 1:
            ((cell, share),) = shares.items()
            sentence = f"Given the time, the memory of the {called(cell)} holds {_percent(share)} of what the belief "
            sentence += "knows about the state"
            return sentence + (f"; untrained it holds {_round(before[cell])} %." if before[cell] >= 0 else ".")
        if shares:
            each = [f"{called(cell)} {_percent(share)}{_while(before[cell])}" for cell, share in shares.items()]
            share = "this share of what the belief knows about the state"
            return f"Given the time, trained memories hold {share}: {', '.join(each)}."
    return ""


def _held(curves: Iterable[Curve]) -> _Interval:
    """At the last checkpoint of each run, on the histories of the run's last policy."""
    known = [each for curve in curves if (each := _last_share(curve)) is not None]
    if not known:
        return _Interval(math.nan, math.nan, math.nan)
    values, lows, highs = np.array(known).T
    if len(known) < _MIN_RUNS:
        return _Interval(float(values.mean()), float(lows.min()), float(highs.max()))
    over_runs = mean_interval(values.tolist())
    low, high = min(over_runs.low, float(lows.mean())), max(over_runs.high, float(highs.mean()))
    return _Interval(over_runs.value, max(0.0, low), min(1.0, high))


def _last_share(curve: Curve) -> tuple[float, float, float] | None:
    if not len(curve.episode) or curve.episode[-1] == 0:
        return None
    value, low, high = (float(curve.values[f"sufficiency_last{end}"][-1]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return None
    return value, value if math.isnan(low) else low, value if math.isnan(high) else high


def _untrained(curves: Iterable[Curve]) -> float:
    """The mean over runs; NaN where it is not known."""
    found = []
    for curve in curves:
        first = curve.values["sufficiency_last"][curve.episode == 0]
        control = curve.values["sufficiency_untrained"]
        found += [*first[np.isfinite(first)]] or [*control[np.isfinite(control)][-1:]]
    return float(np.mean(found)) if found else math.nan


def _bits(results: Results, environment: str) -> str:
    """H(b), what the atoms bound proves, and what each estimator reads, at the last checkpoint."""
    panels = results.panels_of(environment)
    shares = results.shares_of(environment)
    proven = _mean_of_last(shares, "atoms_bits")
    entropy = _mean_of_last([*shares, *panels], "entropy")  # of the rows of the bound, where there is one
    said = []
    if not math.isnan(entropy):
        said.append(f"After training the belief has H(b) = {entropy:.2f} bits.")
    if not math.isnan(proven):
        said.append(f"Memories share at least {proven:.2f} bits with it (atoms bound).")
    for panel in panels:
        read = _read(panel)
        if panel.instrument.estimator != "atoms" and not math.isnan(read.value):
            short = ", fewer than are there" if read.high < proven - 0.1 else ""
            said.append(f"{_name(panel)} reads {read.value:.2f} bits [{read.low:.2f}, {read.high:.2f}]{short}.")
    return " ".join(said).replace("-", "−")


def _read(panel: Panel) -> _Interval:
    """The bits of the last checkpoint: over runs where there are three, else two standard errors to each side."""
    last = [
        (float(curve.values["bits"][-1]), float(curve.values["standard_error"][-1]))
        for curve in _all(panel)
        if len(curve.episode) and math.isfinite(curve.values["bits"][-1])
    ]
    if not last:
        return _Interval(math.nan, math.nan, math.nan)
    values, errors = np.array(last).T
    if len(last) >= _MIN_RUNS:
        return _Interval(*mean_interval(values.tolist())[:3])
    reach = 2 * np.nan_to_num(errors)
    return _Interval(float(values.mean()), float((values - reach).min()), float((values + reach).max()))


def _mean_of_last(panels: Iterable[Panel], column: str) -> float:
    """Over all runs of the first panel that has it."""
    for panel in panels:
        last = [float(curve.values[column][-1]) for curve in _all(panel) if len(curve.episode)]
        known = [value for value in last if math.isfinite(value)]
        if known:
            return float(np.mean(known))
    return math.nan


def _together(results: Results, environment: str) -> str:
    """Do return and information rise together, and what is left of it given H(b)?"""
    rows = [row for row in results.correlations if (row.environment, row.cell) == (environment, AGGREGATED)]
    row = next((row for row in rows if not math.isnan(row.pearson.value)), None)
    if row is None:
        return ""
    found = _shown(row.pearson)
    if math.isnan(row.pearson.low):
        return f"Return and information correlate with {found}; an interval needs three runs.{_given(row)}"
    if row.pearson.low > 0:
        return f"Return and information rise together: their correlation is {found}.{_given(row)}"
    if row.pearson.high < 0:
        return f"Information falls where the return rises: their correlation is {found}.{_given(row)}"
    return f"Whether return and information rise together stays open: their correlation is {found}.{_given(row)}"


def _given(row: Correlated) -> str:
    found = row.partial
    if math.isnan(found.value):
        return ""
    nothing_left = found.low < 0 < found.high and row.pearson.low * row.pearson.high > 0
    return f" Given H(b) it is {_shown(found)}{': the rise of H(b) alone may explain it' if nothing_left else ''}."


def _shown(found: Correlation) -> str:
    interval = "" if math.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{interval}".replace("-", "−")


def _percent(share: _Interval) -> str:
    return f"{_round(share.value)} % [{_round(share.low)}, {_round(share.high)}]"


def _round(share: float) -> str:
    return f"{100 * share:.0f}".replace("-0", "0").replace("-", "−")


def _while(untrained: float) -> str:
    return "" if math.isnan(untrained) else f" (untrained {_round(untrained)} %)"


def _name(panel: Panel) -> str:
    return str(panel.instrument).split(", ")[0]


def _all(panel: Panel) -> Iterable[Curve]:
    return (curve for curves in panel.curves.values() for curve in curves)
