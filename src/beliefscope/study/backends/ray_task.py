"""What a Ray task does on its node: pieces of a study, in a folder of its own, whose files it sends as they change.

It takes what `packed` made of the pieces, and yields `Delivery`s: a `Ready`, a `Progress` at every stored state of a
training, and one `Outcome`, each with the files that have changed.
"""

import importlib.metadata
import os
import pickle
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import jax
from ray import cloudpickle

from beliefscope.errors import require
from beliefscope.study.backends.interface import Message, Outcome, Progress, Ready
from beliefscope.study.backends.parcel import Changes, Parcel, needed, unpack
from beliefscope.study.backends.seat import pin, seat
from beliefscope.study.compiled import keep_compiled
from beliefscope.study.gpu import gpu_share, has_gpu
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec
from beliefscope.study.work import attempt, do


class Delivery(NamedTuple):
    """A message, and the files to be stored before it is passed on."""

    message: Message
    files: Parcel


class _Order(NamedTuple):
    pieces: Sequence[Piece]
    runs: Mapping[str, RunSpec]
    files: Parcel
    versions: dict[str, str]


def packed(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path) -> bytes:
    """All that a task needs, as bytes: they are opened when JAX has its one core, and their arrays start it."""
    asked = {piece.run: runs[piece.run] for piece in pieces}
    order = _Order(pieces, asked, needed(pieces, folder), _versions())
    return cloudpickle.dumps(order)  # pyright: ignore[reportPrivateImportUsage]: it is public all the same


def perform(order: bytes, share: float) -> Iterator[Delivery]:
    """Do the pieces, on one core or with a share of a GPU."""
    with seat() as (number, folder):
        _settle(number, share)
        pieces, runs, files, versions = pickle.loads(order)
        require(
            versions == _versions(),
            rule=f"all nodes have the versions of the machine that runs the study, {versions}",
            received=_versions(),
            advice="install the same ones there",
        )
        unpack(files, folder)
        yield Delivery(Ready(jax.devices()[0].device_kind), {})
        yield from _work(pieces, runs, folder)


def _settle(number: int, share: float) -> None:
    """Before JAX starts its threads, or takes its memory."""
    os.environ["NPROC"] = "1"
    if share and has_gpu():
        os.environ.update(gpu_share(share))
    else:
        jax.config.update("jax_platforms", "cpu")
        pin(number)
    keep_compiled()


def _work(pieces: Sequence[Piece], runs: Mapping[str, RunSpec], folder: Path) -> Iterator[Delivery]:
    changes, deliveries = Changes(pieces, folder), Queue[Delivery](maxsize=1)

    def watch(fraction: float) -> None:
        deliveries.put(Delivery(Progress(fraction), changes.take()))

    def work() -> None:
        outcome = attempt(partial(do, pieces, runs, folder, watch))
        if outcome.kind == "stop":  # a node's disk is full: others have their own
            outcome = outcome._replace(kind="failed")
        deliveries.put(Delivery(outcome, changes.take()))

    threading.Thread(target=work, daemon=True).start()
    while True:
        delivery = deliveries.get()
        yield delivery
        if isinstance(delivery.message, Outcome):
            return


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("beliefscope", "jax", "jaxlib", "numpy")}
