"""What is seen of a study that runs: overall progress with the time left, and what every worker does.

On a terminal a live view; elsewhere, as in a batch job's log, a line now and then.
"""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_EVERY = 30.0  # seconds between two lines of a log


class View:
    """A context manager around a study's run."""

    def __init__(self, title: str, *, total: float, pieces: int, workers: int):
        """`total` are the expected seconds of work, `pieces` how many are to be done."""
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
        )
        self._live = console.is_terminal
        self._bar = Progress(*columns, console=console, disable=not self._live)
        self._overall = self._bar.add_task(title, total=max(total, 1e-9), status=f"0/{pieces} pieces")
        self._workers: list[TaskID] = [
            self._bar.add_task(f"  worker {number + 1}", total=1.0, status="starting") for number in range(workers)
        ]
        self._title, self._pieces, self._ended = title, pieces, 0
        self._console, self._spoken = console, time.monotonic()

    def begin(self, worker: int, title: str) -> None:
        self._bar.reset(self._workers[worker], total=1.0, status=title)

    def progress(self, worker: int, fraction: float) -> None:
        self._bar.update(self._workers[worker], completed=fraction)

    def rest(self, worker: int) -> None:
        self._bar.reset(self._workers[worker], total=1.0, status="waiting")

    def end(self, pieces: int, seconds: float) -> None:
        """So many pieces, of so many expected seconds, are over."""
        self._ended += pieces
        self._bar.update(self._overall, advance=seconds, status=f"{self._ended}/{self._pieces} pieces")
        now = time.monotonic()
        if not self._live and (now - self._spoken > _EVERY or self._ended == self._pieces):
            self._spoken = now
            self._console.print(f"{self._title}: {self._ended}/{self._pieces} pieces", highlight=False)

    def say(self, sentence: str) -> None:
        """A line that stays."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def __enter__(self) -> "View":
        self._bar.start()
        return self

    def __exit__(self, *ending: object) -> None:
        self._bar.stop()
