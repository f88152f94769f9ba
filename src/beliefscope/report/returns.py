"""The return's axis in one environment, alike in all its figures: the paper's scale, ticks and the maximal return."""

import math
from typing import NamedTuple

import numpy as np

from beliefscope.report.results import Results, return_band
from beliefscope.report.scale import ReturnScale

_PLAIN = ReturnScale(reference=0.0, start=0.0)


class ReturnAxis(NamedTuple):
    """How the returns of an environment are drawn."""

    scale: ReturnScale
    ticks: list[float]
    ends: tuple[float, float] | None  # the least and the greatest return; None if there is none
    optimum: float | None  # J*, where it is known

    @property
    def labels(self) -> list[str]:
        return [f"{tick:g}".replace("-", "−") for tick in self.ticks]


def return_axis(results: Results, environment: str) -> ReturnAxis:
    """The paper's, unless a run is so far above the best mean that it would press all others to the floor."""
    optimum, scale = results.optimum.get(environment), _paper_scale(results, environment)
    panels = [panel for panel in results.panels if panel.environment == environment]
    found = [each.values for (of, _), curves in results.returns.items() if of == environment for each in curves]
    found += [curve.values["return"] for panel in panels for curves in panel.curves.values() for curve in curves]
    values = np.concatenate([*found, [math.nan if optimum is None else optimum]])
    values = values[np.isfinite(values)]
    if not len(values):
        return ReturnAxis(scale, [], None, optimum)
    if 3 * (values.max() - scale.reference) > scale.reference - scale.start:
        scale = _PLAIN
    ends = float(values.min()), float(values.max())
    return ReturnAxis(scale, scale.ticks(*ends), ends, optimum)


def _paper_scale(results: Results, environment: str) -> ReturnScale:
    """J_ref is the maximal return, or the best mean; J_0 the mean before training."""
    bands = [return_band(results.returns.get((environment, cell), ())) for cell in results.cells_of(environment)]
    bands = [each for each in bands if len(each.mean)]
    if not bands:
        return _PLAIN
    best = max(float(each.mean.max()) for each in bands)
    return ReturnScale(results.optimum.get(environment, best), float(np.mean([each.mean[0] for each in bands])))
