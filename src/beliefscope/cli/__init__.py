"""The command `beliefscope`: the only place where strings become objects.

A wrong value gets one sentence on standard error and exit status 2, an interruption says how to go on (130). Imports
take seconds, and are made when the command runs, so that an interruption ends these too without a trace.
"""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from beliefscope.cli.output import readers_may_leave


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Small products do not thread: on two threads training is no faster, and its bits depend on their number.
    os.environ.setdefault("NPROC", "1")
    with readers_may_leave():
        return _status(given)


def _status(given: list[str]) -> int:
    try:
        status = _command(given).run()
        print(end="", flush=True)  # so that a full disk is told of
        return status
    except (ValueError, OSError) as error:
        print(f"beliefscope: {_one_sentence(error)}", file=sys.stderr)
        return 2
    except RuntimeError as error:  # JAX: no such platform, not enough memory
        print(f"beliefscope: JAX could not do it: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        again = shlex.join(["beliefscope", *given])
        print(f"\nInterrupted. What is finished is saved; to go on, run again:\n  {again}", file=sys.stderr)
        return 130


def _command(given: list[str]) -> Any:
    """The command that is asked for, with its options."""
    with _ended_by_interrupts():
        import tyro

        from beliefscope.cli.measure import MeasureCommand
        from beliefscope.cli.report import ClaimsCommand, ReportCommand
        from beliefscope.cli.study import ExportCommand, ListCommand, RunCommand, ShowCommand, StatusCommand
        from beliefscope.cli.train import TrainCommand
    commands = {
        "run": RunCommand,
        "show": ShowCommand,
        "list": ListCommand,
        "status": StatusCommand,
        "report": ReportCommand,
        "claims": ClaimsCommand,
        "export": ExportCommand,
        "train": TrainCommand,
        "measure": MeasureCommand,
    }
    return tyro.extras.subcommand_cli_from_dict(
        commands,
        args=given,
        prog="beliefscope",
        description="Does my agent's memory encode the belief?",
        config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )


@contextlib.contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Meanwhile an interruption ends the process at once: a library that is loading may lose Python's exception."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as in a background job, or another's
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
