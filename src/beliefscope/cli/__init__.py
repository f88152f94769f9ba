"""The command `beliefscope`: the only place where strings become objects.

A wrong value gets one sentence on standard error and exit status 2, an interruption says how to go on (130). A command
imports what it needs when it runs: JAX takes seconds, and looking at results needs none.

The reader of an output may leave, as in `beliefscope list | head -1`. Nothing that is printed controls the terminal.
`--cell gru` and `--seeds 0,1,2` are understood.
"""

import contextlib
import dataclasses
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from beliefscope import __version__


class _Command(NamedTuple):
    module: str
    name: str  # of its class there
    summary: str


COMMANDS = {
    "run": _Command("train", "RunCommand", "Run a study: train its agents, measure their memories against the belief."),
    "show": _Command("train", "ShowCommand", "Show what a study consists of and what it costs, without running it."),
    "list": _Command("look", "ListCommand", "List the shipped studies, and the parts for studies of your own."),
    "status": _Command("look", "StatusCommand", "Show the state of a study: what is done, running, failed or missing."),
    "report": _Command("look", "ReportCommand", "Write the report of studies: figures and a page for the browser."),
    "claims": _Command("look", "ClaimsCommand", "Print the paper's claims with numbers of studies and verdicts."),
    "export": _Command("look", "ExportCommand", "Write the table of studies, with a row for each measured checkpoint."),
    "archive": _Command("look", "ArchiveCommand", "Delete the networks of finished runs, and keep all results."),
    "train": _Command("train", "TrainCommand", "Train recurrent Q-networks to act in a POMDP, and store them."),
    "measure": _Command("train", "MeasureCommand", "Measure how much of the belief a trained run's memory holds."),
    "audit": _Command(
        "audit", "AuditCommand", "Audit any agent from its log: what does its memory hold of the belief?"
    ),
    "bits": _Command("audit", "BitsCommand", "Say how many bits two arrays share."),
}


COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")  # the script with which a shell completes words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Small products do not thread: on two threads training is no faster, and its bits depend on their number.
    os.environ.setdefault("NPROC", "1")
    with readers_may_leave():
        if given[:1] in (["--version"], ["-V"]):
            print(f"beliefscope {__version__}")
            return 0
        return _status(given)


def _status(given: list[str]) -> int:
    try:
        status = _command(given).run()
        print(end="", flush=True)  # so that a full disk is told of
        return status
    except (ValueError, OSError) as error:
        print(f"beliefscope: {plain(_one_sentence(error))}", file=sys.stderr)
        return 2
    except RuntimeError as error:  # JAX: no such platform, not enough memory
        print(f"beliefscope: JAX could not do it: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        again = shlex.join(["beliefscope", *given])
        print(f"\nInterrupted. What is finished is saved. To continue, run again:\n  {again}", file=sys.stderr)
        return 130


def _command(given: list[str]) -> Any:
    """The command that is asked for, with its options; only its module is imported, or all to complete words of."""
    with _ended_by_interrupts():
        import tyro

        every = any(word in given for word in COMPLETION)
        classes = {name: _loaded(command, wanted=every or given[:1] == [name]) for name, command in COMMANDS.items()}
    return tyro.extras.subcommand_cli_from_dict(
        classes,
        args=understood(given),
        prog="beliefscope",
        description="Does my agent's memory encode the belief?",
        config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )


def _loaded(command: _Command, *, wanted: bool) -> Any:
    """The command's class, or one that has its summary alone, for the list of commands."""
    if wanted:
        return getattr(importlib.import_module(f"beliefscope.cli.{command.module}"), command.name)
    return dataclasses.make_dataclass(command.name, [], namespace={"__doc__": command.summary})


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
        is_barred = isinstance(error, PermissionError | NotADirectoryError)
        advice = "; choose a place where you may read and write" if is_barred else ""
        return f"{error.filename}: {error.strerror}{advice}"
    return str(error)


class _Stream:
    """A stream that takes what nobody reads any more."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._unread():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._unread():
            self._stream.flush()

    @contextlib.contextmanager
    def _unread(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # for what is still buffered
            if not isinstance(error, BrokenPipeError):  # a full disk, say
                raise


@contextlib.contextmanager
def readers_may_leave() -> Iterator[None]:
    """Meanwhile a closed pipe behind standard output or standard error is no error."""
    before = sys.stdout, sys.stderr
    # None is a stream that was closed from the start.
    sys.stdout, sys.stderr = (None if stream is None else _Stream(stream) for stream in before)  # pyright: ignore
    try:
        yield
    finally:
        print(end="", flush=True)
        sys.stdout, sys.stderr = before


def plain(text: str) -> str:
    """Without what a terminal would obey: names of files and in files may hold anything."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


_CAPITALS = ("--cell",)  # options whose one value is a name in capitals
_LISTS = ("--seeds", "--episodes")  # options whose values are whole numbers, and may be apart by commas


def understood(given: Sequence[str]) -> list[str]:
    """The words of a command in the form that its options have."""
    words, option = [], ""
    for word in given:
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            words += [option, *_values(option, value)] if equals and option in (*_CAPITALS, *_LISTS) else [word]
        else:
            words += _values(option, word)
        if option in _CAPITALS and words[-1] != option:  # its value is there: the next word is none
            option = ""
    return words


def _values(option: str, word: str) -> list[str]:
    if option in _CAPITALS:
        return [word.upper()]
    numbers = option in _LISTS and not set(word) - set("0123456789, -")
    return [part.strip() for part in word.split(",") if part.strip()] if numbers else [word]
