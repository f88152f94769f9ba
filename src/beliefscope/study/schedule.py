"""Which piece is next: trainings, then the checkpoints that say most, then what a worker has compiled already.

The first, the last and the middle checkpoint of all runs come first, then those half-way between, and so on: whenever a
study is stopped, its curves are as fine as its time allowed, and equally fine for all runs.
"""

from collections.abc import Collection, Iterable, Mapping

from beliefscope.store.pieces import Piece
from beliefscope.study.spec import RunSpec

Programs = tuple[object, ...]  # equal for pieces that run the same compiled programs


class Schedule:
    """The pieces that are still to be done."""

    def __init__(self, pieces: list[Piece], runs: Mapping[str, RunSpec], *, in_batches: bool):
        """`in_batches`: trainings that differ in their seeds alone are done as one, which pays on a GPU."""
        self._waiting = list(pieces)
        self._runs = runs
        self._training = {piece.run for piece in pieces if piece.kind == "train"}
        self._in_batches = in_batches
        self._rounds = _rounds(runs)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ready(self) -> list[Piece]:
        """The pieces that can be done now: trainings, and what is asked of runs that are trained."""
        return [piece for piece in self._waiting if piece.kind == "train" or piece.run not in self._training]

    def take(self, last: Programs | None, others: Collection[Programs]) -> list[Piece]:
        """The next pieces for a worker which has run the programs `last`, while other workers run `others`."""
        ready = self.ready()
        if not ready:
            return []

        def place(piece: Piece) -> tuple[int, bool, bool]:
            # A program is compiled once per worker that uses it: better each worker has its own kind of work.
            programs = self.programs(piece)
            round = -1 if piece.episode is None else self._rounds[piece.run, piece.episode]
            return round, programs != last, programs in others

        first = min(ready, key=place)
        taken = [first]
        if self._in_batches and first.kind == "train":
            taken = [piece for piece in ready if self.programs(piece) == self.programs(first)]
        self._waiting = [piece for piece in self._waiting if piece not in taken]
        return taken

    def put_back(self, pieces: Iterable[Piece]) -> None:
        """These were taken, and are to be done all the same."""
        self._waiting += pieces

    def training_ended(self, run: str, *, failed: bool) -> list[Piece]:
        """A run's training has ended; where it failed, its measurements and traces are taken out and returned."""
        self._training.discard(run)
        left_out = [piece for piece in self._waiting if piece.run == run] if failed else []
        self._waiting = [piece for piece in self._waiting if piece not in left_out]
        return left_out

    def programs(self, piece: Piece) -> Programs:
        """The compiled programs that a piece runs."""
        run = self._runs[piece.run]
        return (piece.kind, run.environment, run.training.learner, piece.measurement, piece.controls)


def _rounds(runs: Mapping[str, RunSpec]) -> dict[tuple[str, int], int]:
    """In which round a checkpoint, named by its run and episode, is measured and traced."""
    rounds = {}
    for id, run in runs.items():
        episodes = sorted({*run.traces, *(episode for each in run.measurements for episode in each.episodes)})
        rounds |= {(id, episode): round for episode, round in zip(episodes, refinement(len(episodes)), strict=True)}
    return rounds


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
