"""The backend of a Ray cluster: pieces are tasks on its nodes, and this process alone writes the study's folder.

A task works in a folder of its own and sends files as they change (ray_task.py). When its node is lost, the pieces
are submitted again with the files that have arrived. This process holds their locks, as a local worker would.
"""

import contextlib
import dataclasses
import logging
import math
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from beliefscope.agent import RunFolder
from beliefscope.errors import require
from beliefscope.store import StudyFiles, lock
from beliefscope.store.pieces import Piece
from beliefscope.study.spec import RunSpec
from beliefscope.study.workers.execute import outcome_of
from beliefscope.study.workers.interface import Message, Note, Outcome
from beliefscope.study.workers.ray_task import Update, pack_task, run_task, write_files

_MOST_LOSSES = 3  # of a task, one after the other without a file in between, before its pieces have failed
_MOST_UNREAD = 4  # updates that a task sends before it waits for this process to read them
_TIMEOUT = 120.0  # seconds for an update to be fetched from its node


@dataclasses.dataclass
class _Task:
    pieces: Sequence[Piece]
    locks: contextlib.ExitStack
    stream: Any = None  # of Update
    losses: int = 0


class Ray:
    """A slot is a task that runs or waits for its node; what it may use is one CPU and a share of a GPU."""

    def __init__(self, address: str, workers: int | None):
        """`workers` are by default as many as CPUs, or as GPUs where there are any."""
        _connect(address)
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        self._number = workers or gpus or int(resources.get("CPU", 0)) or 1
        self._share = 1 / math.ceil(self._number / gpus) if gpus else 0.0
        self.in_batches = gpus > 0
        self._tasks: dict[int, _Task] = {}
        self._not_started: list[tuple[int, Outcome]] = []  # and why

    def start(self, runs: Mapping[str, RunSpec], folder: Path, *, at_most: int) -> int:
        self._runs, self._folder = runs, folder
        self._slots = range(min(self._number, at_most))
        return len(self._slots)

    def idle(self) -> list[int]:
        not_started = {slot for slot, _ in self._not_started}
        return [slot for slot in self._slots if slot not in self._tasks and slot not in not_started]

    def assign(self, slot: int, pieces: Sequence[Piece]) -> None:
        task = _Task(pieces, contextlib.ExitStack())
        outcome = outcome_of(partial(self._begin, task))
        if outcome.kind == "done":
            self._tasks[slot] = task
        else:
            task.locks.close()
            self._not_started.append((slot, outcome))

    def messages(self) -> Iterator[tuple[int, Message]]:
        not_started, self._not_started = self._not_started, []
        yield from not_started
        streams = {task.stream: slot for slot, task in self._tasks.items()}
        if not streams:
            return
        ray.wait(list(streams), num_returns=1, timeout=0.0 if not_started else 1.0, fetch_local=False)
        ready, _ = ray.wait(list(streams), num_returns=len(streams), timeout=0.0, fetch_local=False)
        for stream in ready:
            yield from self._receive(streams[stream])

    def close(self) -> None:
        for task in self._tasks.values():
            self._cancel(task)
            task.locks.close()
        ray.shutdown()

    def _begin(self, task: _Task) -> None:
        for piece in task.pieces:
            task.locks.enter_context(lock(StudyFiles(self._folder).lock(piece.name)))
            RunFolder(self._folder, self._runs[piece.run].training).open()
        self._submit(task)

    def _submit(self, task: _Task) -> None:
        options = {"num_cpus": 1, "num_gpus": self._share, "max_retries": 0, "name": task.pieces[0].title}
        remote = ray.remote(run_task).options(**options, _generator_backpressure_num_objects=_MOST_UNREAD)
        task.stream = remote.remote(pack_task(task.pieces, self._runs, self._folder), self._share)

    def _receive(self, slot: int) -> Iterator[tuple[int, Message]]:
        task = self._tasks[slot]
        try:
            arrived: ray.ObjectRef[Update] = next(task.stream)
            update = ray.get(arrived, timeout=_TIMEOUT)
        except RayTaskError as error:  # a piece that fails has an outcome: here no piece can be done on the node
            raise ValueError(f"a task could not be started on its node: {_last_line(error)}") from error
        except (RayError, StopIteration) as error:
            yield slot, self._lost(slot, task, error)
            return
        write_files(update.files, self._folder)
        if update.files:
            task.losses = 0
        if isinstance(update.message, Outcome):
            self._end(slot)
        yield slot, update.message

    def _lost(self, slot: int, task: _Task, error: Exception) -> Message:
        self._cancel(task)
        task.losses += 1
        how = f"{type(error).__name__}, {task.losses} of {_MOST_LOSSES} times without a result in between"
        if task.losses == _MOST_LOSSES:
            self._end(slot)
            return Outcome("failed", f"its task was lost on the cluster ({how})")
        self._submit(task)
        return Note(f"lost with its node, submitted again: {task.pieces[0].title} ({how})")

    def _cancel(self, task: _Task) -> None:
        with contextlib.suppress(RayError, ValueError, TypeError):  # it may have ended
            ray.cancel(task.stream, force=True)

    def _end(self, slot: int) -> None:
        self._tasks.pop(slot).locks.close()


def _connect(address: str) -> None:
    """Become a driver of the cluster, or say in one sentence why not."""
    require(
        not address.startswith("ray://"),
        rule="the study runs on a node of the cluster, which alone writes its folder",
        received=address,
        advice="log in to a node and give --address HOST:PORT as `ray start --head` prints it",
    )
    if address not in ("auto", "local"):
        _check_reachable(address)
    try:
        with warnings.catch_warnings():
            # JAX warns of forks. For "local" Ray forks, only to start its programs: they do not meet JAX's locks.
            warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:  # ConnectionError is an OSError
        why = " ".join(str(error).split())
        raise ValueError(_not_started(why) if address == "local" else _unreachable(address, why)) from error


def _check_reachable(address: str) -> None:
    """Ray itself would wait for a minute."""
    host, _, port = address.rpartition(":")
    try:
        if not 0 < int(port) < 2**16:  # the system would take the remainder, and somebody may answer there
            raise ValueError("ports are whole numbers from 1 to 65535")
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, ValueError) as error:
        raise ValueError(_unreachable(address, str(error))) from error


def _unreachable(address: str, why: str) -> str:
    return (
        f"a Ray cluster answers at HOST:PORT, but {address!r} does not ({why}); start one with `ray start --head`, "
        "and run the study on one of its nodes."
    )


def _not_started(why: str) -> str:
    return (
        f"the address 'local' starts Ray on this machine, but it does not start ({why}); leave --backend and --address "
        "out: the cores of one machine need no Ray."
    )


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
