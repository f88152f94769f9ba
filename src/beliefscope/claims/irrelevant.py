"""The claim about irrelevant variables (10), which has the most parts of all."""

import math

import numpy as np

from beliefscope.claims.evidence import Evidence, Series, all_points
from beliefscope.claims.verdict import (
    LEARNERS,
    OVER_SEEDS,
    Part,
    claim,
    difference_interval,
    lstm_lowest,
    mean_interval,
    missing,
    settled,
    shown,
    tested,
    without_verdict,
)
from beliefscope.paper import CELLS, HIKE, MAZE
from beliefscope.results.curves import MIN_SEEDS, Curve


@claim(
    10,
    statement=(
        "With irrelevant variables, relevant mutual information rises and irrelevant falls, also after the "
        "optimum. d = 4: irrelevant stays above relevant (T-Maze); LSTM and BRC fail, LSTM's relevant mutual "
        "information is the lowest, BRC's does not rise, and its irrelevant does not fall even with d = 1. With "
        "larger d the optimum comes later and irrelevant mutual information is higher."
    ),
    where="section 4.4 and appendix H, figures 8, 9 and 13 to 20",
    rule=(
        "T-Maze, L = 50, and Mountain Hike, d = 1 and 4, each cell: final − start of I > 0 for the relevant and "
        f"< 0 for the irrelevant part ({OVER_SEEDS}), but for BRC in the T-Maze, where neither the 95 % interval of "
        "the relevant part (d = 4) may lie above 0 nor that of the irrelevant part (d = 1, d = 4) below it. "
        "T-Maze, GRU, nBRC and MGU: the slope of I by least squares from a run's first J ≥ 0.95 J* on (at least "
        "10 checkpoints, at least 4 runs) has the same signs; LSTM and BRC, which fail, are shown. T-Maze, d = "
        "4: at every checkpoint the mean irrelevant I over seeds exceeds the mean relevant I, each cell; LSTM "
        "and BRC: final J < 0.9 J*; LSTM has the lowest mean final relevant I of the five. d = 4 against d = 1: "
        "final irrelevant I is higher, each cell, both environments; the first episode with J ≥ 0.95 J* is "
        "later (T-Maze: GRU, nBRC, MGU; Mountain Hike, where J* is unknown: each cell, 95 % of the way from its "
        "mean J at the start to its best mean J of a checkpoint with either d); a run that never gets there "
        "counts as 100 episodes past its last checkpoint."
    ),
)
def relevant_and_irrelevant(evidence: Evidence) -> list[Part]:
    parts = []
    for base in (MAZE, HIKE):
        for size in (1, 4):
            parts += _signs(evidence, base, size)
        parts += _with_size(evidence, base)
    for size in (1, 4):
        parts += _slopes(evidence, f"{MAZE} + {size} irrelevant", evidence.optimum[MAZE])
    return [*parts, *_four_irrelevant(evidence, evidence.optimum[MAZE])]


def _signs(evidence: Evidence, base: str, size: int) -> list[Part]:
    """Relevant information rises, irrelevant information falls; BRC in the T-Maze is the paper's exception."""
    parts, environment = [], f"{base} + {size} irrelevant"
    for cell in CELLS:
        for part, sign in (("relevant", 1), ("irrelevant", -1)):
            series = evidence.series(environment, cell, part)
            found, name = mean_interval(series.changes("bits")), f"{environment}, {cell}: Δ{part} I"
            excepted = base == MAZE and cell == "BRC" and (size == 4 or part == "irrelevant")
            if not excepted:
                parts.append(tested(name, found, sign=1 if sign == 1 else -1, enough=series.enough))
            elif math.isnan(found.value):
                parts.append(missing(name))
            else:
                moved = found.low > 0 if sign == 1 else found.high < 0
                text = f"{shown(found)} (not to {'rise' if sign == 1 else 'fall'})"
                parts.append(settled(name, text, holds=not moved, enough=series.enough))
    return parts


def _with_size(evidence: Evidence, base: str) -> list[Part]:
    """With more irrelevant variables the optimum comes later, and irrelevant information is higher."""
    parts = []
    for cell in CELLS:
        few, many = (evidence.series(f"{base} + {size} irrelevant", cell, "irrelevant") for size in (1, 4))
        enough, name = few.enough and many.enough, f"{base}, {cell}, d = 4 − d = 1"
        found = difference_interval(many.finals("bits"), few.finals("bits"))
        parts.append(tested(f"{name}: final irrelevant I", found, sign=1, enough=enough))
        level = 0.95 * evidence.optimum[base] if base == MAZE else _near_best(few, many)
        episodes = ([_reached(curve, level) for curve in each.curves] for each in (many, few))
        later = difference_interval(*episodes)
        if base == HIKE or cell in LEARNERS:
            parts.append(tested(f"{name}: episode of the optimum", later, sign=1, enough=enough))
        else:
            parts += without_verdict({f"{name}: episode of the optimum": later})
    return parts


def _near_best(*series: Series) -> float:
    """95 % of the way from the mean return at the start to the best mean return of a checkpoint."""
    start = np.mean([value for each in series for value in each.starts("return")] or [math.nan])
    means = []
    for each in series:
        points = all_points([each])
        means += [points.returns[points.checkpoint == episode].mean() for episode in np.unique(points.checkpoint)]
    return float(start + 0.95 * (max(means) - start)) if means else math.nan


def _reached(curve: Curve, level: float) -> float:
    """The first episode whose return is at least this; if there is none, one step of 100 past the last."""
    if math.isnan(level):
        return math.nan
    there = curve.episode[curve.values["return"] >= level]
    return float(there[0]) if len(there) else float(curve.episode[-1]) + 100


def _slopes(evidence: Evidence, environment: str, optimum: float) -> list[Part]:
    """Bits per 1000 episodes, from the first checkpoint at the optimum on."""
    parts = []
    for cell in CELLS:
        for part, sign in (("relevant", 1), ("irrelevant", -1)):
            series = evidence.series(environment, cell, part)
            slopes = [_slope(curve, curve.episode >= _reached(curve, 0.95 * optimum)) for curve in series.curves]
            slopes = [slope for slope in slopes if not math.isnan(slope)]
            name = f"{environment}, {cell}: slope of {part} I after the optimum"
            found, enough = mean_interval(slopes), series.enough and len(slopes) >= MIN_SEEDS
            if cell in LEARNERS:
                parts.append(tested(name, found, sign=1 if sign == 1 else -1, enough=enough))
            else:
                parts += without_verdict({name: found})
    return parts


def _slope(curve: Curve, kept: np.ndarray) -> float:
    """By least squares; NaN with fewer than 10 checkpoints."""
    if kept.sum() < 10:
        return math.nan
    return float(np.polyfit(curve.episode[kept] / 1000, curve.values["bits"][kept], 1)[0])


def _four_irrelevant(evidence: Evidence, optimum: float) -> list[Part]:
    """The T-Maze with d = 4: irrelevant above relevant information, LSTM and BRC fail, LSTM's is the lowest."""
    environment, parts = f"{MAZE} + 4 irrelevant", []
    relevant, irrelevant = (evidence.of_cells(environment, part) for part in ("relevant", "irrelevant"))
    for cell in CELLS:
        name = f"{environment}, {cell}: least irrelevant − relevant I of a checkpoint's means"
        above, below = all_points([irrelevant[cell]]), all_points([relevant[cell]])
        shared = np.intersect1d(above.checkpoint, below.checkpoint)
        if not len(shared):
            parts.append(missing(name))
            continue
        gaps = [above.bits[above.checkpoint == e].mean() - below.bits[below.checkpoint == e].mean() for e in shared]
        least, enough = float(min(gaps)), relevant[cell].enough and irrelevant[cell].enough
        parts.append(settled(name, f"{least:.4g}", holds=least > 0, enough=enough))
    for cell in ("LSTM", "BRC"):
        short = mean_interval([value - 0.9 * optimum for value in relevant[cell].finals("return")])
        name = f"{environment}, {cell}: final J − 0.9 J*"
        parts.append(tested(name, short, sign=-1, enough=relevant[cell].enough))
    return [*parts, lstm_lowest(relevant, f"{environment}: lowest mean final relevant I")]
