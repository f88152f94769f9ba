"""The backend of one machine: worker processes, one on each core, or several that share a GPU."""

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from beliefscope.errors import require
from beliefscope.study.backends.interface import Message, Outcome, Ready
from beliefscope.study.backends.worker import work
from beliefscope.study.gpu import SharedGPU, has_gpu
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec

# NumPy would start as many threads as there are cores, in each worker.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
_MOST_DEATHS = 3  # of workers, one after the other, before the study is given up


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
        cores, self.in_batches = sorted(os.sched_getaffinity(0)), has_gpu()
        self._gpu = SharedGPU(workers, cores=len(cores), say=_say) if self.in_batches else None
        number = self._gpu.workers if self._gpu else workers or len(cores)
        self._cores = [set(cores) if self._gpu else {cores[index % len(cores)]} for index in range(number)]
        self._variables = _ONE_THREAD | (self._gpu.environment if self._gpu else {})
        self._workers: list[_Worker] = []
        self._deaths = 0

    def open(self, runs: Mapping[str, RunSpec], folder: Path, *, at_most: int) -> int:
        self._runs, self._folder = runs, folder
        for cores in self._cores[:at_most]:
            self._workers.append(self._start(cores))
        return len(self._workers)

    def idle(self) -> list[int]:
        return [slot for slot, worker in enumerate(self._workers) if worker.ready and not worker.busy]

    def give(self, slot: int, pieces: Sequence[Piece]) -> None:
        self._workers[slot].busy = True
        with contextlib.suppress(OSError):  # a worker that is dead is heard of as such
            self._workers[slot].connection.send(pieces)

    def heard(self) -> Iterator[tuple[int, Message]]:
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

    def _start(self, cores: set[int]) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=work, args=(theirs, self._runs, self._folder, os.getpid()))
        # All this a worker inherits, and needs before it imports anything: JAX and NumPy may start their threads then.
        with _deaf_to_interrupts(), _on(cores), _environment(self._variables):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _note(self, worker: _Worker, message: Message) -> None:
        if isinstance(message, Ready):
            worker.ready = True
        elif isinstance(message, Outcome):
            worker.busy = False
            self._deaths = 0

    def _replace(self, slot: int) -> Iterator[tuple[int, Message]]:
        """Tell of a worker's death, then start another."""
        worker = self._workers[slot]
        worker.process.join()
        self._deaths += 1
        status = worker.process.exitcode
        yield slot, Outcome("failed", f"its worker died (exit status {status}; -9 is often a lack of memory)")
        guard = "call run_study in a file, behind `if __name__ == '__main__':`, since workers import that file"
        require(
            self._deaths < _MOST_DEATHS,
            rule="workers live as long as the study",
            received=f"{self._deaths} deaths one after the other, the last with exit status {status}",
            advice="look at the memory, or try fewer --workers; what is finished is saved" if worker.ready else guard,
        )
        worker.connection.close()
        self._workers[slot] = self._start(self._cores[slot])


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _on(cores: set[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
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
def _deaf_to_interrupts() -> Iterator[None]:
    """The parent hears them, and ends its workers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
