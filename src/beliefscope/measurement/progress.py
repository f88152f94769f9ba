"""The progress of `measure`: a bar on a terminal, elsewhere a line every 20 seconds."""

from rich.console import Console
from rich.progress import Progress

from beliefscope.log_lines import BarOrLines, LogLines


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
