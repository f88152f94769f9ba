"""The claims about several environments.

Every one: both rise (1), they correlate (2), information generalises to every ε (11). Those with irrelevant variables:
the claim with the most parts of all (10).
"""

import math

import numpy as np
from scipy import stats

from beliefscope.claims.evidence import Evidence, Series, all_points, enough_of
from beliefscope.claims.verdict import (
    BOTH,
    LEARNERS,
    OVER_SEEDS,
    Part,
    claim,
    correlation_interval,
    difference_interval,
    lstm_lowest,
    mean_interval,
    missing,
    settled,
    shown,
    tested,
    without_verdict,
)
from beliefscope.paper import AGGREGATED, CELLS, ENVIRONMENTS, HIKE, MAZE, PEARSON, SPEARMAN
from beliefscope.results.correlations import pearson, spearman, trend_free
from beliefscope.results.curves import MIN_SEEDS, Curve, band

EPSILONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@claim(
    1,
    statement="Return and mutual information rise in training, in every environment and for every cell.",
    where="sections 4.2 and 4.3, figures 2, 3, 4, 6 and 7",
    rule=(
        "Final − start > 0 for J and for I, in each of the five environments for each of the five cells "
        f"({OVER_SEEDS}); shown without a verdict where they were measured: the same for I/H(b), where H(b) is not "
        "flagged at any checkpoint used, and for I at ε = 1."
    ),
)
def both_rise(evidence: Evidence) -> list[Part]:
    parts = []
    for environment in ENVIRONMENTS:
        for cell, series in evidence.of_cells(environment).items():
            name = f"{environment}, {cell}"
            for symbol, what in BOTH:
                found = mean_interval(series.changes(what))
                parts.append(tested(f"{name}: Δ{symbol}", found, sign=1, enough=series.enough))
            random = evidence.series(environment, cell, epsilon=1.0)
            extras = {"Δ(I/H(b))": series.changes("fraction"), "ΔI at ε = 1": random.changes("bits")}
            parts += without_verdict({f"{name}: {extra}": mean_interval(values) for extra, values in extras.items()})
    return parts


@claim(
    2,
    statement="Return and mutual information correlate.",
    where="sections 4.2 and 4.3, appendix G, tables 4 and 5",
    rule=(
        "Pearson's and Spearman's coefficient over all (checkpoint, run) points of the five cells: the 95 % "
        "interval of the jackknife over runs lies above 0, with Holm's correction of the p-values that belong "
        "to the intervals; beside it, without a verdict, the trend-free value and whether the paper's value "
        "lies inside."
    ),
    remark="Some 3 of 60 such intervals miss by chance.",
)
def both_correlate(evidence: Evidence) -> list[Part]:
    parts = []
    for environment in ENVIRONMENTS:
        series = evidence.of_cells(environment)
        points, enough = all_points(series.values()), enough_of(series)
        for name, coefficient, printed in (("Pearson", pearson, PEARSON), ("Spearman", spearman, SPEARMAN)):
            if not len(points.run):
                parts.append(missing(f"{environment}: {name}"))
                continue
            found, paper = coefficient(points), printed[environment][AGGREGATED]
            part = tested(f"{environment}: {name}", correlation_interval(found), sign=1, enough=enough)
            inside = "inside" if found.low <= paper <= found.high else "outside"
            known = not math.isnan(found.low)
            parts.append(part._replace(found=f"{part.found} (the paper's {paper} is {inside})") if known else part)
        if len(points.run):
            parts += without_verdict({f"{environment}: trend-free Pearson": correlation_interval(trend_free(points))})
    return parts


@claim(
    11,
    statement="Mutual information rises under every ε; the higher ε, the lower the mutual information.",
    where="appendix F, figure 12",
    rule=(
        f"GRU, ε = 0, 0.2, 0.4, 0.6, 0.8, 1, five environments: final − start of I > 0 ({OVER_SEEDS}); Kendall's τ "
        "of ε and final I, one for each seed over the six ε, is below 0 in each environment. The same seeds and "
        "checkpoints under every ε."
    ),
)
def information_under_every_epsilon(evidence: Evidence) -> list[Part]:
    parts = []
    for environment in ENVIRONMENTS:
        series = evidence.by_epsilon(environment, "GRU", EPSILONS)
        for epsilon, each in series.items():
            found = mean_interval(each.changes("bits"))
            parts.append(tested(f"{environment}, ε = {epsilon:g}: ΔI", found, sign=1, enough=each.enough))
        finals = [{curve.seed: curve.final("bits") for curve in each.curves} for each in series.values()]
        seeds = sorted(set.intersection(*map(set, finals)))
        falls = mean_interval(
            [float(stats.kendalltau(EPSILONS, [f[seed] for f in finals]).statistic) for seed in seeds]
        )
        enough = all(each.enough for each in series.values()) and len(seeds) >= MIN_SEEDS
        parts.append(tested(f"{environment}: Kendall's τ(ε, final I)", falls, sign=-1, enough=enough))
    return parts


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
        "and BRC: final J < 0.9 J*; LSTM has the lowest mean final relevant I of the five. d = 4 against d = 1, at "
        "the same checkpoints: "
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
    parts, series = [], evidence.by_size(base, "irrelevant", (1, 4))
    for cell in CELLS:
        few, many = series[1, cell], series[4, cell]
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
    starts = [value for each in series for value in each.starts("return") if not math.isnan(value)]
    start = np.mean(starts or [math.nan])
    best = [value for each in series for value in band(each.curves, "return").mean]
    return float(start + 0.95 * (max(best) - start)) if best else math.nan


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
    kept = kept & np.isfinite(curve.values["bits"])
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
