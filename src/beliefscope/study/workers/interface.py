"""What does the pieces of a study: a backend has slots, is assigned pieces for them, and gives messages about them.

A message about a slot is a `Ready`, `Progress`, `Note` or `Outcome`. An `Outcome` ends the pieces that the slot was
assigned.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable


class Ready(NamedTuple):
    """Work can begin, on such a device."""

    device: str


class Progress(NamedTuple):
    """The fraction of the assigned pieces that is done."""

    fraction: float


class Note(NamedTuple):
    """A sentence for the user."""

    sentence: str


class Outcome(NamedTuple):
    """How the assigned pieces ended.

    "busy": another process is doing them. "killed": the worker ended in the middle of them. "stop": the error, such as
    that of a full disk, concerns all pieces.
    """

    kind: Literal["done", "busy", "failed", "killed", "stop"]
    error: str = ""
    details: str = ""


Message = Ready | Progress | Note | Outcome


@runtime_checkable
class Backend(Protocol):
    """Results are in the study's folder before their outcome is told, written under the locks of their pieces."""

    in_batches: bool  # are trainings that differ in their seeds alone better done as one?

    def start(self, runs: Mapping[str, Any], folder: Path, *, at_most: int) -> int:
        """Begin, with the runs by their ids and the study's folder; returns the number of slots."""
        ...

    def idle(self) -> list[int]:
        """The slots that can be assigned pieces now."""
        ...

    def assign(self, slot: int, pieces: Sequence[Any]) -> None:
        """Have pieces done that `Schedule.take` put together."""
        ...

    def messages(self) -> Iterator[tuple[int, Message]]:
        """The messages of the slots that have arrived; waits for the first of them for a second at most."""
        ...

    def close(self) -> None:
        """End all work at once; what is stored stays."""
        ...
