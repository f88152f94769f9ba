"""A worker: a process of its own, pinned to one core or with a share of a GPU, that does the pieces it is sent and says how they go.

It takes lists of pieces from a pipe, and answers with `Progress`, then one `Outcome`. It dies with its parent.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import jax

from beliefscope.study.backends.interface import Progress, Ready
from beliefscope.study.compiled import keep_compiled
from beliefscope.study.device import take_share
from beliefscope.study.run_spec import RunSpec
from beliefscope.study.work import attempt, do


class Place(NamedTuple):
    """Where a worker runs: on one core, or with its share of the GPU."""

    core: int | None = None
    gpu_share: float = 0.0


def work(connection: Connection, runs: Mapping[str, RunSpec], folder: Path, place: Place, parent: int) -> None:
    """The life of a worker."""
    _die_with(parent)
    if place.core is not None:
        os.sched_setaffinity(0, {place.core})
    if place.gpu_share:
        take_share(place.gpu_share)
    keep_compiled()
    # JAX starts its threads at its first use, which is here: as many as there are cores to run on.
    with contextlib.suppress(EOFError, ConnectionError):  # the parent has gone
        connection.send(Ready(jax.devices()[0].device_kind))
        while True:
            doing = partial(do, connection.recv(), runs, folder, lambda fraction: connection.send(Progress(fraction)))
            connection.send(attempt(doing))


def _die_with(parent: int) -> None:
    """Be killed when the parent ends, however it does (Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
