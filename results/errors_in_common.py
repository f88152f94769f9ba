"""Errors that the runs of a study had in common, and the verdicts that depend on them (docs/results.md).

Until 2026-11-18 all runs had the same random numbers at a checkpoint. The error of a point is estimated by its distance
from the mean of its two neighbours; what these distances have in common over the runs is their covariance. Runs that
were measured later have random numbers of their own, and no part in it.
"""

import math
from collections import defaultdict

import numpy as np
from join import tables
from scipy import stats

from beliefscope.claims import several_environments as claims
from beliefscope.claims.evidence import Evidence
from beliefscope.claims.verdict import Claim, Part, holm
from beliefscope.results import read_table
from beliefscope.results.curves import Curve, Panel, panels

LEVEL = 0.05
NEIGHBOURS = 1.5  # the variance of a point's distance from the mean of its neighbours, in variances of a point
MIN_RUNS = 8
LATER = {"Mountain Hike": {"LSTM": (0, 1, 2, 3), "BRC": (2, 3), "NBRC": (2, 3), "MGU": (0, 1, 2, 3)}}  # their seeds
PARTS = {"ΔI": "belief", "Δrelevant I": "relevant", "Δirrelevant I": "irrelevant"}


def earlier(environment: str, cell: str, curves: tuple[Curve, ...]) -> list[Curve]:
    """Those that have the error."""
    return [curve for curve in curves if curve.seed not in LATER.get(environment, {}).get(cell, ())]


def error_in_common(panel: Panel) -> float:
    """Its standard deviation, in bits."""
    distances = defaultdict(list)
    for curve in (
        curve.known() for cell in panel.curves for curve in earlier(panel.environment, cell, panel.curves[cell])
    ):
        bits, episode = curve.values["bits"], curve.episode
        for here in range(1, len(bits) - 1):
            before, after = episode[here] - episode[here - 1], episode[here + 1] - episode[here]
            if before == after and bits[here - 1 : here + 2].min() > -1:  # below, a fit has failed
                distances[episode[here], before].append(bits[here] - (bits[here - 1] + bits[here + 1]) / 2)
    groups = [np.array(group) for group in distances.values() if len(group) >= MIN_RUNS]
    products = sum(group.sum() ** 2 - (group**2).sum() for group in groups)
    covariance = products / sum(len(group) * (len(group) - 1) for group in groups)
    return math.sqrt(max(0.0, covariance) / NEIGHBOURS)


def with_error(part: Part, evidence: Evidence, errors: dict[tuple[str, str], float]) -> float:
    """The p-value of a change in bits with the error in common beside its own; any other p-value as it is."""
    about, _, what = part.name.rpartition(": ")
    assert part.p is not None
    if what not in PARTS or part.p == 1:
        return part.p
    environment, _, cell = about.rpartition(", ")
    series = evidence.series(environment, cell, PARTS[what])
    changes = np.array([change for change in series.changes("bits") if math.isfinite(change)])
    last = min(int((curve.episode > 4000).sum()) for curve in series.curves)
    share = len(earlier(environment, cell, series.curves)) / len(series.curves)
    own, common = changes.var(ddof=1) / len(changes), (share * errors[environment, PARTS[what]]) ** 2 * (1 + 1 / last)
    return float(2 * stats.t.sf(abs(changes.mean()) / math.sqrt(own + common), len(changes) - 1))


def lost(claim: Claim, evidence: Evidence, errors: dict[tuple[str, str], float]) -> list[str]:
    """The parts that hold, and would not with the errors in common."""
    parts = [part for part in claim.parts(evidence) if part.enough and part.p is not None]
    before = holm([part.p or 0.0 for part in parts])
    after = holm([with_error(part, evidence, errors) for part in parts])
    return [
        f"claim {claim.number}, {part.name}: p = {one:.3f}, then {other:.3f} (Holm)"
        for part, one, other in zip(parts, before, after, strict=True)
        if one < LEVEL <= other
    ]


def main() -> None:
    found = panels(read_table(tables()))
    errors = {
        (panel.environment, panel.part): error_in_common(panel)
        for panel in found
        if (panel.memory, panel.epsilon, panel.instrument.estimator) == ("hidden", 0.0, "mine")
    }
    for (environment, part), error in errors.items():
        print(f"{environment}, {part}: {error:.2f} bits")
    evidence = Evidence(found)
    print(*lost(claims.both_rise, evidence, errors), sep="\n")
    print(*lost(claims.relevant_and_irrelevant, evidence, errors), sep="\n")


if __name__ == "__main__":
    main()
