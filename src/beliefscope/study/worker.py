"""A worker: a process of its own, pinned to one core, that does the pieces it is sent and says how they go.

It takes lists of pieces from a pipe, and answers with `Progress`, then one `Outcome`. It dies with its parent.
"""

import contextlib
import ctypes
import os
import signal
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

import jax

from beliefscope.storage import Busy
from beliefscope.study.compiled import keep_compiled
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec
from beliefscope.study.work import do


class Ready(NamedTuple):
    """The worker has started."""

    device: str


class Progress(NamedTuple):
    """The fraction of the pieces in hand that is done."""

    fraction: float


class Outcome(NamedTuple):
    """How the pieces in hand ended; `stop` where no other piece would fare better."""

    kind: Literal["done", "busy", "failed", "stop"]
    error: str = ""
    details: str = ""


def work(connection: Connection, runs: Mapping[str, RunSpec], folder: Path, core: int | None, parent: int) -> None:
    """The life of a worker."""
    _die_with(parent)
    if core is not None:
        os.sched_setaffinity(0, {core})
    keep_compiled()
    # JAX starts its threads at its first use, which is here: as many as there are cores to run on.
    with contextlib.suppress(EOFError, ConnectionError):  # the parent has gone
        connection.send(Ready(jax.devices()[0].device_kind))
        while True:
            connection.send(_outcome(connection.recv(), connection, runs, folder))


def _outcome(pieces: list[Piece], connection: Connection, runs: Mapping[str, RunSpec], folder: Path) -> Outcome:
    try:
        do(pieces, runs, folder, lambda fraction: connection.send(Progress(fraction)))
    except Busy as error:
        return Outcome("busy", str(error))
    except ConnectionError:
        raise
    except OSError as error:
        return Outcome("stop", f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # whatever a piece's failure is, it is told and the others go on
        return Outcome("failed", str(error) or type(error).__name__, traceback.format_exc())
    return Outcome("done")


def _die_with(parent: int) -> None:
    """Be killed when the parent ends, however it does (Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
