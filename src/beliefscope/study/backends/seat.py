"""A task's seat on its node: a number that no other task there has, a private folder, and one core to run on.

Tasks of any cluster and any study of one user find each other by locks on files of the node.
"""

import contextlib
import functools
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from beliefscope.errors import require
from beliefscope.storage import Busy, lock


class Seat(NamedTuple):
    """The number is the lowest that is free; the folder is empty, and gone afterwards."""

    number: int
    folder: Path


@contextlib.contextmanager
def seat() -> Iterator[Seat]:
    """Take the first free seat. What a task that was killed has left there is cleared away."""
    room = _room()
    for number in itertools.count():
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock(room / f"{number}.lock"))
            except Busy:
                continue
            folder = room / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                yield Seat(number, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def pin(number: int) -> None:
    """Run on one core, which seats share only if there are more of them than cores."""
    core = _cores()[number % len(_cores())]
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), {core})


@functools.cache
def _cores() -> list[int]:
    """Those of this process before it was ever pinned."""
    return sorted(os.sched_getaffinity(0))


def _room() -> Path:
    room = Path(tempfile.gettempdir(), f"beliefscope-{os.getuid()}")
    room.mkdir(mode=0o700, exist_ok=True)
    require(
        room.stat().st_uid == os.getuid(),
        rule=f"{room} belongs to the user who runs the task",
        received=f"user {room.stat().st_uid}",
        advice="have it removed, or set TMPDIR on the node",
    )
    return room
