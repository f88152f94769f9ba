"""The claims about one environment each.

T-Mazes: L = 50 (3), what optimal networks hold (4, 5), L = 100 (6), stochastic moves (7). The Mountain Hike (8) and the
Varying Mountain Hike (9).
"""

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from beliefscope.claims.evidence import Evidence, Series, all_points, enough_of
from beliefscope.claims.verdict import (
    BOTH,
    LEARNERS,
    WELCH,
    Part,
    ashman_d,
    claim,
    compared,
    difference_interval,
    lstm_lowest,
    mean_interval,
    missing,
    settled,
    tested,
    two_means,
    without_verdict,
)
from beliefscope.paper import HIKE, LONG, MAZE, STOCHASTIC, VARYING
from beliefscope.results.correlations import rounded
from beliefscope.results.curves import MIN_SEEDS, Curve

_AGREE = (
    "the k-th seeds of the five cells give a rank correlation of J and I over the cells at each checkpoint (left out "
    "where all J or all I are equal), its mean over the checkpoints is above 0 (t-interval over k)"
)
_AS_3 = f"final J and I: nBRC > LSTM and BRC > LSTM ({WELCH}); LSTM has the lowest mean final I of the five; {_AGREE}."


@claim(
    3,
    statement=(
        "T-Maze, L = 50: nBRC and BRC are higher in both return and mutual information, LSTM is the lowest in "
        "mutual information; at any given episode a higher return goes with a higher mutual information."
    ),
    where="section 4.2, figure 2",
    rule=_AS_3[0].upper() + _AS_3[1:],
)
def cells_in_maze_50(evidence: Evidence) -> list[Part]:
    return _as_in_maze(evidence, MAZE)


@claim(
    4,
    statement=(
        "No network with less than 5 bits (T-Maze, L = 50), 5.0 bits (L = 100) or 4.5 bits (stochastic) is optimal."
    ),
    where="section 4.2, figures 2, 3 and 4",
    rule=(
        "Among all (checkpoint, run) points of the five cells, those with J ≥ 0.99 J* (0.95 J* in the "
        "stochastic T-Maze): at least 20 (else there is not enough data), and the least I is at least the "
        "threshold − 0.25."
    ),
)
def least_information_of_the_optimal(evidence: Evidence) -> list[Part]:
    parts = []
    for environment, share, bits in ((MAZE, 0.99, 5.0), (LONG, 0.99, 5.0), (STOCHASTIC, 0.95, 4.5)):
        name, series = f"{environment}: least I of optimal points", evidence.of_cells(environment)
        points = all_points(series.values())
        if environment not in evidence.optimum or not len(points.run):
            parts.append(missing(name))
            continue
        best = points.bits[points.returns >= share * evidence.optimum[environment]]
        least = float(best.min()) if len(best) else math.nan
        found = f"{least:.4g}; {np.sum(best < bits - 0.25)} of {len(best)} points under {bits - 0.25:g}"
        enough = enough_of(series) and len(best) >= 20
        parts.append(settled(name, found, holds=least >= bits - 0.25, enough=enough))
    return parts


@claim(
    5,
    statement="The estimates are tight: 6.5 of 6.67 bits (T-Maze, L = 50) and 7.0 of 7.66 bits (L = 100) at most.",
    where="section 4.2, figures 2 and 3",
    rule=(
        "The greatest I of all (checkpoint, run) points of the five cells lies in [H − 0.4, H + 0.25] for L = "
        "50, H = log2 102, and in [6.5, H + 0.25] for L = 100, H = log2 202."
    ),
)
def estimates_are_tight(evidence: Evidence) -> list[Part]:
    parts = []
    for environment, low, high in (
        (MAZE, math.log2(102) - 0.4, math.log2(102) + 0.25),
        (LONG, 6.5, math.log2(202) + 0.25),
    ):
        name, series = f"{environment}: greatest I", evidence.of_cells(environment)
        points = all_points(series.values())
        if not len(points.run):
            parts.append(missing(name))
            continue
        greatest = float(points.bits.max())
        found = f"{greatest:.4f} (allowed [{low:.4f}, {high:.4f}])"
        parts.append(settled(name, found, holds=low <= greatest <= high, enough=enough_of(series)))
    return parts


@claim(
    6,
    statement=(
        "T-Maze, L = 100: GRU struggles too, its mutual information rises more slowly; MGU overtakes BRC after "
        "2000 episodes in both; the lower the mutual information, the lower the return."
    ),
    where="section 4.2, figure 3",
    rule=(
        "Final J: nBRC > GRU; MGU > BRC in J and in I, each the mean over the checkpoints from episode 2000 on "
        f"({WELCH}); {_AGREE}. How fast GRU's I rises has no rule: shown is its mean over training less nBRC's."
    ),
)
def cells_in_maze_100(evidence: Evidence) -> list[Part]:
    series = evidence.of_cells(LONG)
    parts = [compared(series, "NBRC", "GRU", ("J", "return"), environment=LONG)]
    for symbol, what in BOTH:
        late = {cell: series[cell].means(what, since=2000) for cell in ("MGU", "BRC")}
        found, enough = difference_interval(late["MGU"], late["BRC"]), series["MGU"].enough and series["BRC"].enough
        name = f"{LONG}: {symbol} from episode 2000 on, MGU − BRC"
        parts.append(tested(name, found, sign=1, enough=enough))
    whole = {cell: series[cell].means("bits", since=0) for cell in ("GRU", "NBRC")}
    slower = {f"{LONG}: mean I over training, GRU − NBRC": difference_interval(whole["GRU"], whole["NBRC"])}
    return [*parts, *_agreement(series, LONG), *without_verdict(slower)]


@claim(
    7,
    statement="Stochastic T-Maze: BRC and nBRC are best and higher in mutual information, LSTM is low in both.",
    where="section 4.2, figure 4",
    rule=f"As claim 3: {_AS_3}",
)
def cells_in_stochastic_maze(evidence: Evidence) -> list[Part]:
    return _as_in_maze(evidence, STOCHASTIC)


def _as_in_maze(evidence: Evidence, environment: str) -> list[Part]:
    series = evidence.of_cells(environment)
    parts = [
        compared(series, cell, "LSTM", (symbol, what), environment=environment)
        for cell in ("NBRC", "BRC")
        for symbol, what in BOTH
    ]
    return [*parts, lstm_lowest(series, f"{environment}: lowest mean final I"), *_agreement(series, environment)]


def _agreement(series: Mapping[str, Series], environment: str) -> list[Part]:
    """Do cells of higher return have more information, at each checkpoint?"""
    groups = list(zip(*(each.curves for each in series.values()), strict=False))
    found = mean_interval([_mean_rank_correlation(group) for group in groups])
    name = f"{environment}: mean rank correlation over cells"
    return [tested(name, found, sign=1, enough=enough_of(series))]


def _mean_rank_correlation(curves: tuple[Curve, ...]) -> float:
    episodes = set.intersection(*(set(curve.known().episode.tolist()) for curve in curves))
    found = []
    for episode in sorted(episodes):
        at = [int(np.searchsorted(curve.episode, episode)) for curve in curves]
        returns = rounded(np.array([curve.values["return"][i] for curve, i in zip(curves, at, strict=True)]))
        bits = np.array([curve.values["bits"][i] for curve, i in zip(curves, at, strict=True)])
        if np.ptp(returns) > 0 and np.ptp(bits) > 0:
            found.append(float(stats.spearmanr(returns, bits).statistic))
    return float(np.mean(found)) if found else math.nan


@claim(
    8,
    statement=(
        "Mountain Hike: the best policies, with a return near −20, are separate from the others and higher in "
        "mutual information."
    ),
    where="section 4.3, figure 6",
    rule=(
        "The returns of all (checkpoint, run) points of the five cells are split in two by 2-means: Ashman's D "
        "= √2 |μ₁ − μ₂| / √(σ₁² + σ₂²) > 2; the mean of the upper group lies in [−25, −15]; mean I of the upper "
        "less the lower group, within each run that has points in both (at least 4 runs), is above 0 "
        "(t-interval over these runs)."
    ),
    remark=(
        "Halves of one normal or one even group have D = 2.65 or 3.46 already: D > 2 alone is little evidence of a gap."
    ),
)
def two_groups_of_policies(evidence: Evidence) -> list[Part]:
    series = evidence.of_cells(HIKE)
    points, enough = all_points(series.values()), enough_of(series)
    threshold = two_means(points.returns)
    names = (f"{HIKE}: Ashman's D", f"{HIKE}: mean J of the upper group", f"{HIKE}: I, upper − lower group")
    if math.isnan(threshold):
        return [missing(name) for name in names]
    upper = points.returns > threshold
    distance = ashman_d(points.returns[upper], points.returns[~upper])
    mean = float(points.returns[upper].mean())
    runs = [points.run == run for run in np.unique(points.run)]
    differences = [
        float(points.bits[run & upper].mean() - points.bits[run & ~upper].mean())
        for run in runs
        if (run & upper).any() and (run & ~upper).any()
    ]
    higher = mean_interval(differences)
    return [
        settled(names[0], f"{distance:.4g}", holds=distance > 2, enough=enough),
        settled(names[1], f"{mean:.4g} of {upper.sum()} points", holds=-25 <= mean <= -15, enough=enough),
        tested(names[2], higher, sign=1, enough=enough and len(differences) >= MIN_SEEDS),
    ]


@claim(
    9,
    statement=(
        "Varying Mountain Hike: LSTM and BRC are worse in both; the return rises sharply from 2.5 to 4.5 bits; "
        "the correlation is even clearer than elsewhere."
    ),
    where="section 4.3, figure 7",
    rule=(
        f"Final J and I: LSTM and BRC each below each of GRU, nBRC and MGU ({WELCH}); the mean J of all points "
        "with I in [4.25, 4.75] less that of all points with I in [2.25, 2.75] exceeds half the range (greatest "
        "− least) of J over all points. The last clause has no rule."
    ),
    remark=(
        "That the correlation is even clearer here is contradicted by the paper's own table: Pearson 0.5982, against "
        "0.8233 in the T-Maze, L = 50."
    ),
)
def cells_in_varying_hike(evidence: Evidence) -> list[Part]:
    series = evidence.of_cells(VARYING)
    parts = [
        compared(series, better, worse, of, environment=VARYING)
        for worse in ("LSTM", "BRC")
        for better in LEARNERS
        for of in BOTH
    ]
    points, name = all_points(series.values()), f"{VARYING}: J at 4.25–4.75 bits − J at 2.25–2.75 bits"
    rich, poor = (points.returns[np.abs(points.bits - centre) <= 0.25] for centre in (4.5, 2.5))
    if not len(rich) or not len(poor):
        return [*parts, missing(name)]
    jump, half = float(rich.mean() - poor.mean()), float(np.ptp(points.returns)) / 2
    return [
        *parts,
        settled(name, f"{jump:.4g} (half the range: {half:.4g})", holds=jump > half, enough=enough_of(series)),
    ]
