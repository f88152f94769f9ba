"""What a worker does with the pieces of a study, and what every backend has in common.

A worker leaves the results of its pieces in the folder, unless these are there. A backend has slots, is assigned pieces
for them, and gives messages about them: a message about a slot is a `Ready`, `Progress`, `Note` or `Outcome`. An
`Outcome` ends the pieces that the slot was assigned.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax

from beliefscope.agent import RunFolder, train
from beliefscope.belief import filter_of_paper
from beliefscope.interventions import intervene
from beliefscope.measurement import measure_checkpoint, trace
from beliefscope.store import Busy, Damaged, lock, save_arrays
from beliefscope.store.files import make_once, write_record
from beliefscope.store.manifest import made_with
from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import StudyFolder
from beliefscope.study.devices import first_compiles_alone
from beliefscope.study.spec import RunSpec


class Ready(NamedTuple):
    """Work can begin, on such a device."""

    device: str


class Progress(NamedTuple):
    """The fraction of the assigned pieces that is done."""

    fraction: float


class Note(NamedTuple):
    """A sentence for the user."""

    sentence: str


class Outcome(NamedTuple):
    """How the assigned pieces ended.

    "busy": another process is doing them. "killed": the worker ended in the middle of them. "stop": the error, such as
    that of a full disk, concerns all pieces.
    """

    kind: Literal["done", "busy", "failed", "killed", "stop"]
    error: str = ""
    details: str = ""


Message = Ready | Progress | Note | Outcome


@runtime_checkable
class Backend(Protocol):
    """Results are in the study's folder before their outcome is told, written under the locks of their pieces."""

    in_batches: bool  # are trainings that differ in their seeds alone better done as one?

    def start(self, runs: Mapping[str, Any], folder: Path, *, at_most: int) -> int:
        """Begin, with the runs by their ids and the study's folder; returns the number of slots."""
        ...

    def idle(self) -> list[int]:
        """The slots that can be assigned pieces now."""
        ...

    def assign(self, slot: int, pieces: Sequence[Any]) -> None:
        """Have pieces done that `Schedule.take` put together."""
        ...

    def messages(self) -> Iterator[tuple[int, Message]]:
        """The messages of the slots that have arrived; waits for the first of them for a second at most."""
        ...

    def close(self) -> None:
        """End all work at once; what is stored stays."""
        ...


_TRACED_PARTICLES = 200  # of the belief, where nothing is measured


def outcome_of(work: Callable[[], None]) -> Outcome:
    """Do the work, and say how it ended."""
    try:
        work()
    except Busy as error:
        return Outcome("busy", str(error))
    except ConnectionError:
        raise
    except OSError as error:
        return Outcome("stop", f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # whatever it is, it is recorded, and other pieces are done
        return Outcome("failed", str(error) or type(error).__name__, traceback.format_exc())
    return Outcome("done")


def execute(
    pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path, watch: Callable[[float], None] | None = None
) -> None:
    """Do pieces of one kind: trainings that differ in their seeds alone as one batch, others one by one.

    `watch` is called with the fraction of a training that is done.
    """
    report = watch or (lambda fraction: None)
    if pieces[0].kind == "train":
        _train(pieces, runs, folder, report)
        return
    for piece in pieces:
        try:
            with first_compiles_alone((piece.kind, runs[piece.run].environment, piece.measurement, piece.controls)):
                _look_at(piece, runs[piece.run], folder)
        except Damaged:  # a network is, which is found only as it is read: the run is trained again
            training = Piece(kind="train", run=piece.run, label=piece.label)
            _set_aside(training, folder)
            _train([training], runs, folder, report)
            _look_at(piece, runs[piece.run], folder)


def _train(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path, watch: Callable[[float], None]) -> None:
    specs = [runs[piece.run].training for piece in pieces]
    try:
        train(specs, folder, watch=watch)
    except Damaged as error:
        (piece,) = (piece for piece in pieces if piece.run in error.path.parts)
        _set_aside(piece, folder)
        train(specs, folder, watch=watch)


def _set_aside(training: Piece, folder: Path) -> None:
    stored = StudyFolder(folder)
    with lock(stored.files.lock(training.name)):
        stored.set_aside(training)


def _look_at(piece: Piece, run: RunSpec, folder: Path) -> None:
    assert piece.episode is not None
    stored = RunFolder(folder, run.training)
    stored.open()
    if piece.measurement is not None:
        options = {"with_controls": piece.controls, "with_calibration": piece.calibrate}
        measure_checkpoint(stored, piece.measurement, piece.episode, **options)
        return
    make = partial(
        {"trace": _trace, "intervene": _intervene}[piece.kind], stored, run, piece.episode, piece.result(folder)
    )
    make_once(stored.files.study.lock(piece.name), piece.result(folder), make)


def _trace(stored: RunFolder, run: RunSpec, episode: int, result: Path) -> None:
    pomdp, variant = run.training.pomdp, run.training.learner.variant
    particles = max((each.spec.num_particles for each in run.measurements), default=_TRACED_PARTICLES)
    filter = filter_of_paper(pomdp, variant, num_particles=particles)
    key = jax.random.key(int(run.id[:8], 16) ^ episode)
    save_arrays(result, trace(key, stored.network(episode), pomdp, filter))


def _intervene(stored: RunFolder, run: RunSpec, episode: int, result: Path) -> None:
    key = jax.random.key(int(run.id[:8], 16) ^ episode)
    found = intervene(key, stored.network(episode), run.training.pomdp)
    write_record(result, {"run": run.id, "episode": episode, **found.as_dict(), "made_with": made_with()})
