"""Runs a study: a backend does the pieces that are missing in its folder, and their outcomes are recorded.

A study that was killed at any moment is resumed by running it again: pieces that are done are found by their names,
trainings continue from their last stored state, and the kernel releases the locks of processes that have ended.

`ProgressDisplay` shows how many pieces are done, the time left, and what every worker does: live on a terminal;
elsewhere, as in a batch job's log, by a line now and then.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Task, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from beliefscope.errors import is_whole, require
from beliefscope.store import Damaged, StudyFiles, is_file, write_atomic, write_record
from beliefscope.store.files import read_bytes
from beliefscope.store.layout import move_aside
from beliefscope.store.manifest import write_manifest
from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import StudyFolder, is_held
from beliefscope.study.cost import duration, piece_seconds
from beliefscope.study.schedule import (
    Programs,
    Schedule,
    describe_differing,
    describe_trained_again,
    differs_from_earlier,
    is_asked,
    pieces_to_do,
    set_aside_results,
    set_aside_trainings,
)
from beliefscope.study.spec import Study
from beliefscope.study.workers import choose_backend
from beliefscope.study.workers.execute import Backend, Message, Note, Outcome, Progress, Ready

_LINE_PERIOD = 30.0  # seconds between two lines of a log
_SPEED_PERIOD = 1800.0  # seconds over which the speed is averaged, for the time left


class _TimeLeft(TimeRemainingColumn):
    """For the study as a whole; a worker shows how long it has worked on its piece."""

    def render(self, task: Task) -> Text:
        return Text("") if task.fields["is_worker"] else Text.assemble(super().render(task), " left")


class ProgressDisplay:
    """A context manager around a study's run."""

    def __init__(self, title: str, *, total: float, pieces: int, workers: int):
        """`total` are the expected seconds of work, `pieces` how many are to be done."""
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[status]}", markup=False),
        )
        self._live = console.is_terminal
        self._bar = RichProgress(
            *columns,
            TimeElapsedColumn(),
            _TimeLeft(),
            console=console,
            disable=not self._live,
            speed_estimate_period=_SPEED_PERIOD,
        )
        self._overall = self._bar.add_task(title, total=max(total, 1e-9), status=f"0/{pieces} pieces", is_worker=False)
        self._workers: list[TaskID] = [
            self._bar.add_task(f"  worker {number + 1}", total=1.0, status="starting", is_worker=True)
            for number in range(workers)
        ]
        self._expected = [0.0] * workers  # seconds, of the pieces that each works on
        self._counted = [0.0] * workers  # how many of them the overall bar has
        self._title, self._pieces, self._done, self._not_done = title, pieces, 0, 0
        self._console, self._last_line = console, time.monotonic()

    def begin(self, worker: int, title: str, seconds: float) -> None:
        """A worker begins work of so many expected seconds."""
        self._expected[worker], self._counted[worker] = seconds, 0.0
        self._bar.reset(self._workers[worker], total=1.0, status=title, is_worker=True)

    def update(self, worker: int, fraction: float) -> None:
        """So much of a worker's pieces is done."""
        self._bar.update(self._workers[worker], completed=fraction)
        self._count(worker, fraction)

    def wait(self, worker: int) -> None:
        """A worker has nothing to do at present."""
        self._bar.reset(self._workers[worker], total=1.0, status="waiting", is_worker=True)

    def put_back(self, worker: int) -> None:
        """The pieces of a worker are not done, and will be begun again."""
        self._count(worker, 0.0)
        self._expected[worker] = 0.0

    def end(self, worker: int, *, done: int, not_done: int = 0, left_out: float = 0.0) -> None:
        """The pieces of a worker have ended; so many are done, and others, of `left_out` seconds, never will be."""
        self._count(worker, 1.0)
        self.add(done=done, not_done=not_done, seconds=left_out)

    def add(self, *, done: int, not_done: int = 0, seconds: float = 0.0) -> None:
        """So many pieces have ended, and the overall bar advances by so many seconds."""
        self._done, self._not_done = self._done + done, self._not_done + not_done
        self._bar.update(self._overall, advance=seconds, status=self._status())
        now = time.monotonic()
        is_last = self._done + self._not_done == self._pieces
        if not self._live and (now - self._last_line > _LINE_PERIOD or is_last):
            self._last_line = now
            self.print(f"{self._title}: {self._status()}{self._time_left()}")

    def print(self, sentence: str) -> None:
        """A line that stays; in a log it is not broken, however long it is."""
        self._console.print(sentence, highlight=False, markup=False, soft_wrap=not self._live)

    def _status(self) -> str:
        not_done = f", {self._not_done} failed or left out" if self._not_done else ""
        return f"{self._done}/{self._pieces} pieces{not_done}"

    def _time_left(self) -> str:
        (overall,) = (task for task in self._bar.tasks if task.id == self._overall)
        seconds = float(overall.time_remaining or 0)  # unknown before two pieces have ended
        return f", about {duration(seconds)} left" if seconds else ""

    def _count(self, worker: int, fraction: float) -> None:
        done = fraction * self._expected[worker]
        self._bar.update(self._overall, advance=done - self._counted[worker])
        self._counted[worker] = done

    def __enter__(self) -> "ProgressDisplay":
        self._bar.start()
        return self

    def __exit__(self, *ending: object) -> None:
        self._bar.stop()


_MOST_TRIES = 3  # of a piece whose worker is killed each time
_POLL = 1.0  # seconds between two looks at the pieces of another process


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
    trainings that they need. A piece that fails is recorded, and the next call tries it again; one whose worker is
    killed is tried twice more in this call. The call waits for pieces that another process is doing. The backend is
    "local", this machine, or "ray", the Ray cluster at `address`.
    """
    _check(study, workers, only)
    stored = StudyFolder(folder)
    with contextlib.closing(choose_backend(backend, address=address, workers=workers)) as chosen:
        stored.prepare(study.describe())
        restore_descriptions(study, stored.path)
        for damaged in stored.set_aside_damaged():
            print(f"set aside, to be made again: {damaged.path}, since {damaged.why}", flush=True)
        pieces = pieces_to_do(stored, only)
        trained_again = set_aside_trainings(stored, pieces)
        if trained_again:
            print(describe_trained_again(trained_again), flush=True)
            pieces = pieces_to_do(stored, only)
        if pieces:
            _Run(study, stored, pieces, chosen).run()
    return stored


def _check(study: Study, workers: int | None, only: Sequence[str]) -> None:
    require(
        isinstance(study, Study),
        rule="run_study takes a Study",
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
        not only or any(is_asked(piece, only) for piece in study.pieces()),
        rule="--only names parts of titles such as 'T-Maze, L = 50, GRU, seed 0: train'",
        received=list(only),
        advice="`beliefscope show STUDY` prints the environments and cells",
    )


def restore_descriptions(study: Study, folder: Path) -> None:
    """Write the spec.json of runs that were begun and have lost it, or have another one in its place."""
    for run in study.runs:
        file, text = StudyFiles(folder).run(run.id).spec, run.training.canonical_json().encode()
        if file.parent.exists() and not (is_file(file) and _holds(file, text)):
            move_aside(StudyFiles(folder), f"spec-{run.id}", [file])
            write_atomic(file, text)


def _holds(file: Path, text: bytes) -> bool:
    try:
        return read_bytes(file) == text
    except Damaged:
        return False


class _Run:
    """One call: the schedule, which slot does which pieces, and the pieces that other processes do."""

    def __init__(self, study: Study, stored: StudyFolder, pieces: list[Piece], backend: Backend):
        self._stored, self._backend = stored, backend
        runs = {run.id: run for run in study.runs}
        self._seconds = {piece.name: piece_seconds(piece, runs[piece.run]) for piece in pieces}
        self._schedule = Schedule(pieces, runs, in_batches=backend.in_batches)
        slots = backend.start(runs, stored.path, at_most=len(pieces))
        total = sum(self._seconds.values())
        if not backend.in_batches:  # on a GPU these seconds say nothing
            print(
                f"{len(pieces):,} of {len(stored.pieces):,} pieces to do: about {duration(total)} on one core",
                flush=True,
            )
        self._progress = ProgressDisplay(study.name, total=total, pieces=len(pieces), workers=slots)
        self._assigned: dict[int, list[Piece]] = {}  # by slot
        self._programs: dict[int, Programs] = {}  # that a slot has run last
        self._kills: Counter[str] = Counter()  # of workers, by the piece they were doing
        self._elsewhere: list[Piece] = []  # other processes are doing these
        self._looked_elsewhere = 0.0
        self._is_waiting = self._has_manifest = False
        self._differing: list[str] = []  # labels of runs that were trained again, to other networks

    def run(self) -> None:
        """Do all pieces."""
        with self._progress:
            while self._schedule or self._assigned or self._elsewhere:
                self._assign()
                for slot, message in self._backend.messages():
                    self._receive(slot, message)
                if self._elsewhere:
                    self._look_elsewhere()
            if self._differing:
                self._progress.print(describe_differing(self._differing))

    def _assign(self) -> None:
        """Give pieces to the slots that are idle."""
        for slot in self._backend.idle():
            others = [programs for other, programs in self._programs.items() if other != slot]
            pieces = self._schedule.take(self._programs.get(slot), others)
            if pieces:
                self._assigned[slot], self._programs[slot] = pieces, self._schedule.programs(pieces[0])
                self._progress.begin(slot, pieces[0].title, self._seconds_of(pieces))
                self._backend.assign(slot, pieces)
            else:
                self._progress.wait(slot)

    def _receive(self, slot: int, message: Message) -> None:
        if isinstance(message, Ready):
            if not self._has_manifest:
                write_manifest(self._stored.path, message.device)
                self._has_manifest = True
        elif isinstance(message, Progress):
            self._progress.update(slot, message.fraction)
        elif isinstance(message, Note):
            self._progress.print(message.sentence)
        else:
            self._conclude(slot, self._assigned.pop(slot, []), message)

    def _conclude(self, slot: int, pieces: list[Piece], outcome: Outcome) -> None:
        """The pieces of a slot have ended, for now or for good."""
        if outcome.kind == "stop":
            raise OSError(outcome.error)
        if not pieces:  # a worker has died that had nothing to do
            return
        if outcome.kind == "busy":
            self._progress.put_back(slot)
            self._elsewhere += pieces
        elif outcome.kind == "killed" and self._try_again(pieces, outcome.error):
            self._progress.put_back(slot)
        else:
            left_out: list[Piece] = []
            for piece in pieces:
                error = self._record(piece, outcome)
                left_out += self._release_measurements(piece) if piece.kind == "train" else self._left_out(piece, error)
            done = sum(self._stored.is_done(piece) for piece in pieces)
            not_done = len(pieces) - done + len(left_out)
            self._progress.end(slot, done=done, not_done=not_done, left_out=self._seconds_of(left_out))

    def _try_again(self, pieces: list[Piece], error: str) -> bool:
        """Put pieces back whose worker was killed, unless that has happened too often."""
        self._kills.update(piece.name for piece in pieces)
        kills = max(self._kills[piece.name] for piece in pieces)
        if kills >= _MOST_TRIES:
            return False
        self._schedule.put_back(pieces)
        self._progress.print(f"tried again ({kills} of {_MOST_TRIES - 1} times), since {error}: {pieces[0].title}")
        return True

    def _record(self, piece: Piece, outcome: Outcome) -> str | None:
        """Write why a piece failed, and return it; or remove what was written of an earlier failure."""
        file, error = piece.failure(self._stored.path), outcome.error
        if self._is_over(piece):
            file.unlink(missing_ok=True)
            return None
        if outcome.kind == "done":
            error = "its worker ended without a result"
        elif outcome.kind == "killed":
            error = f"{outcome.error}, {self._kills[piece.name]} times"
        write_record(file, {"piece": piece.title, "error": error, "details": outcome.details})
        self._progress.print(f"failed: {piece.title}: {error}")
        return error

    def _left_out(self, piece: Piece, error: str | None) -> list[Piece]:
        """What is not tried because this piece and all others of its kind so far have failed with the same error."""
        if error is None:
            self._schedule.done(piece)
            return []
        left_out = self._schedule.failed_alike(piece, error)
        if left_out:
            which = (
                left_out[0].title if len(left_out) == 1 else f"{len(left_out):,} pieces, such as {left_out[0].title}"
            )
            self._progress.print(f"left out, since all of their kind have failed so far, with the same error: {which}")
        return left_out

    def _release_measurements(self, piece: Piece) -> list[Piece]:
        """After a training: measurements may begin; if it is not done they never will, and are returned."""
        is_done = self._stored.is_done(piece)
        if is_done and differs_from_earlier(self._stored, piece.run):
            set_aside_results(self._stored, piece.run)
            self._differing.append(piece.label)
        return self._schedule.training_ended(piece.run, failed=not is_done)

    def _look_elsewhere(self) -> None:
        """Look after pieces that other processes were doing: they are done by now, or to be done here."""
        if not self._assigned and not self._schedule.ready():
            self._say_waiting()
            time.sleep(_POLL)
        elif time.monotonic() < self._looked_elsewhere + _POLL:
            return
        self._looked_elsewhere = time.monotonic()
        pieces, self._elsewhere = self._elsewhere, []
        for piece in pieces:
            if self._is_over(piece):
                left_out = self._release_measurements(piece) if piece.kind == "train" else []
                done = int(self._stored.is_done(piece))
                seconds = self._seconds_of([piece, *left_out])
                self._progress.add(done=done, not_done=1 - done + len(left_out), seconds=seconds)
            elif is_held(self._stored.files.lock(piece.name)):
                self._elsewhere.append(piece)
            else:
                self._schedule.put_back([piece])

    def _say_waiting(self) -> None:
        if not self._is_waiting:
            number, first = len(self._elsewhere), self._elsewhere[0].title
            which = first if number == 1 else f"{number} pieces, such as {first}"
            self._progress.print(f"waiting for another process, which is doing {which}")
        self._is_waiting = True

    def _is_over(self, piece: Piece) -> bool:
        """Is it done, or a training that has diverged?"""
        diverged = piece.kind == "train" and self._stored.diverged(piece.run)
        return diverged or self._stored.is_done(piece)

    def _seconds_of(self, pieces: Sequence[Piece]) -> float:
        return sum((self._seconds[piece.name] for piece in pieces), 0.0)
