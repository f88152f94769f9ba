"""A worker: a process of its own, born on one core or with a share of a GPU. It does the pieces it is sent.

They come as lists from a pipe, and are answered with `Progress`, then one `Outcome`. It dies with its parent.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import jax

from beliefscope.study.backends.interface import Progress, Ready
from beliefscope.study.compiled import keep_compiled
from beliefscope.study.run_spec import RunSpec
from beliefscope.study.work import attempt, do


def work(connection: Connection, runs: Mapping[str, RunSpec], folder: Path, parent: int) -> None:
    """The life of a worker."""
    _die_with(parent)
    keep_compiled()
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
