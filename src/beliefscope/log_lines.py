"""A line on standard error every 20 seconds while something takes long, where no terminal shows a bar."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.progress import Progress

PERIOD = 20.0  # seconds


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
