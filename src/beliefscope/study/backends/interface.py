"""Where the pieces of a study are done: a backend has slots, takes pieces for them, and says how they go.

What a backend hears of a slot is a `Ready`, `Progress`, `Note` or `Outcome`; `Outcome` ends what the slot has in hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable


class Ready(NamedTuple):
    """Work can begin, on such a device."""

    device: str


class Progress(NamedTuple):
    """The fraction of the pieces in hand that is done."""

    fraction: float


class Note(NamedTuple):
    """A sentence for whoever watches."""

    sentence: str


class Outcome(NamedTuple):
    """How the pieces in hand ended; `stop` where no other piece would fare better."""

    kind: Literal["done", "busy", "failed", "stop"]
    error: str = ""
    details: str = ""


Message = Ready | Progress | Note | Outcome


@runtime_checkable
class Backend(Protocol):
    """Results are in the study's folder before their outcome is told, written under the locks of their pieces."""

    in_batches: bool  # are trainings that differ in their seeds alone better done as one?

    def open(self, runs: Mapping[str, Any], folder: Path, *, at_most: int) -> int:
        """Begin, with the runs by their ids and the study's folder; gives the number of slots."""
        ...

    def idle(self) -> list[int]:
        """The slots that can take pieces now."""
        ...

    def give(self, slot: int, pieces: Sequence[Any]) -> None:
        """Have pieces done that `Schedule.take` put together."""
        ...

    def heard(self) -> Iterator[tuple[int, Message]]:
        """What the slots have to say, after a second at most."""
        ...

    def close(self) -> None:
        """End all work at once; what is stored stays."""
        ...
