"""The paper's axis for returns: exponential, so that the last steps to the optimum are as visible as the first ones.

A return J is drawn at exp(3 (J − J_ref) / (J_ref − J_0)), with J_ref the maximal return, or the best mean where that is
not known, and J_0 the mean return before training: J_ref is at 1, J_0 at e⁻³. Ticks are labelled in return.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_STEEPNESS = 3.0


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
