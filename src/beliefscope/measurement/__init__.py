"""Measurements of trained runs: the information between memory and belief at every checkpoint, with its controls."""

from beliefscope.measurement.controls import controls, given_time
from beliefscope.measurement.exact import Atoms, exact_information, visited_atoms
from beliefscope.measurement.measure import measure, measure_checkpoint
from beliefscope.measurement.measurement_spec import MeasurementSpec
from beliefscope.measurement.trace import trace

__all__ = [
    "Atoms",
    "MeasurementSpec",
    "controls",
    "exact_information",
    "given_time",
    "measure",
    "measure_checkpoint",
    "trace",
    "visited_atoms",
]
