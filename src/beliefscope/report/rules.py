"""What the rules of several claims have in common."""

import math
from collections.abc import Mapping

from beliefscope.report.evidence import Evidence, Series
from beliefscope.report.printed import CELLS
from beliefscope.report.verdict import Estimate, Part, mean_interval, missing, recorded, settled, shown

LEARNERS = ("GRU", "NBRC", "MGU")  # the cells that the paper does not say to fail
Optimum = Mapping[str, float]  # J* by environment


def of_cells(evidence: Evidence, environment: str, part: str = "belief") -> dict[str, Series]:
    return {cell: evidence.series(environment, cell, part) for cell in CELLS}


def enough_of(series: Mapping[str, Series]) -> bool:
    return all(each.enough for each in series.values())


def without_verdict(found: Mapping[str, Estimate]) -> list[Part]:
    """Numbers without a verdict, where there are any."""
    return [recorded(name, shown(each)) for name, each in found.items() if not math.isnan(each.value)]


def lstm_lowest(series: Mapping[str, Series], name: str) -> Part:
    """Is LSTM's mean final information the lowest?"""
    means = {cell: mean_interval(each.finals("bits")).value for cell, each in series.items()}
    known = {cell: value for cell, value in means.items() if not math.isnan(value)}
    if not known:
        return missing(name)
    found = ", ".join(f"{cell} {value:.4g}" for cell, value in known.items())
    holds = len(known) == len(CELLS) and all(known["LSTM"] < value for cell, value in known.items() if cell != "LSTM")
    return settled(name, found, holds=holds, enough=enough_of(series))
