"""The progress bar of a training: episodes, episodes per second, the agents' returns, the time left.

It shows on a terminal; elsewhere there is a line every 20 seconds.
"""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from beliefscope.log_lines import BarOrLines, LogLines

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
