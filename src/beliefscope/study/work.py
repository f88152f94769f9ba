"""Does pieces of a study, and leaves their results in its folder. What is there already is not done again."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

from beliefscope.agent import RunFolder, train
from beliefscope.belief import filter_of_paper
from beliefscope.measurement import measure_checkpoint, trace
from beliefscope.storage import Busy, Damaged, lock, save_arrays
from beliefscope.study.backends.interface import Outcome
from beliefscope.study.compiled import first_alone
from beliefscope.study.folder import StudyFolder
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec

_PARTICLES = 200  # of a traced belief, where nothing is measured


def attempt(doing: Callable[[], None]) -> Outcome:
    """How it ended."""
    try:
        doing()
    except Busy as error:
        return Outcome("busy", str(error))
    except ConnectionError:
        raise
    except OSError as error:
        return Outcome("stop", f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # whatever a piece's failure is, it is told and the others go on
        return Outcome("failed", str(error) or type(error).__name__, traceback.format_exc())
    return Outcome("done")


def do(
    pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path, watch: Callable[[float], None] | None = None
) -> None:
    """Do pieces of one kind: trainings that differ in their seeds alone as one batch, others one by one.

    `watch` is told the fraction of a training that is done.
    """
    report = watch or (lambda fraction: None)
    if pieces[0].kind == "train":
        _train(pieces, runs, folder, report)
        return
    for piece in pieces:
        try:
            with first_alone((piece.kind, runs[piece.run].environment, piece.measurement, piece.controls)):
                _look(piece, runs[piece.run], folder)
        except Damaged:  # a network, found out only now: what depends on it is made again
            training = Piece(kind="train", run=piece.run, label=piece.label)
            with lock(folder / "locks" / training.name):
                StudyFolder(folder).set_aside(training)
            _train([training], runs, folder, report)
            _look(piece, runs[piece.run], folder)


def _train(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path, watch: Callable[[float], None]) -> None:
    specs = [runs[piece.run].training for piece in pieces]
    try:
        train(specs, folder, watch=watch)
    except Damaged as error:
        (piece,) = (piece for piece in pieces if piece.run in error.path.parts)
        with lock(folder / "locks" / piece.name):
            StudyFolder(folder).set_aside(piece)
        train(specs, folder, watch=watch)


def _look(piece: Piece, run: RunSpec, folder: Path) -> None:
    """Measure or trace a checkpoint."""
    assert piece.episode is not None
    stored = RunFolder(folder, run.training)
    stored.open()
    if piece.measurement is not None:
        extras = {"with_controls": piece.controls, "with_calibration": piece.calibrate}
        measure_checkpoint(stored, piece.measurement, piece.episode, **extras)
        return
    result = piece.result(folder)
    with lock(folder / "locks" / piece.name):
        if not result.exists():
            pomdp, variant = run.training.pomdp, run.training.learner.variant
            particles = max((each.spec.num_particles for each in run.measurements), default=_PARTICLES)
            filter = filter_of_paper(pomdp, variant, num_particles=particles)
            key = jax.random.key(int(run.id[:8], 16) ^ piece.episode)
            save_arrays(result, trace(key, stored.network(piece.episode), pomdp, filter))
