"""The backend of one machine: worker processes, one on each core, or several that share a GPU.

A worker receives lists of pieces through a pipe, and answers with `Progress` and then one `Outcome`. It ends with its
parent.
"""

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import jax

from beliefscope.errors import require
from beliefscope.store.pieces import Piece
from beliefscope.study.devices import SharedGPU, can_pin, cores, has_gpu, keep_compiled_programs
from beliefscope.study.spec import RunSpec
from beliefscope.study.workers.execute import Message, Outcome, Progress, Ready, execute, outcome_of

# NumPy would start as many threads as there are cores, in each worker.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
_MOST_DEATHS = 9  # of workers that were ready: three pieces, each tried three times
_MOST_DEATHS_AT_START = 3  # of workers that were not


@dataclasses.dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    ready: bool = False
    busy: bool = False


class Local:
    """A slot is a worker process; one that dies is replaced."""

    def __init__(self, workers: int | None):
        """`workers` are by default as many as cores, or as a GPU has room for."""
        here, self.in_batches = cores(), has_gpu()
        self._gpu = SharedGPU(workers, cores=len(here), say=_print_error) if self.in_batches else None
        number = self._gpu.workers if self._gpu else workers or len(here)
        self._cores = [set(here) if self._gpu else {here[index % len(here)]} for index in range(number)]
        self._variables = _ONE_THREAD | (self._gpu.environment if self._gpu else {})
        self._workers: list[_Worker] = []
        self._deaths = self._deaths_at_start = 0  # of workers, one after the other

    def start(self, runs: Mapping[str, RunSpec], folder: Path, *, at_most: int) -> int:
        self._runs, self._folder = runs, folder
        for some in self._cores[:at_most]:
            self._workers.append(self._start_worker(some))
        return len(self._workers)

    def idle(self) -> list[int]:
        return [slot for slot, worker in enumerate(self._workers) if worker.ready and not worker.busy]

    def assign(self, slot: int, pieces: Sequence[Piece]) -> None:
        self._workers[slot].busy = True
        with contextlib.suppress(OSError):  # messages() tells of a dead worker
            self._workers[slot].connection.send(pieces)

    def messages(self) -> Iterator[tuple[int, Message]]:
        slots: dict[Connection, int] = {worker.connection: slot for slot, worker in enumerate(self._workers)}
        for connection in wait(list(slots), timeout=1.0):
            slot = slots[connection]  # pyright: ignore[reportArgumentType]
            try:
                message = self._workers[slot].connection.recv()
            except (EOFError, ConnectionResetError):
                yield from self._replace(slot)
                continue
            self._note(self._workers[slot], message)
            yield slot, message

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()  # whatever it writes is whole or not there
            worker.process.join()
            worker.connection.close()
        if self._gpu is not None:
            self._gpu.close()

    def _start_worker(self, some: set[int]) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=run_worker, args=(theirs, self._runs, self._folder, os.getpid()))
        # A worker inherits all this, and needs it before it imports JAX and NumPy, which may start their threads then.
        with _interrupts_ignored(), _pinned_to(some), _environment(self._variables):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _note(self, worker: _Worker, message: Message) -> None:
        if isinstance(message, Ready):
            worker.ready = True
            self._deaths_at_start = 0
        elif isinstance(message, Outcome):
            worker.busy = False
            self._deaths = 0

    def _replace(self, slot: int) -> Iterator[tuple[int, Message]]:
        """Tell of a worker's death, then start another."""
        worker = self._workers[slot]
        worker.process.join()
        status = worker.process.exitcode
        yield slot, Outcome("killed", f"its worker died (exit status {status}; -9 is often a lack of memory)")
        if worker.ready:
            self._deaths += 1
            advice = "look at the memory, or try fewer --workers; what is finished is saved"
        else:
            self._deaths_at_start += 1
            advice = "call run_study in a file, behind `if __name__ == '__main__':`, since workers import that file"
        require(
            self._deaths < _MOST_DEATHS and self._deaths_at_start < _MOST_DEATHS_AT_START,
            rule="no worker ends before the study does",
            received=f"{self._deaths if worker.ready else self._deaths_at_start} that ended one after the other, "
            f"the last with exit status {status}",
            advice=advice,
        )
        worker.connection.close()
        self._workers[slot] = self._start_worker(self._cores[slot])


def run_worker(connection: Connection, runs: Mapping[str, RunSpec], folder: Path, parent: int) -> None:
    """What a worker process does: the pieces it receives, until its parent ends."""

    def watch(fraction: float) -> None:
        connection.send(Progress(fraction))

    _end_with(parent)
    keep_compiled_programs()
    with contextlib.suppress(EOFError, ConnectionError):  # the parent has ended
        connection.send(Ready(jax.devices()[0].device_kind))
        while True:
            pieces: Sequence[Piece] = connection.recv()
            connection.send(outcome_of(partial(execute, pieces, runs, folder, watch)))


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def _print_error(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _pinned_to(some: set[int]) -> Iterator[None]:
    if not can_pin():
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, some)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A worker inherits this: the parent alone is interrupted, and ends its workers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
