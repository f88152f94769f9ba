"""What an input may take: processor time, time by the clock, memory."""

import contextlib
import io
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 5  # of processor time that an input may take
BLOCKED = 120  # seconds by the clock, of one that waits for something; others may use the machine, too
MEMORY = 10**9  # bytes that the inputs may add to the process


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """An input that takes more processor time than this, or blocks, has found a hang."""

    def end(number: int, frame: Any) -> None:
        raise TimeoutError(f"an input took more than {seconds} seconds of processor time, or {BLOCKED} by the clock")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, BLOCKED)}
    before = {number: signal.signal(number, end) for number in timers}
    for timer, most in timers.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextlib.contextmanager
def no_more_memory() -> Iterator[None]:
    """Allocations of more than `MEMORY` bytes in all fail."""
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


def memory_used() -> float:
    """The most that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
