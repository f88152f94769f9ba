"""The progress of a study that runs: how many pieces are done, the time left, and what every worker does.

On a terminal it is a live display; elsewhere, as in a batch job's log, a line now and then.
"""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from beliefscope.study.cost import duration

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
        self._bar = Progress(
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
