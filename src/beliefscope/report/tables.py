"""The tables of a report, as rows of plain values: correlations, hyperparameters, the inventory of runs.

They take `Results` and return NamedTuples; how they look is the page's affair.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from beliefscope.report.correlations import Correlation, Points, partial, pearson, spearman, trend_free
from beliefscope.report.printed import AGGREGATED, CELL_NAMES, DRQN, HIKE_NOISE, MINE, PEARSON, SPEARMAN
from beliefscope.report.results import Curve, Panel, Results

_NOTHING = Correlation(math.nan, math.nan, math.nan, 0, 0)


class Correlated(NamedTuple):
    """How return and information go together in one environment, for one cell or all of them."""

    environment: str
    instrument: str
    cell: str
    pearson: Correlation
    pearson_printed: float | None  # the paper's
    spearman: Correlation
    spearman_printed: float | None
    trend_free: Correlation
    partial: Correlation  # given H(b), where it is known at every point


class Hyperparameter(NamedTuple):
    """A setting: what the study has, and what the paper has."""

    of: str  # DRQN, MINE or Mountain Hike
    symbol: str
    meaning: str
    values: str
    printed: str
    differs: bool


class Inventory(NamedTuple):
    """One run."""

    run: str
    environment: str
    cell: str
    seed: int
    state: str
    done: int  # of its pieces
    pieces: int
    final_return: float | None
    final_bits: float | None  # of the belief, or of its relevant part, under the greedy policy


def correlations(results: Results) -> list[Correlated]:
    """A row for all cells and one for each, for every panel of greedy histories; only where something was measured."""
    rows = []
    for environment in results.environments:
        for panel in results.panels_of(environment):
            curves = {AGGREGATED: [curve for each in panel.curves.values() for curve in each], **panel.curves}
            rows += [_correlated(panel, cell, each) for cell, each in curves.items()]
    return rows


def points(curves: Iterable[Curve]) -> tuple[Points, np.ndarray]:
    """Every checkpoint at which return and bits are finite, and H(b) there (NaN where unknown or flagged)."""
    found: list[tuple[float, float, int, int, float]] = []
    for number, curve in enumerate(curves):
        rows = zip(*(curve.values[name] for name in ("return", "bits", "entropy")), curve.episode, strict=True)
        found += [(j, i, number, episode, h) for j, i, h, episode in rows if math.isfinite(j) and math.isfinite(i)]
    returns, bits, run, checkpoint, entropy = np.array(found, float).reshape(-1, 5).T
    return Points(returns, bits, run.astype(int), checkpoint.astype(int)), entropy


def hyperparameters(results: Results) -> list[Hyperparameter]:
    """Of the learners, of the paper's estimator and of the Mountain Hike, beside the paper's."""
    learners = [spec["learner"] for spec in results.specs.values()]
    instruments = [panel.instrument._asdict() for panel in results.panels if panel.instrument.epochs is not None]
    pomdps = [spec["pomdp"].get("pomdp", spec["pomdp"]) for spec in results.specs.values()]
    hikes = [pomdp for pomdp in pomdps if pomdp["class"] == "MountainHike"]
    tables = {"DRQN": (DRQN, learners), "MINE": (MINE, instruments), "Mountain Hike": (HIKE_NOISE, hikes)}
    rows = []
    for of, (printed, found) in tables.items():
        for name, (symbol, value, meaning) in printed.items():
            values = sorted({each[name] for each in found if name in each})
            if values:
                text = ", ".join(f"{each:g}" for each in values)
                rows.append(Hyperparameter(of, symbol, meaning, text, f"{value:g}", values != [value]))
    return rows


def inventory(results: Results) -> list[Inventory]:
    """Every run of the study, begun or not."""
    bits = _final_bits(results)
    returns = {each.run: each for curves in results.returns.values() for each in curves}
    rows = []
    for run in results.runs:
        states = Counter(results.states[piece.name] for piece in run.pieces)
        last = returns[run.id].values[-1] if run.id in returns and len(returns[run.id].values) else None
        state = next(name for name in ("diverged", "failed", "running", "missing", "done") if states[name])
        final = None if last is None else float(last)
        about = (run.id, run.environment, CELL_NAMES.get(run.cell, run.cell), run.seed)
        rows.append(Inventory(*about, state, states["done"], len(run.pieces), final, bits.get(run.id)))
    return rows


def _correlated(panel: Panel, cell: str, curves: Iterable[Curve]) -> Correlated:
    found, entropy = points(curves)
    known = len(found.run) > 0
    given_entropy = known and bool(np.isfinite(entropy).all())
    return Correlated(
        environment=panel.environment,
        instrument=str(panel.instrument),
        cell=CELL_NAMES.get(cell, cell),
        pearson=pearson(found) if known else _NOTHING,
        pearson_printed=PEARSON.get(panel.environment, {}).get(cell),
        spearman=spearman(found) if known else _NOTHING,
        spearman_printed=SPEARMAN.get(panel.environment, {}).get(cell),
        trend_free=trend_free(found) if known else _NOTHING,
        partial=partial(found, entropy) if given_entropy else _NOTHING,
    )


def _final_bits(results: Results) -> dict[str, float]:
    """At the last checkpoint measured, by run."""
    found: dict[str, Any] = {}
    for environment in results.environments:
        for panel in results.panels_of(environment):
            for curve in (curve for each in panel.curves.values() for curve in each):
                found.setdefault(curve.run, float(curve.values["bits"][-1]))
    return found
