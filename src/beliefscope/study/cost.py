"""What a study costs: how much there is to train and to measure, and about how long that takes.

The seconds are orders of magnitude, on one core of a CPU or on an H200 with ten workers: they help to decide what to
start, and they weigh the pieces in the progress bar.
"""

from collections.abc import Iterable
from typing import NamedTuple

from beliefscope.agent import DRQN
from beliefscope.agent.cells import CELLS
from beliefscope.pomdp import POMDP, Finite, Irrelevant
from beliefscope.progress import count
from beliefscope.store import MeasurementSpec
from beliefscope.store.pieces import Piece
from beliefscope.study.spec import Measurement, RunSpec, Study

CRITIC_INPUTS = 400  # the size of a memory that takes an estimator as long to read as all else it does
BEST_BOUND_PAIRS = 10_000  # the best bound takes longer for each pair beyond, which is compared with more others
CONTROL_FITS = 6
CALIBRATION_FITS = 4  # beside the controls, once in each environment
SHARE_CONTROLS = 4  # of sufficiency


class Machine(NamedTuple):
    """How many seconds the parts of a study take on a machine (docs/benchmarks.md).

    A gradient step is one of the paper's (32 histories, 2 layers of 32), per step of the horizon.
    """

    gradient_step: dict[str, float]  # by cell, of one agent, or of all seeds at once
    seeds_at_once: bool
    training_start: float  # compilation
    measure_start: float  # of each checkpoint: what is compiled anew, and what is computed besides
    controls_start: float  # the same for the controls, with the decoders
    pair_step: float  # to play and to filter exactly, per pair and step of the horizon
    particle_step: float  # to filter with particles, per pair, step and particle
    vector_epoch: float  # of MINE, per pair and epoch
    particle_epoch: float  # of MINE on sets, per pair, epoch and particle
    best_bound_pair: float  # of the best bound
    decoders_pair: float  # of sufficiency on one set of histories, and of the atoms bound, per pair
    trace: float
    intervene: float  # on one checkpoint


CORE = Machine(
    gradient_step={"LSTM": 3.8e-5, "GRU": 3.9e-5, "BRC": 2.1e-5, "NBRC": 2.8e-5, "MGU": 3.9e-5},
    seeds_at_once=False,
    training_start=20.0,
    measure_start=2.5,
    controls_start=8.0,
    pair_step=2.3e-6,
    particle_step=5e-8,
    vector_epoch=1e-5,
    particle_epoch=2.7e-7,
    best_bound_pair=2e-3,
    decoders_pair=4.5e-4,
    trace=7.0,
    intervene=20.0,
)
H200 = Machine(
    gradient_step={"LSTM": 3.5e-6, "GRU": 3.1e-6, "BRC": 1.6e-6, "NBRC": 2.4e-6, "MGU": 2.7e-6},
    seeds_at_once=True,
    training_start=22.0,
    measure_start=0.03,
    controls_start=0.3,
    pair_step=3e-9,
    particle_step=6e-11,
    vector_epoch=5.3e-8,
    particle_epoch=2.4e-10,
    best_bound_pair=3e-4,
    decoders_pair=3.5e-6,
    trace=1.0,
    intervene=5.0,
)


class Cost(NamedTuple):
    """How much there is to do."""

    runs: int
    fits: int  # of bits: one for each checkpoint, ε, estimator and part of the belief, and its controls
    pairs: int  # of memory and belief, sampled
    traces: int
    interventions: int  # checkpoints that are intervened on
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
        interventions=sum(len(run.interventions) for run in runs),
        shares=sum(_shares(run) for run in runs),
        seconds=_training_seconds(runs, machine) + calibrating + sum(_checkpoint_seconds(run, machine) for run in runs),
    )


def piece_seconds(piece: Piece, run: RunSpec) -> float:
    """About how long a piece of this run takes on one core."""
    if piece.measurement is not None:
        alone = _measure_seconds(run, piece.measurement, CORE, controls=piece.controls)
        return alone + (_calibration_seconds(run, piece.measurement, CORE) if piece.calibrate else 0.0)
    if piece.kind == "train":
        return _train_seconds(run, CORE)
    return CORE.trace if piece.kind == "trace" else CORE.intervene


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
    counts = f"{count(total.runs, 'run')}, {count(total.fits, 'fit')} and {count(total.shares, 'sufficiency')}"
    counts = f"{counts.replace('sufficiencys', 'sufficiencies')} on {count(total.pairs, 'pair')}"
    times = f"about {duration(total.seconds)} on one core, {duration(total.seconds / 2)} on two"
    gpu = f"about {duration(cost(study.runs, H200).seconds)} on an H200"
    counts += f", {count(total.traces, 'trace')}"
    counts += f", interventions on {count(total.interventions, 'checkpoint')}" if total.interventions else ""
    return "\n".join([title, "", *lines, "", f"{counts}:", f"{times}, {gpu}"])


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


def _checkpoint_seconds(run: RunSpec, machine: Machine) -> float:
    """To measure and to trace the checkpoints of a run."""
    measured = 0.0
    for each in run.measurements:
        plain, thorough = (_measure_seconds(run, each.spec, machine, controls=controls) for controls in (False, True))
        measured += (len(each.episodes) - len(each.controls)) * plain + len(each.controls) * thorough
    return measured + machine.trace * len(run.traces) + machine.intervene * len(run.interventions)


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


def duration(seconds: float) -> str:
    """In the unit that suits."""
    for unit, size, most in (("second", 1, 90), ("minute", 60, 90), ("hour", 3600, 48)):
        if seconds < most * size:
            return count(max(1, round(seconds / size)), unit)
    return count(round(seconds / 86400), "day")
