"""Which pieces of a study are to be done, and which of them is next.

To be done are those that are asked for and have no result, with the trainings they need. The networks of a finished run
may be gone, since `beliefscope archive` removes them. The run stays finished. Only where a piece that is to be done
reads networks that are gone, the run is trained again.

Next come trainings, then the checkpoints that say most, then what a worker has compiled already. The first, the last
and the middle checkpoint of all runs come first, then those half-way between, and so on: whenever a study is stopped,
its curves are as fine as its time allowed, and equally fine for all runs.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from beliefscope.store import Busy, Damaged, lock
from beliefscope.store.pieces import Piece, Run
from beliefscope.store.records import read_trained
from beliefscope.store.study_folder import StudyFolder
from beliefscope.study.spec import RunSpec

_POLL = 0.1  # seconds
_ALIKE = 10  # failures, after which the others of their kind are not tried


def is_asked(piece: Piece, only: Sequence[str]) -> bool:
    """Does its title contain one of these texts?"""
    return any(text in piece.title for text in only)


def pieces_to_do(stored: StudyFolder, only: Sequence[str] = ()) -> list[Piece]:
    """The pieces without a result, whose run has not diverged; with `only` those that are asked for."""
    states = stored.states()
    without_result = [piece for piece in stored.pieces if states[piece.name] in ("missing", "failed", "running")]
    asked = [piece for piece in without_result if not only or is_asked(piece, only)]
    names, runs = {piece.name for piece in asked}, {piece.run for piece in asked}
    return [piece for piece in without_result if piece.name in names or (piece.kind == "train" and piece.run in runs)]


def set_aside_trainings(stored: StudyFolder, pieces: Iterable[Piece]) -> list[Run]:
    """Of the finished runs whose networks these pieces read and are gone: move the trainings to `quarantine/`."""
    lacking: dict[str, Piece] = {}  # by run, a piece that lacks networks
    for piece in pieces:
        if piece.run not in lacking and _lacks_networks(stored, piece):
            lacking[piece.run] = piece
    return [run for run in stored.runs if run.id in lacking and _set_aside_training(stored, lacking[run.id])]


def describe_trained_again(runs: Sequence[Run]) -> str:
    """One line for the user."""
    if len(runs) == 1:
        return f"trained again, since measurements that are asked for need its networks: {runs[0].label}"
    return (
        f"trained again, since measurements that are asked for need their networks: {len(runs)} runs, "
        f"such as {runs[0].label}"
    )


def describe_differing(labels: Sequence[str]) -> str:
    """One line for the user, about runs whose second training gave other networks than the first."""
    which = labels[0] if len(labels) == 1 else f"{len(labels)} runs, such as {labels[0]}"
    return (
        f"trained again with another result: {which}; what was measured of the earlier networks is set aside in "
        "quarantine/, and the next `beliefscope run` measures it again"
    )


def set_aside_results(stored: StudyFolder, run: str) -> None:
    """Of a run whose networks are not those that were measured: numbers of two trainings are never mixed."""
    for piece in stored.pieces:
        if piece.run == run and piece.kind != "train" and stored.is_done(piece):
            with contextlib.suppress(Busy), lock(stored.files.lock(piece.name)):
                stored.set_aside(piece)


def differs_from_earlier(stored: StudyFolder, run: str) -> bool:
    """Has a run that was trained again other networks than the training that was last set aside?"""
    earlier = _digests_set_aside(stored, run)
    with contextlib.suppress(Damaged, FileNotFoundError):
        return earlier is not None and _network_digests(read_trained(stored.files.run(run).trained)) != earlier
    return False


def _lacks_networks(stored: StudyFolder, piece: Piece) -> bool:
    with contextlib.suppress(Damaged, FileNotFoundError):  # another process is training the run
        return bool(stored.lacking(piece))
    return False


def _set_aside_training(stored: StudyFolder, piece: Piece) -> bool:
    """False if another process has done so in the meantime."""
    training = Piece(kind="train", run=piece.run, label=piece.label)
    while _lacks_networks(stored, piece):
        try:
            with lock(stored.files.lock(training.name)):
                if _lacks_networks(stored, piece):
                    stored.set_aside(training)
                    return True
        except Busy:
            time.sleep(_POLL)
    return False


def _digests_set_aside(stored: StudyFolder, run: str) -> dict[str, str] | None:
    """Those of the last training in `quarantine/` whose trained.json can be read."""
    found = None
    for folder in stored.trainings_aside(run):
        with contextlib.suppress(Damaged, FileNotFoundError):
            found = _network_digests(read_trained(folder / stored.files.run(run).trained.name))
    return found


def _network_digests(trained: dict) -> dict[str, str]:
    return {name: digest for name, digest in trained["files"].items() if name.endswith(".eqx")}


Programs = tuple[object, ...]  # equal for pieces that run the same compiled programs
Kind = tuple[str, str, str | None]  # what a piece is, its environment, its estimator


class Schedule:
    """The pieces that are still to be done."""

    def __init__(self, pieces: list[Piece], runs: Mapping[str, RunSpec], *, in_batches: bool):
        """`in_batches`: trainings that differ in their seeds alone are done as one, which pays on a GPU."""
        self._waiting = list(pieces)
        self._runs = runs
        self._training = {piece.run for piece in pieces if piece.kind == "train"}
        self._in_batches = in_batches
        self._rounds = _rounds(runs)
        self._failures: Counter[tuple[Kind, str]] = Counter()  # by kind and error
        self._works: set[Kind] = set()  # of these, one was done

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
            # Checkpoints that `measure` has added, and the definition does not have, come last.
            added = len(self._rounds)
            round = -1 if piece.episode is None else self._rounds.get((piece.run, piece.episode), added)
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

    def done(self, piece: Piece) -> None:
        """It works: no later failure speaks for all of its kind."""
        self._works.add(self._kind(piece))

    def failed_alike(self, piece: Piece, error: str) -> list[Piece]:
        """A piece has failed. Where the first ten of a kind fail with one error, the others are taken out and returned.

        They would most likely fail as well, each after minutes on a CPU. The next call of `run` tries them again.
        """
        kind = self._kind(piece)
        self._failures[kind, error] += 1
        if kind in self._works or self._failures[kind, error] < _ALIKE:
            return []
        left_out = [other for other in self._waiting if self._kind(other) == kind]
        self._waiting = [other for other in self._waiting if other not in left_out]
        return left_out

    def _kind(self, piece: Piece) -> Kind:
        estimator = None if piece.measurement is None else piece.measurement.estimator
        return piece.kind, self._runs[piece.run].environment, estimator

    def programs(self, piece: Piece) -> Programs:
        """The compiled programs that a piece runs."""
        run = self._runs[piece.run]
        return (piece.kind, run.environment, run.training.learner, piece.measurement, piece.controls)


def _rounds(runs: Mapping[str, RunSpec]) -> dict[tuple[str, int], int]:
    """In which round a checkpoint, named by its run and episode, is measured and traced."""
    rounds = {}
    for id, run in runs.items():
        measured = {episode for each in run.measurements for episode in each.episodes}
        episodes = sorted({*run.traces, *run.interventions, *measured})
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
