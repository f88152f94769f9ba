"""The backend of a Ray cluster: pieces are tasks on its nodes, and this process alone writes the study's folder.

A task works in a folder of its own on its node and sends files as they change. When its node is lost, the pieces are
submitted again with the files that have arrived. This process holds their locks, as a local worker would.

`pack_task` packs the pieces with the files they need. `run_task` does them, and yields an `Update` for a `Ready`, for a
`Progress` at every stored state of a training, and for one `Outcome`, each with the files that have changed. Files have
names relative to the study's folder, and come in an order in which they can be written one by one: a state to resume
from comes after its metrics and networks, a training's end comes last.
"""

import contextlib
import dataclasses
import functools
import importlib.metadata
import itertools
import logging
import math
import os
import pickle
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import jax
import ray
from ray import cloudpickle
from ray.exceptions import RayError, RayTaskError

from beliefscope.agent import RunFolder
from beliefscope.errors import require
from beliefscope.store import Busy, RunFiles, StudyFiles, is_file, lock, write_atomic
from beliefscope.store.pieces import Piece
from beliefscope.study.devices import cores, gpu_share, has_gpu, keep_compiled_programs
from beliefscope.study.spec import RunSpec
from beliefscope.study.workers.execute import Message, Note, Outcome, Progress, Ready, execute, outcome_of

Files = dict[str, bytes]  # contents by names


class Update(NamedTuple):
    """A message, and the files to be stored before it is passed on."""

    message: Message
    files: Files


class _PackedTask(NamedTuple):
    pieces: Sequence[Piece]
    runs: Mapping[str, RunSpec]
    files: Files
    versions: dict[str, str]


def pack_task(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path) -> bytes:
    """All that a task needs, as bytes: it unpacks them once it has its core, since their arrays start JAX."""
    asked = {piece.run: runs[piece.run] for piece in pieces}
    task = _PackedTask(pieces, asked, files_needed(pieces, folder), _versions())
    return cloudpickle.dumps(task)  # pyright: ignore[reportPrivateImportUsage]: it is public all the same


def run_task(packed: bytes, share: float) -> Iterator[Update]:
    """Do the pieces, on one core or with a share of a GPU."""
    with private_folder() as (number, folder):
        _configure_jax(number, share)
        pieces, runs, files, versions = pickle.loads(packed)
        require(
            versions == _versions(),
            rule=f"all nodes have the versions of the machine that runs the study, {versions}",
            received=_versions(),
            advice="install the same ones there",
        )
        write_files(files, folder)
        yield Update(Ready(jax.devices()[0].device_kind), {})
        yield from _execute(pieces, runs, folder)


def _configure_jax(number: int, share: float) -> None:
    """To be called before JAX starts its threads, or takes its memory."""
    os.environ["NPROC"] = "1"
    if share and has_gpu():
        os.environ.update(gpu_share(share))
    else:
        jax.config.update("jax_platforms", "cpu")
        pin_to_core(number)
    keep_compiled_programs()


def _execute(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path) -> Iterator[Update]:
    """Do the pieces in a thread, and yield what it reports."""
    changed, updates = ChangedFiles(pieces, folder), Queue[Update](maxsize=1)

    def watch(fraction: float) -> None:
        updates.put(Update(Progress(fraction), changed.take()))

    def work() -> None:
        outcome = outcome_of(partial(execute, pieces, runs, folder, watch))
        if outcome.kind == "stop":  # a node's disk is full: others have their own
            outcome = outcome._replace(kind="failed")
        updates.put(Update(outcome, changed.take()))

    threading.Thread(target=work, daemon=True).start()
    while True:
        update = updates.get()
        yield update
        if isinstance(update.message, Outcome):
            return


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("beliefscope", "jax", "jaxlib", "numpy")}


def files_needed(pieces: Sequence[Piece], folder: Path) -> Files:
    """The files that the pieces read, as far as they are there, their results included."""
    files = [file for piece in pieces for file in _inputs(piece, folder)]
    return _read_files([*files, *_results(pieces, folder)], folder)


def write_files(files: Files, folder: Path) -> None:
    for name, content in files.items():
        write_atomic(folder / name, content)


class ChangedFiles:
    """Of the files that the pieces write: those that are new or have changed since the last `take`."""

    def __init__(self, pieces: Sequence[Piece], folder: Path):
        self._pieces, self._folder = pieces, folder
        self._seen: dict[Path, tuple[int, int]] = {}
        self._new()

    def take(self) -> Files:
        return _read_files(self._new(), self._folder)

    def _new(self) -> list[Path]:
        there = {file: _version(file) for file in _results(self._pieces, self._folder)}
        new = [file for file, version in there.items() if self._seen.get(file) != version]
        self._seen = there
        return new


def _version(file: Path) -> tuple[int, int]:
    """Another one after every atomic write."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _read_files(files: Iterable[Path], folder: Path) -> Files:
    there = sorted({file for file in files if is_file(file)}, key=lambda file: (_writing_order(file), file))
    return {str(file.relative_to(folder)): file.read_bytes() for file in there}


def _writing_order(file: Path) -> int:
    order = [each.name for each in RunFiles(file.parent).of_training]
    return order.index(file.name) if file.name in order else -1


def _inputs(piece: Piece, folder: Path) -> list[Path]:
    """The run's description and the networks that the piece reads."""
    files = piece.files(folder)
    if piece.episode is None:
        return [files.spec]
    return [files.spec, *(files.network(episode) for episode in piece.needs(max(files.networks(), default=0)))]


def _results(pieces: Sequence[Piece], folder: Path) -> Iterator[Path]:
    """The files that the pieces have written."""
    for piece in pieces:
        files = piece.files(folder)
        left = (*map(files.network, files.networks()), *files.of_training) if piece.kind == "train" else ()
        yield from (file for file in (*left, piece.result(folder)) if is_file(file))


class PrivateFolder(NamedTuple):
    """A folder that one task alone uses, and a number that no other task of this user on the node has."""

    number: int
    path: Path


@contextlib.contextmanager
def private_folder() -> Iterator[PrivateFolder]:
    """The folder with the lowest number that is free. It is empty, and removed afterwards.

    Tasks of any cluster and any study find each other by locks on files of the node. What a killed task has left in a
    folder is removed before the next one uses it.
    """
    parent = _folder_of_user()
    for number in itertools.count():
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock(parent / f"{number}.lock"))
            except Busy:
                continue
            folder = parent / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                yield PrivateFolder(number, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def pin_to_core(number: int) -> None:
    """Run on one core; tasks with other numbers have other cores, as long as there are enough."""
    core = _cores()[number % len(_cores())]
    for thread in Path("/proc/self/task").glob("*"):  # nothing elsewhere than on Linux
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), {core})


_cores = functools.cache(cores)  # of this process before it was first pinned


def _folder_of_user() -> Path:
    folder = Path(tempfile.gettempdir(), f"beliefscope-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    require(
        folder.stat().st_uid == os.getuid(),
        rule=f"{folder} belongs to the user who runs the task",
        received=f"user {folder.stat().st_uid}",
        advice="have it removed, or set TMPDIR on the node",
    )
    return folder


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
