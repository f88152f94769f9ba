"""The claims about the Mountain Hike (8) and the Varying Mountain Hike (9)."""

import math

import numpy as np

from beliefscope.claims.evidence import Evidence, all_points, enough_of
from beliefscope.claims.verdict import (
    BOTH,
    LEARNERS,
    WELCH,
    Part,
    ashman_d,
    claim,
    compared,
    mean_interval,
    missing,
    settled,
    tested,
    two_means,
)
from beliefscope.paper import HIKE, VARYING
from beliefscope.results.curves import MIN_SEEDS


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
