"""How cells and returns are drawn, alike in all charts and figures.

A cell has one colour, apart from the others for colour-blind eyes, and legible on light and dark. The axis of returns
is the paper's: exponential, so that the last steps to the optimum are as visible as the first ones. A return J is drawn
at exp(3 (J − J_ref) / (J_ref − J_0)), with J_ref the maximal return, or the best mean where that is not known, and
J_0 the mean return before training: J_ref is at 1, J_0 at e⁻³. Ticks are labelled in return.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from beliefscope.results import Results
from beliefscope.results.curves import in_order, return_band

_COLOURS = {"LSTM": "#d55e00", "GRU": "#2f7fc1", "BRC": "#009e73", "NBRC": "#b8860b", "MGU": "#b0559b"}
_OTHERS = ("#5b6ee1", "#7f7f7f", "#8c564b", "#17808c", "#c0392b")
_STEEPNESS = 3.0


def colour(cell: str, others: list[str]) -> str:
    """Of a cell; cells that the paper does not have take turns, in the order of `others`, the cells of the study."""
    if cell in _COLOURS:
        return _COLOURS[cell]
    unknown = [name for name in others if name not in _COLOURS]
    return _OTHERS[unknown.index(cell) % len(_OTHERS)]


def cell_colour(results: Results, cell: str) -> str:
    return colour(cell, in_order(run.cell for run in results.runs))


class ReturnScale(NamedTuple):
    """From returns to places on the axis, and back."""

    reference: float  # J_ref
    start: float  # J_0

    @property
    def is_plain(self) -> bool:
        """Nothing was learned, so that there is nothing to stretch: the axis is linear."""
        return not self.reference > self.start

    def place(self, returns: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        if self.is_plain:
            return np.asarray(returns, float)
        return np.exp(_STEEPNESS * (np.asarray(returns, float) - self.reference) / (self.reference - self.start))

    def ticks(self, low: float, high: float, *, most: int = 6) -> list[float]:
        """Round returns between two, spread evenly over the axis, so that they are dense where it is stretched."""
        if not high > low:
            return [low]
        first, last = self.place(np.array([low, high]))
        if self.is_plain or not last > first:
            return _even(low, high, most)
        middles, reach = np.linspace(first, last, most), (last - first) / (most - 1) / 4
        places = np.maximum([middles - reach, middles + reach], np.finfo(float).tiny)
        edges = np.clip(self._inverse(places), low, high)
        return sorted({_roundest(float(below), float(above)) for below, above in edges.T})

    def _inverse(self, places: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        return self.reference + np.log(places) * (self.reference - self.start) / _STEEPNESS


def _even(low: float, high: float, most: int) -> list[float]:
    """The multiples of the least of the steps 1, 2, 5, 10, … of which there are few enough."""
    for exponent in itertools.count(math.floor(math.log10((high - low) / most))):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
            if len(numbers) <= most:
                return [round(number * step, -exponent) for number in numbers]
    raise AssertionError("steps grow without end")


def _roundest(low: float, high: float) -> float:
    """A multiple of the greatest of the steps …, 10, 5, 2, 1, … that has one between the two."""
    greatest = math.ceil(math.log10(max(abs(low), abs(high), 1e-300)))
    for exponent in range(greatest, greatest - 16, -1):
        for factor in (5, 2, 1):
            step = factor * 10.0**exponent
            number = math.ceil(low / step)
            if number * step <= high:
                return round(number * step, -exponent)
    return low


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
