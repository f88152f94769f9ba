"""Processes of this machine, known by the files that they have open."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def open_files(process: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # processes and files come and go
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield link.readlink()


def users(folder: Path) -> list[int]:
    """The processes that have a file of the folder open."""
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [number for number in processes if any(file.is_relative_to(folder) for file in open_files(number))]


def end(processes: list[int]) -> None:
    for number in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
