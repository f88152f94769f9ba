"""Which piece is next: what can be done now, and what a worker has compiled already, before anything else."""

from collections.abc import Collection, Mapping

from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec

Likeness = tuple[object, ...]


class Schedule:
    """The pieces that are still to be done."""

    def __init__(self, pieces: list[Piece], runs: Mapping[str, RunSpec], *, in_batches: bool):
        """`in_batches`: trainings that differ in their seeds alone are done as one, which pays on a GPU."""
        self._waiting = list(pieces)
        self._runs = runs
        self._training = {piece.run for piece in pieces if piece.kind == "train"}
        self._in_batches = in_batches

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, last: Likeness | None, others: Collection[Likeness]) -> list[Piece]:
        """The next pieces for a worker whose last ones were alike `last`, while other workers do `others`."""
        ready = [piece for piece in self._waiting if piece.kind == "train" or piece.run not in self._training]
        if not ready:
            return []
        # A program is compiled once per worker that uses it: better each worker has its own kind of work.
        first = min(ready, key=lambda piece: (self.likeness(piece) != last, self.likeness(piece) in others))
        taken = [first]
        if self._in_batches and first.kind == "train":
            taken = [piece for piece in ready if self.likeness(piece) == self.likeness(first)]
        self._waiting = [piece for piece in self._waiting if piece not in taken]
        return taken

    def trained(self, run: str, *, failed: bool) -> list[Piece]:
        """A run's training is over; where it failed, the pieces that cannot be done are taken out and returned."""
        self._training.discard(run)
        lost = [piece for piece in self._waiting if piece.run == run] if failed else []
        self._waiting = [piece for piece in self._waiting if piece not in lost]
        return lost

    def likeness(self, piece: Piece) -> Likeness:
        """Equal for pieces that run the same compiled programs."""
        run = self._runs[piece.run]
        return (piece.kind, run.environment, run.training.learner, piece.measurement, piece.controls)
