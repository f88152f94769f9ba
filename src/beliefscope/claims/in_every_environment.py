"""The claims about every environment: both rise (1), they correlate (2), information generalises to every ε (11)."""

import math

from scipy import stats

from beliefscope.claims.evidence import Evidence, all_points, enough_of
from beliefscope.claims.verdict import (
    BOTH,
    OVER_SEEDS,
    Part,
    claim,
    correlation_interval,
    mean_interval,
    missing,
    tested,
    without_verdict,
)
from beliefscope.paper import AGGREGATED, ENVIRONMENTS, PEARSON, SPEARMAN
from beliefscope.results.correlations import pearson, spearman, trend_free
from beliefscope.results.curves import MIN_SEEDS

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
        "of ε and final I, one for each seed over the six ε, is below 0 in each environment."
    ),
)
def information_under_every_epsilon(evidence: Evidence) -> list[Part]:
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
