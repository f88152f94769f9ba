"""What a study costs: how much there is to train and to measure, and about how long that takes.

The seconds are orders of magnitude: good for deciding what to start, and for a progress bar.
"""

from collections.abc import Iterable
from typing import NamedTuple

from beliefscope.agent import DRQN
from beliefscope.agent.stored_spec import CELLS
from beliefscope.measurement import MeasurementSpec
from beliefscope.pomdp import POMDP, Finite, Irrelevant
from beliefscope.study.machines import CORE, H200, Machine
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import Measurement, RunSpec
from beliefscope.study.study import Study

CRITIC_INPUTS = 400  # the size of a memory that takes an estimator as long to read as all else it does
BEST_BOUND_PAIRS = 10_000  # the best bound takes longer for each pair beyond, which is compared with more others
CONTROL_FITS = 6
CALIBRATION_FITS = 4  # beside the controls, once in each environment
SHARE_CONTROLS = 4  # of sufficiency


class Cost(NamedTuple):
    """How much there is to do."""

    runs: int
    fits: int  # of bits: one for each checkpoint, ε, estimator and part of the belief, and its controls
    pairs: int  # of memory and belief, sampled
    traces: int
    shares: int  # measurements of sufficiency: one for each checkpoint, ε and part of the belief
    seconds: float


def cost(runs: Iterable[RunSpec], machine: Machine = CORE) -> Cost:
    """Of all these runs together; `cost(study.runs)` is that of a study on one core."""
    runs = list(runs)
    first = {run.environment: run for run in reversed(runs)}.values()
    known = [(run, each.spec) for run in first for each in run.measurements if each.calibrate and each.controls]
    calibrating = sum(_calibration_seconds(run, spec, machine) for run, spec in known)
    return Cost(
        runs=len(runs),
        fits=sum(_fits(run) for run in runs),
        pairs=sum(_pairs(each) for run in runs for each in run.measurements),
        traces=sum(len(run.traces) for run in runs),
        shares=sum(_shares(run) for run in runs),
        seconds=_training_seconds(runs, machine) + calibrating + sum(_looking_seconds(run, machine) for run in runs),
    )


def seconds(piece: Piece, run: RunSpec) -> float:
    """About how long a piece of this run takes on one core."""
    if piece.measurement is not None:
        alone = _measure_seconds(run, piece.measurement, CORE, controls=piece.controls)
        return alone + (_calibration_seconds(run, piece.measurement, CORE) if piece.calibrate else 0.0)
    return _train_seconds(run, CORE) if piece.kind == "train" else CORE.trace


def show(study: Study) -> str:
    """What would run, for people: a line for each environment, and the sum."""
    environments = dict.fromkeys(run.environment for run in study.runs)
    rows = [_row([run for run in study.runs if run.environment == name]) for name in environments]
    head = ("environment", "cells", "seeds", "episodes", "checkpoints", "fits", "one core")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) if place < 2 else text.rjust(width) for place, (text, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in (head, *rows))
    ]
    total = cost(study.runs)
    title = study.name + "".join(f", {value}" for value in study.settings.values())
    title += f": {study.description}" if study.description else ""
    counts = f"{_count(total.runs, 'run')}, {_count(total.fits, 'fit')} and {_count(total.shares, 'sufficiency')}"
    counts = f"{counts.replace('sufficiencys', 'sufficiencies')} on {_count(total.pairs, 'pair')}"
    times = f"about {duration(total.seconds)} on one core, {duration(total.seconds / 2)} on two"
    gpu = f"about {duration(cost(study.runs, H200).seconds)} on an H200"
    return "\n".join([title, "", *lines, "", f"{counts}, {_count(total.traces, 'trace')}:", f"{times}, {gpu}"])


def _row(runs: list[RunSpec]) -> tuple[str, ...]:
    """Of the runs in one environment."""
    cells = list(dict.fromkeys(run.training.learner.cell.__name__ for run in runs))
    found = cost(runs)
    return (
        runs[0].environment,
        "all five" if set(cells) == set(CELLS) else " ".join(cells),
        str(len({run.training.seed for run in runs})),
        _span(run.training.learner.num_episodes for run in runs),
        _span(len({episode for each in run.measurements for episode in each.episodes}) for run in runs),
        f"{found.fits:,}",
        duration(found.seconds),
    )


def _looking_seconds(run: RunSpec, machine: Machine) -> float:
    """To measure and to trace."""
    measured = 0.0
    for each in run.measurements:
        plain, thorough = (_measure_seconds(run, each.spec, machine, controls=controls) for controls in (False, True))
        measured += (len(each.episodes) - len(each.controls)) * plain + len(each.controls) * thorough
    return measured + machine.trace * len(run.traces)


def _calibration_seconds(run: RunSpec, spec: MeasurementSpec, machine: Machine) -> float:
    return CALIBRATION_FITS / (1 + CONTROL_FITS) * _measure_seconds(run, spec, machine, controls=True)


def _training_seconds(runs: Iterable[RunSpec], machine: Machine) -> float:
    alike = {(run.environment, run.training.learner, machine.seeds_at_once or run.training.seed): run for run in runs}
    return sum(_train_seconds(run, machine) for run in alike.values())


def _train_seconds(run: RunSpec, machine: Machine) -> float:
    learner, horizon = run.training.learner, run.training.pomdp.horizon
    steps = machine.gradient_step
    step = steps.get(learner.cell.__name__, steps["GRU"]) * learner.batch_size / 32
    learn = learner.num_episodes * learner.gradient_steps * horizon * step
    evaluations = learner.num_episodes / learner.evaluation_period * learner.evaluation_episodes
    return machine.training_start + (learn + evaluations * horizon * machine.pair_step) * _network_size(learner)


def _network_size(learner: DRQN) -> float:
    """How long a step of the recurrent layers takes, in multiples of the paper's 2 layers of 32."""
    width = learner.hidden_size / 32
    return learner.num_layers / 2 * (1 + width + width**2) / 3


def _measure_seconds(run: RunSpec, spec: MeasurementSpec, machine: Machine, *, controls: bool) -> float:
    pomdp, learner = run.training.pomdp, run.training.learner
    particles = spec.num_particles if _has_particles(pomdp) else 0
    pair_step = machine.pair_step * max(1.0, _network_size(learner)) + machine.particle_step * particles
    pairs = spec.num_rows * pomdp.horizon * pair_step
    parts = _parts(pomdp, spec)
    fits = sum(_fit_seconds(spec, particles if part == "relevant" else 0, machine) for part in parts)
    fits *= max(1.0, learner.num_layers * learner.hidden_size / CRITIC_INPUTS)
    if spec.estimator == "sufficiency":  # on its own histories and on the last policy's; with controls on one of them
        fits *= 2 + SHARE_CONTROLS * controls
        return machine.measure_start + 2 * pairs + fits + _atoms_seconds(spec, particles, machine)
    if controls:
        fits *= 1 + CONTROL_FITS
    return machine.measure_start + machine.controls_start * controls + pairs + fits


def _atoms_seconds(spec: MeasurementSpec, particles: int, machine: Machine) -> float:
    return 0.0 if particles else spec.num_samples * machine.decoders_pair


def _fit_seconds(spec: MeasurementSpec, particles: int, machine: Machine) -> float:
    if spec.estimator == "best-bound":
        return spec.num_samples * machine.best_bound_pair * max(1.0, spec.num_samples / BEST_BOUND_PAIRS)
    if spec.num_epochs is None:
        return spec.num_samples * machine.decoders_pair * (2.0 if particles else 1.0)  # sets at two resolutions
    return spec.num_epochs * spec.num_samples * (machine.vector_epoch + machine.particle_epoch * particles)


def _fits(run: RunSpec) -> int:
    return sum(
        len(_parts(run.training.pomdp, each.spec)) * (len(each.episodes) + CONTROL_FITS * len(each.controls))
        for each in run.measurements
        if each.spec.estimator != "sufficiency"
    )


def _shares(run: RunSpec) -> int:
    shares = [each for each in run.measurements if each.spec.estimator == "sufficiency"]
    return sum(len(_parts(run.training.pomdp, each.spec)) * len(each.episodes) for each in shares)


def _pairs(measurement: Measurement) -> int:
    """Sufficiency is measured on two sets of histories."""
    return len(measurement.episodes) * measurement.spec.num_rows * (1 + (measurement.spec.estimator == "sufficiency"))


def _parts(pomdp: POMDP, spec: MeasurementSpec) -> tuple[str, ...]:
    if spec.part != "all":
        return (spec.part,)
    return ("relevant", "irrelevant") if isinstance(pomdp, Irrelevant) else ("relevant",)


def _has_particles(pomdp: POMDP) -> bool:
    return not isinstance(pomdp.pomdp if isinstance(pomdp, Irrelevant) else pomdp, Finite)


def _span(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """In the unit that suits."""
    for unit, size, most in (("second", 1, 90), ("minute", 60, 90), ("hour", 3600, 48)):
        if seconds < most * size:
            return _count(max(1, round(seconds / size)), unit)
    return _count(round(seconds / 86400), "day")
