"""Runs a study: what is missing in its folder is done by a backend, and what becomes of it is recorded.

Killed at any moment, it goes on where it was: pieces that are done are found by their names, trainings continue from
their last stored state, and locks die with their holders.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from beliefscope.agent.manifest import write_manifest
from beliefscope.errors import is_whole, require
from beliefscope.storage import write_atomic, write_record
from beliefscope.study.backends.choose import choose
from beliefscope.study.backends.interface import Backend, Message, Note, Outcome, Progress, Ready
from beliefscope.study.cost import seconds
from beliefscope.study.folder import StudyFolder
from beliefscope.study.piece import Piece
from beliefscope.study.schedule import Likeness, Schedule
from beliefscope.study.study import Study
from beliefscope.study.view import View


def run_study(
    study: Study,
    folder: str | Path,
    *,
    workers: int | None = None,
    only: Sequence[str] = (),
    backend: str = "local",
    address: str | None = None,
) -> StudyFolder:
    """Do what is missing; `workers` are by default as many as cores, or as a GPU has room for.

    `only` keeps the pieces whose titles ("T-Maze, L = 50, GRU, seed 0: train") contain one of these texts, and the
    trainings that they need. Pieces that fail are recorded and left; the next call tries them again. The backend is
    "local", this machine, or "ray", the Ray cluster at `address`.
    """
    _check(study, workers, only)
    stored = StudyFolder(folder)
    with contextlib.closing(choose(backend, address=address, workers=workers)) as chosen:
        stored.prepare(study)
        restore_descriptions(study, stored.path)
        for damaged in stored.set_aside_damaged():
            print(f"set aside, to be made again: {damaged.path}, since {damaged.why}", flush=True)
        _Run(study, stored, only).go(chosen)
    return stored


def _check(study: Study, workers: int | None, only: Sequence[str]) -> None:
    require(
        isinstance(study, Study),
        rule="what is run is a Study",
        received=study,
        advice="read it first: run_study(read_study('my.toml'), folder)",
    )
    require(
        workers is None or (is_whole(workers) and workers >= 1),
        rule="the number of workers is a whole number of at least 1",
        received=workers,
        advice="leave it out for one worker on each core",
    )
    require(
        not isinstance(only, str),
        rule="only is a list of texts",
        received=only,
        advice=f"pass [{only!r}]",
    )
    require(
        not only or any(_is_asked(piece, only) for piece in study.pieces()),
        rule="--only names parts of titles such as 'T-Maze, L = 50, GRU, seed 0: train'",
        received=list(only),
        advice="`beliefscope show STUDY` prints the environments and cells",
    )


def restore_descriptions(study: Study, folder: Path) -> None:
    """Write the spec.json of runs that were begun and have lost it."""
    for run in study.runs:
        file = folder / "runs" / run.id / "spec.json"
        if file.parent.exists() and not file.exists():
            write_atomic(file, run.training.canonical_json().encode())


def missing(stored: StudyFolder, only: Sequence[str] = ()) -> list[Piece]:
    """The pieces to do: neither done nor in vain, and asked for, with the trainings they need."""
    states = stored.states()
    open_ones = [piece for piece in stored.pieces if states[piece.name] in ("missing", "failed", "running")]
    asked = [piece for piece in open_ones if not only or _is_asked(piece, only)]
    runs = {piece.run for piece in asked}
    return [piece for piece in open_ones if piece in asked or (piece.kind == "train" and piece.run in runs)]


def _is_asked(piece: Piece, only: Sequence[str]) -> bool:
    return any(text in piece.title for text in only)


class _Run:
    """One call: the schedule, what is in hand, and what became of the pieces."""

    def __init__(self, study: Study, stored: StudyFolder, only: Sequence[str]):
        self._study, self._stored = study, stored
        self._runs = {run.id: run for run in study.runs}
        self._pieces = missing(stored, only)
        self._seconds = {piece.name: seconds(piece, self._runs[piece.run]) for piece in self._pieces}
        self._in_hand: dict[int, list[Piece]] = {}  # by slot
        self._likeness: dict[int, Likeness] = {}  # of what a slot did last
        self._described = False

    def go(self, backend: Backend) -> None:
        if not self._pieces:
            return
        self._schedule = Schedule(self._pieces, self._runs, in_batches=backend.in_batches)
        slots = backend.open(self._runs, self._stored.path, at_most=len(self._pieces))
        total = sum(self._seconds.values())
        with View(self._study.name, total=total, pieces=len(self._pieces), workers=slots) as view:
            self._view = view
            while self._schedule or self._in_hand:
                self._assign(backend)
                for slot, message in backend.heard():
                    self._listen(slot, message)

    def _assign(self, backend: Backend) -> None:
        for slot in backend.idle():
            others = [likeness for other, likeness in self._likeness.items() if other != slot]
            pieces = self._schedule.take(self._likeness.get(slot), others)
            if pieces:
                self._in_hand[slot], self._likeness[slot] = pieces, self._schedule.likeness(pieces[0])
                self._view.begin(slot, pieces[0].title, sum(self._seconds[piece.name] for piece in pieces))
                backend.give(slot, pieces)
            else:
                self._view.rest(slot)

    def _listen(self, slot: int, message: Message) -> None:
        if isinstance(message, Ready):
            if not self._described:
                write_manifest(self._stored.path, message.device)
                self._described = True
        elif isinstance(message, Progress):
            self._view.progress(slot, message.fraction)
        elif isinstance(message, Note):
            self._view.say(message.sentence)
        else:
            self._conclude(slot, message)

    def _conclude(self, slot: int, outcome: Outcome) -> None:
        pieces = self._in_hand.pop(slot, [])
        if outcome.kind == "stop":
            raise OSError(outcome.error)
        if outcome.kind == "done" and not all(self._is_over(piece) for piece in pieces):
            outcome = Outcome("failed", "its worker ended without a result")
        lost: list[Piece] = []
        for piece in pieces:
            self._record(piece, outcome)
            if piece.kind == "train":
                trained = piece.result(self._stored.path).exists()
                lost += self._schedule.trained(piece.run, failed=not trained)
        self._view.end(slot, len(pieces) + len(lost), sum(self._seconds[piece.name] for piece in lost))

    def _is_over(self, piece: Piece) -> bool:
        diverged = piece.kind == "train" and self._stored.diverged(piece.run)
        return diverged or piece.result(self._stored.path).exists()

    def _record(self, piece: Piece, outcome: Outcome) -> None:
        file = piece.failure(self._stored.path)
        if outcome.kind == "done":
            file.unlink(missing_ok=True)
        elif outcome.kind == "failed":
            write_record(file, {"piece": piece.title, "error": outcome.error, "details": outcome.details})
            self._view.say(f"failed: {piece.title}: {outcome.error}")
        else:
            self._view.say(f"left to the process that does it: {piece.title}")
