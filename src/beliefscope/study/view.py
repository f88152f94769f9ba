"""What is seen of a study that runs: overall progress with the time left, and what every worker does.

On a terminal a live view; elsewhere, as in a batch job's log, a line now and then.
"""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from beliefscope.study.cost import duration

_EVERY = 30.0  # seconds between two lines of a log
_PERIOD = 1800.0  # seconds over which the speed is averaged, for the time left


class _TimeLeft(TimeRemainingColumn):
    """For the study as a whole; a worker shows how long it has been at its piece."""

    def render(self, task: Task) -> Text:
        return Text("") if task.fields["is_worker"] else Text.assemble(super().render(task), " left")


class View:
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
            speed_estimate_period=_PERIOD,
        )
        self._overall = self._bar.add_task(title, total=max(total, 1e-9), status=f"0/{pieces} pieces", is_worker=False)
        self._workers: list[TaskID] = [
            self._bar.add_task(f"  worker {number + 1}", total=1.0, status="starting", is_worker=True)
            for number in range(workers)
        ]
        self._expected = [0.0] * workers  # seconds, of what each has in hand
        self._counted = [0.0] * workers  # how many of them the overall bar has
        self._title, self._pieces, self._ended = title, pieces, 0
        self._console, self._spoken = console, time.monotonic()

    def begin(self, worker: int, title: str, seconds: float) -> None:
        """A worker takes up work of so many expected seconds."""
        self._expected[worker], self._counted[worker] = seconds, 0.0
        self._bar.reset(self._workers[worker], total=1.0, status=title, is_worker=True)

    def progress(self, worker: int, fraction: float) -> None:
        self._bar.update(self._workers[worker], completed=fraction)
        self._count(worker, fraction)

    def rest(self, worker: int) -> None:
        self._bar.reset(self._workers[worker], total=1.0, status="waiting", is_worker=True)

    def end(self, worker: int, pieces: int, lost: float) -> None:
        """What a worker had in hand is over: so many pieces, with those of `lost` seconds that will not be done."""
        self._count(worker, 1.0)
        self._ended += pieces
        self._bar.update(self._overall, advance=lost, status=f"{self._ended}/{self._pieces} pieces")
        now = time.monotonic()
        if not self._live and (now - self._spoken > _EVERY or self._ended == self._pieces):
            self._spoken = now
            line = f"{self._title}: {self._ended}/{self._pieces} pieces{self._time_left()}"
            self._console.print(line, highlight=False, markup=False)

    def say(self, sentence: str) -> None:
        """A line that stays."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def _time_left(self) -> str:
        (overall,) = (task for task in self._bar.tasks if task.id == self._overall)
        seconds = float(overall.time_remaining or 0)  # unknown before two pieces have ended
        return f", about {duration(seconds)} left" if seconds else ""

    def _count(self, worker: int, fraction: float) -> None:
        done = fraction * self._expected[worker]
        self._bar.update(self._overall, advance=done - self._counted[worker])
        self._counted[worker] = done

    def __enter__(self) -> "View":
        self._bar.start()
        return self

    def __exit__(self, *ending: object) -> None:
        self._bar.stop()
