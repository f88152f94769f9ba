"""Which piece is next: trainings, then the checkpoints that say most, then what a worker has compiled already.

The first, the last and the middle checkpoint of all runs come first, then those half-way between, and so on: whenever a
study is stopped, its curves are as fine as its time allowed, and equally fine for all runs.
"""

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
        self._turns = _turns(runs)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, last: Likeness | None, others: Collection[Likeness]) -> list[Piece]:
        """The next pieces for a worker whose last ones were alike `last`, while other workers do `others`."""
        ready = [piece for piece in self._waiting if piece.kind == "train" or piece.run not in self._training]
        if not ready:
            return []

        def place(piece: Piece) -> tuple[int, bool, bool]:
            # A program is compiled once per worker that uses it: better each worker has its own kind of work.
            likeness = self.likeness(piece)
            turn = -1 if piece.episode is None else self._turns[piece.run, piece.episode]
            return turn, likeness != last, likeness in others

        first = min(ready, key=place)
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


def _turns(runs: Mapping[str, RunSpec]) -> dict[tuple[str, int], int]:
    """In which round a run's checkpoint is looked at."""
    turns = {}
    for id, run in runs.items():
        episodes = sorted({*run.traces, *(episode for each in run.measurements for episode in each.episodes)})
        turns |= {(id, episode): turn for episode, turn in zip(episodes, refinement(len(episodes)), strict=True)}
    return turns


def refinement(count: int) -> list[int]:
    """In which round each of `count` points on a line is taken: ends and middle in round 0, then middles of gaps."""
    rounds = [0] * count
    gaps, number = [(0, count // 2), (count // 2, count - 1)], 1
    while gaps := [(low, high) for low, high in gaps if high - low > 1]:
        for low, high in gaps:
            rounds[(low + high) // 2] = number
        gaps = [gap for low, high in gaps for gap in ((low, (low + high) // 2), ((low + high) // 2, high))]
        number += 1
    return rounds
