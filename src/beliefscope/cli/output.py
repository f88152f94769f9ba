"""Output: its reader may leave, as in `beliefscope list | head -1`, and nothing in it is obeyed by a terminal."""

import contextlib
import os
import sys
from collections.abc import Iterator
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
