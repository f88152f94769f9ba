"""The command `beliefscope`: the only place where strings become objects.

A wrong value gets one sentence on standard error and exit status 2, an interruption says how to go on (130).
"""

import os
import shlex
import sys
from collections.abc import Sequence

import tyro

from beliefscope.cli.measure import MeasureCommand
from beliefscope.cli.study import ExportCommand, ListCommand, RunCommand, ShowCommand, StatusCommand
from beliefscope.cli.train import TrainCommand

_COMMANDS = {
    "run": RunCommand,
    "show": ShowCommand,
    "list": ListCommand,
    "status": StatusCommand,
    "export": ExportCommand,
    "train": TrainCommand,
    "measure": MeasureCommand,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Small products do not thread: on two threads training is no faster, and its bits depend on their number.
    os.environ.setdefault("NPROC", "1")
    command = tyro.extras.subcommand_cli_from_dict(
        _COMMANDS,
        args=given,
        prog="beliefscope",
        description="Does my agent's memory encode the belief?",
        config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )
    try:
        return command.run()
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


def _one_sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
