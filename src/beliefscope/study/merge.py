"""Runs of several studies as one list: a run that two of them share is trained once, and measured for both."""

import dataclasses
from collections.abc import Iterable

from beliefscope.measurement import MeasurementSpec
from beliefscope.study.run_spec import Measurement, RunSpec


def merge(runs: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """Each run once, in the order of first appearance, with all that is asked of it."""
    merged: dict[str, RunSpec] = {}
    for run in runs:
        name = run.id
        merged[name] = _united(merged[name], run) if name in merged else run
    return tuple(merged.values())


def _united(first: RunSpec, second: RunSpec) -> RunSpec:
    return dataclasses.replace(
        first,
        measurements=_measurements((*first.measurements, *second.measurements)),
        traces=tuple(sorted({*first.traces, *second.traces})),
    )


def _measurements(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """One for each way to measure: a checkpoint is measured once in it, with controls if anyone asks for them."""
    united: dict[MeasurementSpec, Measurement] = {}
    for each in measurements:
        before = united.get(each.spec, each)
        united[each.spec] = Measurement(
            spec=each.spec,
            episodes=tuple(sorted({*before.episodes, *each.episodes})),
            controls=tuple(sorted({*before.controls, *each.controls})),
            calibrate=before.calibrate or each.calibrate,
        )
    return tuple(united.values())
