"""The paper's claims, each as a rule that was fixed before any data, and what a table of results says of them.

`ledger` takes the columns of a study's table and gives a verdict on each claim. Nothing is computed anew: what is not
in the table, or not at full scale with four seeds, is 'not enough data', with the numbers that there are.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from beliefscope.errors import is_real, require
from beliefscope.report.correlations import pearson, rounded, spearman, trend_free
from beliefscope.report.evidence import MIN_SEEDS, Curve, Evidence, Quantity, Series, all_points
from beliefscope.report.irrelevant_claim import irrelevant
from beliefscope.report.printed import (
    AGGREGATED,
    ENVIRONMENTS,
    HIKE,
    LONG,
    MAZE,
    PEARSON,
    SPEARMAN,
    STOCHASTIC,
    VARYING,
)
from beliefscope.report.rules import LEARNERS, Optimum, enough_of, lstm_lowest, of_cells, without_verdict
from beliefscope.report.statements import CLAIMS, REMARKS
from beliefscope.report.verdict import (
    Part,
    Verdict,
    ashman_d,
    correlation_interval,
    difference_interval,
    judge,
    mean_interval,
    missing,
    settled,
    tested,
    two_means,
)

EPSILONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_OPTIMUM = {MAZE: 4 * 0.98**50, LONG: 4 * 0.98**100}  # J* = 4 γ^L
_BOTH: tuple[tuple[str, Quantity], ...] = (("J", "returns"), ("I", "bits"))
Rule = Callable[[Evidence, Optimum], list[Part]]


def ledger(table: dict[str, list], *, optimum: Optimum | None = None) -> list[Verdict]:
    """The verdict on each claim from the columns of a table; `optimum` is J* by an environment's label, where it is
    known beyond the deterministic T-Mazes."""
    known = {**_OPTIMUM, **(optimum or {})}
    require(
        all(is_real(value) and math.isfinite(value) for value in known.values()),
        rule="the optimum is a finite return for each environment's label",
        received=optimum,
        advice="leave out environments whose optimum is unknown",
    )
    evidence = Evidence(table)
    verdicts = []
    for claim, rule in zip(CLAIMS, _RULES, strict=True):
        remarks = [*REMARKS.get(claim.number, []), *evidence.remarks]
        verdicts.append(judge(claim, rule(evidence, known), " ".join(remarks)))
    return verdicts


def _rise(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 1."""
    parts = []
    for environment in ENVIRONMENTS:
        for cell, series in of_cells(evidence, environment).items():
            name = f"{environment}, {cell}"
            for symbol, what in _BOTH:
                found = mean_interval(series.changes(what))
                parts.append(tested(f"{name}: Δ{symbol}", found, sign=1, enough=series.enough))
            random = evidence.series(environment, cell, epsilon=1.0)
            extras = {"Δ(I/H(b))": series.changes("fraction"), "ΔI at ε = 1": random.changes("bits")}
            parts += without_verdict({f"{name}: {extra}": mean_interval(values) for extra, values in extras.items()})
    return parts


def _correlate(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 2."""
    parts = []
    for environment in ENVIRONMENTS:
        series = of_cells(evidence, environment)
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


def _as_in_maze(evidence: Evidence, environment: str) -> list[Part]:
    """Claims 3 and 7."""
    series = of_cells(evidence, environment)
    parts = [
        _compared(series, cell, "LSTM", (symbol, what), environment=environment)
        for cell in ("NBRC", "BRC")
        for symbol, what in _BOTH
    ]
    return [*parts, lstm_lowest(series, f"{environment}: lowest mean final I"), *_agreement(series, environment)]


def _compared(
    series: Mapping[str, Series], upper: str, lower: str, of: tuple[str, Quantity], *, environment: str
) -> Part:
    """Is the final value of one cell above that of another?"""
    symbol, what = of
    found = difference_interval(series[upper].finals(what), series[lower].finals(what))
    enough = series[upper].enough and series[lower].enough
    return tested(f"{environment}: final {symbol}, {upper} − {lower}", found, sign=1, enough=enough)


def _agreement(series: Mapping[str, Series], environment: str) -> list[Part]:
    """Do cells of higher return have more information, at each checkpoint?"""
    groups = list(zip(*(each.curves for each in series.values()), strict=False))
    found = mean_interval([_mean_rank_correlation(group) for group in groups])
    name = f"{environment}: mean rank correlation over cells"
    return [tested(name, found, sign=1, enough=enough_of(series))]


def _mean_rank_correlation(curves: tuple[Curve, ...]) -> float:
    episodes = set.intersection(*(set(curve.episode.tolist()) for curve in curves))
    found = []
    for episode in sorted(episodes):
        at = [int(np.searchsorted(curve.episode, episode)) for curve in curves]
        returns = rounded(np.array([curve.returns[i] for curve, i in zip(curves, at, strict=True)]))
        bits = np.array([curve.bits[i] for curve, i in zip(curves, at, strict=True)])
        if np.ptp(returns) > 0 and np.ptp(bits) > 0:
            found.append(float(stats.spearmanr(returns, bits).statistic))
    return float(np.mean(found)) if found else math.nan


def _maze_50(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 3."""
    return _as_in_maze(evidence, MAZE)


def _stochastic(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 7."""
    return _as_in_maze(evidence, STOCHASTIC)


def _least_information(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 4."""
    parts = []
    for environment, share, bits in ((MAZE, 0.99, 5.0), (LONG, 0.99, 5.0), (STOCHASTIC, 0.95, 4.5)):
        name, series = f"{environment}: least I of optimal points", of_cells(evidence, environment)
        points = all_points(series.values())
        if environment not in optimum or not len(points.run):
            parts.append(missing(name))
            continue
        best = points.bits[points.returns >= share * optimum[environment]]
        least = float(best.min()) if len(best) else math.nan
        found = f"{least:.4g}; {np.sum(best < bits - 0.25)} of {len(best)} points under {bits - 0.25:g}"
        enough = enough_of(series) and len(best) >= 20
        parts.append(settled(name, found, holds=least >= bits - 0.25, enough=enough))
    return parts


def _tight(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 5."""
    parts = []
    for environment, low, high in (
        (MAZE, math.log2(102) - 0.4, math.log2(102) + 0.25),
        (LONG, 6.5, math.log2(202) + 0.25),
    ):
        name, series = f"{environment}: greatest I", of_cells(evidence, environment)
        points = all_points(series.values())
        if not len(points.run):
            parts.append(missing(name))
            continue
        greatest = float(points.bits.max())
        found = f"{greatest:.4f} (allowed [{low:.4f}, {high:.4f}])"
        parts.append(settled(name, found, holds=low <= greatest <= high, enough=enough_of(series)))
    return parts


def _maze_100(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 6."""
    series = of_cells(evidence, LONG)
    parts = [_compared(series, "NBRC", "GRU", ("J", "returns"), environment=LONG)]
    for symbol, what in _BOTH:
        late = {cell: [c.mean(what, c.episode >= 2000) for c in series[cell].curves] for cell in ("MGU", "BRC")}
        found, enough = difference_interval(late["MGU"], late["BRC"]), series["MGU"].enough and series["BRC"].enough
        name = f"{LONG}: {symbol} from episode 2000 on, MGU − BRC"
        parts.append(tested(name, found, sign=1, enough=enough))
    whole = {cell: [c.mean("bits", c.episode >= 0) for c in series[cell].curves] for cell in ("GRU", "NBRC")}
    slower = {f"{LONG}: mean I over training, GRU − NBRC": difference_interval(whole["GRU"], whole["NBRC"])}
    return [*parts, *_agreement(series, LONG), *without_verdict(slower)]


def _two_groups(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 8."""
    series = of_cells(evidence, HIKE)
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


def _varying(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 9."""
    series = of_cells(evidence, VARYING)
    parts = [
        _compared(series, better, worse, of, environment=VARYING)
        for worse in ("LSTM", "BRC")
        for better in LEARNERS
        for of in _BOTH
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


def _generalise(evidence: Evidence, optimum: Optimum) -> list[Part]:
    """Claim 11."""
    parts = []
    for environment in ENVIRONMENTS:
        series = {epsilon: evidence.series(environment, "GRU", epsilon=epsilon) for epsilon in EPSILONS}
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


_RULES: tuple[Rule, ...] = (
    _rise,
    _correlate,
    _maze_50,
    _least_information,
    _tight,
    _maze_100,
    _stochastic,
    _two_groups,
    _varying,
    irrelevant,
    _generalise,
)
