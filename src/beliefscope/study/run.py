"""Runs a study: what is missing in its folder is done by worker processes, one on each core.

Killed at any moment, it goes on where it was: pieces that are done are found by their names, trainings continue from
their last stored state, and locks die with their holders.
"""

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from beliefscope.agent.manifest import write_manifest
from beliefscope.errors import is_whole, require
from beliefscope.storage import write_record
from beliefscope.study.cost import seconds
from beliefscope.study.device import has_gpu
from beliefscope.study.folder import StudyFolder
from beliefscope.study.piece import Piece
from beliefscope.study.schedule import Likeness, Schedule
from beliefscope.study.study import Study
from beliefscope.study.view import View
from beliefscope.study.worker import Outcome, Progress, Ready, work

_MOST_DEATHS = 3  # of workers, one after the other, before the study is given up


def run_study(study: Study, folder: str | Path, *, workers: int | None = None, only: Sequence[str] = ()) -> StudyFolder:
    """Do what is missing; `workers` are by default as many as cores, or one on a GPU.

    `only` keeps the pieces whose titles ("T-Maze, L = 50, GRU, seed 0: train") contain one of these texts, and the
    trainings that they need. Pieces that fail are recorded and left; the next call tries them again.
    """
    _check(study, workers, only)
    stored = StudyFolder(folder)
    stored.prepare(study)
    for damaged in stored.set_aside_damaged():
        print(f"set aside, to be made again: {damaged.path}, since {damaged.why}", flush=True)
    cores = sorted(os.sched_getaffinity(0))
    on_gpu = has_gpu()
    number = workers or (1 if on_gpu else len(cores))
    _Run(study, stored, only).go([None if on_gpu else cores[index % len(cores)] for index in range(number)], on_gpu)
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


def missing(stored: StudyFolder, only: Sequence[str] = ()) -> list[Piece]:
    """The pieces to do: neither done nor in vain, and asked for, with the trainings they need."""
    states = stored.states()
    open_ones = [piece for piece in stored.pieces if states[piece.name] in ("missing", "failed", "running")]
    asked = [piece for piece in open_ones if not only or _is_asked(piece, only)]
    runs = {piece.run for piece in asked}
    return [piece for piece in open_ones if piece in asked or (piece.kind == "train" and piece.run in runs)]


def _is_asked(piece: Piece, only: Sequence[str]) -> bool:
    return any(text in piece.title for text in only)


@dataclasses.dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    ready: bool = False
    pieces: list[Piece] = dataclasses.field(default_factory=list)
    likeness: Likeness | None = None  # of what it did last


class _Run:
    """One call: the schedule, the workers, and what became of the pieces."""

    def __init__(self, study: Study, stored: StudyFolder, only: Sequence[str]):
        self._study, self._stored = study, stored
        self._runs = {run.id: run for run in study.runs}
        self._pieces = missing(stored, only)
        self._seconds = {piece.name: seconds(piece, self._runs[piece.run]) for piece in self._pieces}
        self._deaths = 0
        self._described = False

    def go(self, cores: list[int | None], on_gpu: bool) -> None:
        self._schedule = Schedule(self._pieces, self._runs, in_batches=on_gpu)
        cores = cores[: max(1, len(self._pieces))]
        if not self._pieces:
            return
        total = sum(self._seconds.values())
        with View(self._study.name, total=total, pieces=len(self._pieces), workers=len(cores)) as view:
            self._view = view
            workers = [self._start(core) for core in cores]
            try:
                while self._schedule or any(worker.pieces for worker in workers):
                    self._assign(workers)
                    for index in _heard(workers):
                        if not self._listen(index, workers[index]):
                            workers[index] = self._replace(index, workers[index], cores[index])
            finally:
                for worker in workers:
                    worker.process.kill()  # whatever it writes is whole or not there
                    worker.process.join()
                    worker.connection.close()

    def _start(self, core: int | None) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=work, args=(theirs, self._runs, self._stored.path, core, os.getpid()))
        with _deaf_to_interrupts():  # which a worker inherits: the parent hears them, and ends it
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _assign(self, workers: list[_Worker]) -> None:
        for index, worker in enumerate(workers):
            if not worker.ready or worker.pieces:
                continue
            others = [other.likeness for other in workers if other is not worker and other.likeness is not None]
            worker.pieces = self._schedule.take(worker.likeness, others)
            if worker.pieces:
                worker.likeness = self._schedule.likeness(worker.pieces[0])
                expected = sum(self._seconds[piece.name] for piece in worker.pieces)
                self._view.begin(index, worker.pieces[0].title, expected)
                with contextlib.suppress(OSError):  # a worker that is dead is heard of as such
                    worker.connection.send(worker.pieces)
            else:
                self._view.rest(index)

    def _listen(self, index: int, worker: _Worker) -> bool:
        """Take one message; False if the worker is no more."""
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return False
        if isinstance(message, Ready):
            worker.ready = True
            if not self._described:
                write_manifest(self._stored.path, message.device)
                self._described = True
        elif isinstance(message, Progress):
            self._view.progress(index, message.fraction)
        else:
            self._deaths = 0
            self._conclude(index, worker, message)
        return True

    def _replace(self, index: int, worker: _Worker, core: int | None) -> _Worker:
        worker.process.join()
        self._deaths += 1
        how = f"its worker died (exit status {worker.process.exitcode}; -9 is often a lack of memory)"
        self._conclude(index, worker, Outcome("failed", how))
        guard = "call run_study in a file, behind `if __name__ == '__main__':`, since workers import that file"
        require(
            self._deaths < _MOST_DEATHS,
            rule="workers live as long as the study",
            received=f"{self._deaths} deaths one after the other, the last with exit status {worker.process.exitcode}",
            advice="look at the memory, or try fewer --workers; what is finished is saved" if worker.ready else guard,
        )
        return self._start(core)

    def _conclude(self, index: int, worker: _Worker, outcome: Outcome) -> None:
        pieces, worker.pieces = worker.pieces, []
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
        self._view.end(index, len(pieces) + len(lost), sum(self._seconds[piece.name] for piece in lost))

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


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _heard(workers: list[_Worker]) -> list[int]:
    """The workers with something to say, or dead."""
    connections: dict[Connection, int] = {worker.connection: index for index, worker in enumerate(workers)}
    return [connections[connection] for connection in wait(list(connections), timeout=1.0)]  # pyright: ignore
