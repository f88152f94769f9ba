"""The rule of claim 10, on environments with irrelevant variables: it has the most parts of all."""

import math

import numpy as np

from beliefscope.report.evidence import MIN_SEEDS, Curve, Evidence, Series, all_points
from beliefscope.report.printed import CELLS, HIKE, MAZE
from beliefscope.report.rules import LEARNERS, Optimum, lstm_lowest, of_cells, without_verdict
from beliefscope.report.verdict import Part, difference_interval, mean_interval, missing, settled, shown, tested


def irrelevant(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 10."""
    parts = []
    for base in (MAZE, HIKE):
        for size in (1, 4):
            parts += _signs(evidence, base, size)
        parts += _with_size(evidence, base, optimum)
    for size in (1, 4):
        parts += _slopes(evidence, f"{MAZE} + {size} irrelevant", optimum[MAZE])
    return [*parts, *_four_irrelevant(evidence, optimum[MAZE])]


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


def _with_size(evidence: Evidence, base: str, optimum: Optimum) -> list[Part]:
    """With more irrelevant variables the optimum comes later, and irrelevant information is higher."""
    parts = []
    for cell in CELLS:
        few, many = (evidence.series(f"{base} + {size} irrelevant", cell, "irrelevant") for size in (1, 4))
        enough, name = few.enough and many.enough, f"{base}, {cell}, d = 4 − d = 1"
        found = difference_interval(many.finals("bits"), few.finals("bits"))
        parts.append(tested(f"{name}: final irrelevant I", found, sign=1, enough=enough))
        level = 0.95 * optimum[base] if base == MAZE else _near_best(few, many)
        episodes = ([_reached(curve, level) for curve in each.curves] for each in (many, few))
        later = difference_interval(*episodes)
        if base == HIKE or cell in LEARNERS:
            parts.append(tested(f"{name}: episode of the optimum", later, sign=1, enough=enough))
        else:
            parts += without_verdict({f"{name}: episode of the optimum": later})
    return parts


def _near_best(*series: Series) -> float:
    """95 % of the way from the mean return at the start to the best mean return of a checkpoint."""
    start = np.mean([value for each in series for value in each.starts("returns")] or [math.nan])
    means = []
    for each in series:
        points = all_points([each])
        means += [points.returns[points.checkpoint == episode].mean() for episode in np.unique(points.checkpoint)]
    return float(start + 0.95 * (max(means) - start)) if means else math.nan


def _reached(curve: Curve, level: float) -> float:
    """The first episode whose return is at least this; if there is none, one step of 100 past the last."""
    if math.isnan(level):
        return math.nan
    there = curve.episode[curve.returns >= level]
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
    return float(np.polyfit(curve.episode[kept] / 1000, curve.bits[kept], 1)[0])


def _four_irrelevant(evidence: Evidence, optimum: float) -> list[Part]:
    """The T-Maze with d = 4: irrelevant above relevant information, LSTM and BRC fail, LSTM's is the lowest."""
    environment, parts = f"{MAZE} + 4 irrelevant", []
    relevant, irrelevant = (of_cells(evidence, environment, part) for part in ("relevant", "irrelevant"))
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
        short = mean_interval([value - 0.9 * optimum for value in relevant[cell].finals("returns")])
        name = f"{environment}, {cell}: final J − 0.9 J*"
        parts.append(tested(name, short, sign=-1, enough=relevant[cell].enough))
    return [*parts, lstm_lowest(relevant, f"{environment}: lowest mean final relevant I")]
