"""The processes of the fault suite. The suite itself imports all and computes nothing: JAX does not survive forks.

A `Host` is forked once, keeps its compiled programs, and runs studies without workers, so that a fault costs a second.
A `Study` is forked for each kill, and has workers of its own, which are forked before it computes anything.
"""

import contextlib
import errno
import functools
import io
import multiprocessing
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, NamedTuple

from study.processes import end, users

import beliefscope.study.run as run_module
from beliefscope.cli import main, train
from beliefscope.store import StudyFolder, files, manifest
from beliefscope.store.study_folder import count_states
from beliefscope.study.devices import keep_compiled_programs
from beliefscope.study.workers import local
from beliefscope.study.workers.execute import Message, Outcome, Ready, execute, outcome_of

_SPARE = 6  # workers of a study: two, and those that replace both when they are killed, twice
BUSY = 60.0  # seconds of processor time after which a command hangs
LONGEST = 600.0  # seconds by the clock after which it does, though it computes nothing: others may use the machine, too


class Answer(NamedTuple):
    """What became of a command."""

    status: int
    out: str
    err: str
    table: str = ""
    states: str = ""


class Inline:
    """A backend whose one slot is this very process."""

    in_batches = False

    def __init__(self) -> None:
        self._messages: list[tuple[int, Message]] = []

    def start(self, runs: Mapping[str, Any], folder: Path, *, at_most: int) -> int:
        self._runs, self._folder = runs, folder
        self._messages.append((0, Ready("CPU")))
        return 1

    def idle(self) -> list[int]:
        return [] if self._messages else [0]

    def assign(self, slot: int, pieces: Sequence[Any]) -> None:
        outcome: Outcome = outcome_of(lambda: execute(pieces, self._runs, self._folder, lambda fraction: None))
        self._messages.append((0, outcome))

    def messages(self) -> Iterator[tuple[int, Message]]:
        messages, self._messages = self._messages, []
        yield from messages

    def close(self) -> None:
        return


class Host:
    """A process that answers commands."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        self._process = os.fork()
        if self._process == 0:
            _serve(theirs)
        theirs.close()

    def ask(self, arguments: Sequence[object], *, folder: Path | None = None, fault: str = "") -> Answer | None:
        """None if there is no answer in time; the next question goes to another process."""
        self._connection.send(([str(each) for each in arguments], folder, fault))
        with contextlib.suppress(EOFError):
            before, until = used(self._process), time.monotonic() + LONGEST
            while used(self._process) - before < BUSY and time.monotonic() < until:
                if self._connection.poll(5):
                    return self._connection.recv()
        self.close()
        self._start()
        return None

    def close(self) -> None:
        end([self._process])
        os.waitpid(self._process, 0)
        self._connection.close()


def used(process: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(connection: Connection) -> None:
    local._end_with(os.getppid())
    keep_compiled_programs()
    run_module.choose_backend = lambda *given, **options: Inline()
    train.read_study = functools.cache(
        train.read_study
    )  # programs are kept for the very objects that they were made for
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            arguments, folder, fault = connection.recv()
            connection.send(_answer(arguments, folder, fault))
    os._exit(0)


def _answer(arguments: list[str], folder: Path | None, fault: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    status, table, states = -1, "", ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), injected(fault):
        try:
            status = main(arguments)
        except SystemExit as ended:  # tyro, for options that there are not
            status = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
    if folder is not None:
        with contextlib.suppress(ValueError, OSError):
            stored = StudyFolder(folder)
            table, states = stored.csv(), count_states(stored.states())
    return Answer(status, out.getvalue(), err.getvalue(), table, states)


@contextlib.contextmanager
def injected(fault: str) -> Iterator[None]:
    """With "kind:number:file", writes from that one on to files of such a name fail; with "clock:seed:", any time."""
    kind, number, name = fault.split(":") if fault else ("", "0", "")
    before = files._write_some, time.time, manifest.datetime
    if kind == "clock":
        draw = random.Random(int(number))
        time.time = lambda: draw.choice([0.0, -1.0, 1e9, 4e9, 1e11])
        manifest.datetime = _Clock(draw)  # pyright: ignore[reportAttributeAccessIssue]
    elif kind:
        files._write_some = _faulty(kind, int(number), name)
    try:
        yield
    finally:
        files._write_some, time.time, manifest.datetime = before


class _Clock:
    """In place of the module datetime: years from 1 to 9999."""

    def __init__(self, draw: random.Random):
        import datetime

        self.datetime, self.UTC = self, datetime.UTC
        self._year, self._kind = draw.choice([1, 1970, 2038, 9999]), datetime.datetime

    def now(self, zone: Any) -> Any:
        return self._kind(self._year, 1, 1, tzinfo=zone)


def _faulty(kind: str, number: int, name: str) -> Callable[[int, memoryview], int]:
    count = 0

    def write(descriptor: int, content: memoryview) -> int:
        nonlocal count
        target = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).lstrip(".")
        count += target.startswith(name)
        if count <= number or not target.startswith(name):
            return os.write(descriptor, content)
        if kind == "short":
            return os.write(descriptor, content[: max(1, len(content) // 3)])
        os.write(descriptor, content[: len(content) // 2])
        if kind == "kill":
            os.killpg(0, signal.SIGKILL)
        code = getattr(errno, kind)
        raise OSError(code, os.strerror(code))

    return write


class Study:
    """`beliefscope run` in a process group of its own, with real workers."""

    def __init__(self, arguments: Sequence[object], log: Path, fault: str = ""):
        self.log, self._status = log, None
        self.process = os.fork()
        if self.process == 0:
            _run_study([str(each) for each in arguments], log, fault)
        with contextlib.suppress(OSError):  # the child does so too: whoever is first
            os.setpgid(self.process, self.process)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, number)

    def kill_worker(self, folder: Path) -> bool:
        """Kill the workers that hold a lock."""
        workers = [each for each in users(folder) if each != self.process and os.getpgid(each) == self.process]
        end(workers)
        return bool(workers)

    def wait(self, seconds: float) -> int | None:
        """The exit status, or None if it has not ended by then."""
        until = time.monotonic() + seconds
        while self._status is None and time.monotonic() <= until:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.02)
        return self._status

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait(LONGEST)
        time.sleep(0.05)  # for its workers


def _run_study(arguments: list[str], log: Path, fault: str) -> None:
    os.setpgid(0, 0)
    local._end_with(os.getppid())
    with injected(fault), log.open("w") as text, contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = 70
        try:
            _Spare.waiting = [_Spare.fork() for _ in range(_SPARE)]
            local.multiprocessing = _Multiprocessing  # pyright: ignore[reportAttributeAccessIssue]
            status = main(arguments)
        except BaseException:
            traceback.print_exc()
        text.flush()
    os._exit(status)


class _Spare:
    """A process that waits to become a worker, as `multiprocessing.Process` makes one."""

    waiting: list[tuple[int, Connection]]

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...]):
        (self._theirs, *self._rest), self.exitcode = args, None

    @staticmethod
    def fork() -> tuple[int, Connection]:
        ours, theirs = multiprocessing.Pipe()
        process = os.fork()
        if process == 0:
            ours.close()
            local._end_with(os.getppid())
            with contextlib.suppress(EOFError):
                given = Connection(recv_handle(theirs))
                local.run_worker(given, *theirs.recv())
            os._exit(0)
        theirs.close()
        return process, ours

    def start(self) -> None:
        self.pid, control = self.waiting.pop()
        send_handle(control, self._theirs.fileno(), self.pid)
        control.send(tuple(self._rest))

    def kill(self) -> None:
        end([self.pid])

    def join(self) -> None:
        if self.exitcode is None:
            self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class _Multiprocessing:
    """In place of the module multiprocessing, for local.py."""

    Pipe, Process = staticmethod(multiprocessing.Pipe), _Spare

    @classmethod
    def get_context(cls, method: str) -> Any:
        return cls
