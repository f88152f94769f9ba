"""The progress of long work: a bar on a terminal, elsewhere a line on standard error every 20 seconds.

Of a training a bar shows episodes, episodes per second, the agents' returns and the time left; of measurements, the
checkpoints that are done.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

PERIOD = 20.0  # seconds


def count(number: int, noun: str) -> str:
    """For people: 1 run, 2 runs."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class LogLines:
    """A context manager around long work; a thread asks `say` what to write, so that one long step is told of too."""

    def __init__(self, say: Callable[[], str], *, wanted: bool, period: float | None = None):
        self._say, self._period = say, PERIOD if period is None else period
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True) if wanted else None

    def __enter__(self) -> "LogLines":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _write(self) -> None:
        start = time.monotonic()
        while not self._over.wait(self._period):
            print(f"{self._say()}, {time.monotonic() - start:.0f} s so far", file=sys.stderr, flush=True)


class BarOrLines:
    """A context in which a bar shows on a terminal, and lines elsewhere."""

    _bar: Progress
    _lines: LogLines

    def __enter__(self) -> Any:
        self._bar.start()
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, traceback)
        self._bar.stop()


_SHOWN = 8  # agents whose returns are written out


class _Speed(ProgressColumn):
    """Episodes per second."""

    def render(self, task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("– episodes/s" if speed is None else f"{speed:.1f} episodes/s")


class TrainingBar(BarOrLines):
    """A context manager around one batch's training."""

    def __init__(self, title: str, *, agents: int, total: int, done: int, watch: Callable[[float], None] | None = None):
        """`total` and `done` count the episodes of all agents; `watch` is told the fraction instead of the terminal."""
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TextColumn("return {task.fields[returns]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, disable=watch is not None or not console.is_terminal)
        self._task = self._bar.add_task(f"{title} × {agents}", total=total, completed=done, returns="(compiling)")
        self._done, self._total, self._watch = done, total, watch
        self._title, self._returns = f"{title} × {agents}", "(compiling)"
        self._lines = LogLines(self._line, wanted=watch is None and not console.is_terminal)

    def update(self, more: int, returns: Sequence[float]) -> None:
        """So many more episodes are done; each agent's last return."""
        self._returns = _write(returns)
        self._bar.update(self._task, advance=more, returns=self._returns)
        self._done += more
        if self._watch is not None:
            self._watch(self._done / self._total)

    def _line(self) -> str:
        return f"{self._title}: {self._done} of {self._total} episodes, return {self._returns}"


def _write(returns: Sequence[float]) -> str:
    if not returns:
        return "–"
    if len(returns) <= _SHOWN:
        return " ".join(f"{value:.2f}" for value in returns)
    return f"{sum(returns) / len(returns):.2f} ({min(returns):.2f} to {max(returns):.2f})"


class EstimateBar(BarOrLines):
    """A context manager around the checkpoints of one run."""

    def __init__(self, title: str, *, total: int):
        console = Console(stderr=True)
        self._bar = Progress(console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task(title, total=total)
        self._title, self._total, self._done, self._now = title, total, 0, ""
        self._lines = LogLines(self._line, wanted=not console.is_terminal)

    def begin(self, what: str) -> None:
        """Work on this begins."""
        self._now = what

    def end(self) -> None:
        """It is done."""
        self._done += 1
        self._bar.update(self._task, advance=1)

    def _line(self) -> str:
        return f"{self._title}: {self._done} of {self._total} done, measuring {self._now}"
