"""What a study costs: how much there is to train and to measure, and about how long that takes on one core of a CPU.

The seconds are orders of magnitude, from the measurements of docs/benchmarks.md: good for deciding what to start, and
for a progress bar. A GPU is faster, most of all with particle sets.
"""

from collections.abc import Iterable
from typing import NamedTuple

from beliefscope.agent import DRQN
from beliefscope.agent.stored_spec import CELLS
from beliefscope.measurement import MeasurementSpec
from beliefscope.pomdp import POMDP, Finite, Irrelevant
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec
from beliefscope.study.study import Study

# Seconds on one core. A gradient step is one of the paper's (32 histories, 2 layers of 32), per step of the horizon.
GRADIENT_STEP = {"LSTM": 3.8e-5, "GRU": 3.9e-5, "BRC": 2.1e-5, "NBRC": 2.8e-5, "MGU": 3.9e-5}
TRAINING_START = 11.0  # compilation
MEASURE_START = 2.5  # compilation that each checkpoint needs anew, and what is computed besides
CONTROLS_START = 12.0  # the same for the controls, with the decoders
PAIR_STEP = 2.3e-6  # to play and to filter exactly, per pair and step of the horizon
PARTICLE_STEP = 5e-8  # to filter with particles, per pair, step and particle
VECTOR_EPOCH = 1e-5  # of MINE, per pair and epoch
PARTICLE_EPOCH = 1e-6  # of MINE on sets, per pair, epoch and particle
TRUSTED_PAIR = 4.5e-3  # per pair, of up to TRUSTED_PAIRS; more are each compared with more others
TRUSTED_PAIRS = 10_000
CRITIC_INPUTS = 400  # the size of a memory that takes an estimator as long to read as all else it does
TRACE = 3.0

CONTROL_FITS = 6


class Cost(NamedTuple):
    """How much there is to do."""

    runs: int
    fits: int  # of estimators: one for each checkpoint, ε, estimator and part of the belief, and its controls
    pairs: int  # of memory and belief, sampled for them
    traces: int
    seconds: float  # on one core


def cost(runs: Iterable[RunSpec]) -> Cost:
    """Of all these runs together; `cost(study.runs)` is that of a study."""
    runs = list(runs)
    return Cost(
        runs=len(runs),
        fits=sum(_fits(run) for run in runs),
        pairs=sum(len(each.episodes) * each.spec.num_rows for run in runs for each in run.measurements),
        traces=sum(len(run.traces) for run in runs),
        seconds=sum(_run_seconds(run) for run in runs),
    )


def seconds(piece: Piece, run: RunSpec) -> float:
    """About how long a piece of this run takes on one core."""
    if piece.measurement is not None:
        return _measure_seconds(run, piece.measurement, controls=piece.controls)
    return _train_seconds(run) if piece.kind == "train" else TRACE


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
    counts = f"{_count(total.runs, 'run')}, {_count(total.fits, 'fit')} on {_count(total.pairs, 'pair')}"
    times = f"about {duration(total.seconds)} on one core, {duration(total.seconds / 2)} on two"
    return "\n".join([title, "", *lines, "", f"{counts}, {_count(total.traces, 'trace')}: {times}"])


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


def _run_seconds(run: RunSpec) -> float:
    measured = 0.0
    for each in run.measurements:
        plain, thorough = (_measure_seconds(run, each.spec, controls=controls) for controls in (False, True))
        measured += (len(each.episodes) - len(each.controls)) * plain + len(each.controls) * thorough
    return _train_seconds(run) + measured + TRACE * len(run.traces)


def _train_seconds(run: RunSpec) -> float:
    learner, horizon = run.training.learner, run.training.pomdp.horizon
    step = GRADIENT_STEP.get(learner.cell.__name__, GRADIENT_STEP["GRU"]) * learner.batch_size / 32
    learn = learner.num_episodes * learner.gradient_steps * horizon * step
    evaluate = learner.num_episodes / learner.evaluation_period * learner.evaluation_episodes * horizon * PAIR_STEP
    return TRAINING_START + (learn + evaluate) * _network_size(learner)


def _network_size(learner: DRQN) -> float:
    """How long a step of the recurrent layers takes, in multiples of the paper's 2 layers of 32."""
    width = learner.hidden_size / 32
    return learner.num_layers / 2 * (1 + width + width**2) / 3


def _measure_seconds(run: RunSpec, spec: MeasurementSpec, *, controls: bool) -> float:
    pomdp, learner = run.training.pomdp, run.training.learner
    particles = spec.num_particles if _has_particles(pomdp) else 0
    pair_step = PAIR_STEP * max(1.0, _network_size(learner)) + PARTICLE_STEP * particles
    pairs = spec.num_rows * pomdp.horizon * pair_step
    fits = sum(_fit_seconds(spec, particles if part == "relevant" else 0) for part in _parts(pomdp, spec))
    fits *= max(1.0, learner.num_layers * learner.hidden_size / CRITIC_INPUTS)
    if controls:
        fits *= 1 + CONTROL_FITS
    return MEASURE_START + CONTROLS_START * controls + pairs + fits


def _fit_seconds(spec: MeasurementSpec, particles: int) -> float:
    if spec.estimator == "trusted":
        return spec.num_samples * TRUSTED_PAIR * max(1.0, spec.num_samples / TRUSTED_PAIRS)
    assert spec.num_epochs is not None
    return spec.num_epochs * spec.num_samples * (VECTOR_EPOCH + PARTICLE_EPOCH * particles)


def _fits(run: RunSpec) -> int:
    return sum(
        len(_parts(run.training.pomdp, each.spec)) * (len(each.episodes) + CONTROL_FITS * len(each.controls))
        for each in run.measurements
    )


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
