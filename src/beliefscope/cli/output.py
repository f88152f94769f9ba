"""The text that commands print, and words of the command line that are understood in more than one form.

The reader of an output may leave, as in `beliefscope list | head -1`, and a terminal obeys nothing in it. `--cell gru`
and `--seeds 0,1,2` are understood.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any


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


_CAPITALS = ("--cell",)  # options whose values are names in capitals
_LISTS = ("--seeds", "--episodes")  # options whose values may be apart by commas


def understood(given: Sequence[str]) -> list[str]:
    """The words of a command in the form that its options have."""
    words, option = [], ""
    for word in given:
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            words += [option, *_values(option, value)] if equals and option in (*_CAPITALS, *_LISTS) else [word]
        else:
            words += _values(option, word)
    return words


def _values(option: str, word: str) -> list[str]:
    if option in _CAPITALS:
        return [word.upper()]
    return [part.strip() for part in word.split(",") if part.strip()] if option in _LISTS else [word]
