"""What a Ray task does on its node: pieces of a study, in a folder of its own, whose files it sends as they change.

`pack_task` packs the pieces with the files they need. `run_task` does them, and yields an `Update` for a `Ready`, for a
`Progress` at every stored state of a training, and for one `Outcome`, each with the files that have changed.

Files have names relative to the study's folder, and come in an order in which they can be written one by one: a state
to resume from comes after its metrics and networks, a training's end comes last.
"""

import contextlib
import functools
import importlib.metadata
import itertools
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import jax
from ray import cloudpickle

from beliefscope.errors import require
from beliefscope.store import Busy, RunFiles, is_file, lock, write_atomic
from beliefscope.store.pieces import Piece
from beliefscope.study.devices import gpu_share, has_gpu, keep_compiled_programs
from beliefscope.study.spec import RunSpec
from beliefscope.study.workers.execute import execute, outcome_of
from beliefscope.study.workers.interface import Message, Outcome, Progress, Ready

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
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), {core})


@functools.cache
def _cores() -> list[int]:
    """The cores of this process before it was first pinned."""
    return sorted(os.sched_getaffinity(0))


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
