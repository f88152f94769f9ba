"""A study: runs, declared once. What it consists of is a list of pieces, and `DIR/study.json` says which."""

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from beliefscope.errors import require
from beliefscope.pomdp import maximal_return
from beliefscope.study.piece import Piece
from beliefscope.study.run_spec import RunSpec

FORMAT = 1
LONGEST_NAME = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """Runs under a name."""

    name: str
    runs: tuple[RunSpec, ...]
    description: str = ""
    settings: dict[str, str] = dataclasses.field(default_factory=dict)  # scale and variant, for people

    def __post_init__(self):
        check_name(self.name)
        require(
            isinstance(self.runs, tuple | list) and all(isinstance(run, RunSpec) for run in self.runs),
            rule="the runs of a study are a tuple of RunSpec",
            received=self.runs,
            advice="pass runs=(RunSpec(…), …)",
        )
        require(
            len(self.runs) > 0,
            rule="a study has at least one run",
            received=0,
            advice="name at least one environment, one cell and one seed",
        )
        ids = [run.id for run in self.runs]
        require(
            len(set(ids)) == len(ids),
            rule="no run is in a study twice",
            received=sorted({run.label for run, id in zip(self.runs, ids, strict=True) if ids.count(id) > 1}),
            advice="leave out the repeated cells, seeds or environments",
        )

    def pieces(self) -> list[Piece]:
        """All work: a run's training stands before its measurements and traces."""
        return [piece for _, pieces in self._by_run() for piece in pieces]

    def _by_run(self) -> Iterator[tuple[RunSpec, list[Piece]]]:
        seen: set[str] = set()
        for run in self.runs:
            yield run, list(_pieces(run, first=run.environment not in seen))
            seen.add(run.environment)

    def describe(self) -> dict[str, Any]:
        """The content of study.json: enough to know every piece without building a POMDP."""
        runs = [
            {"id": run.id, "environment": run.environment, "cell": run.training.learner.cell.__name__}
            | {"seed": run.training.seed, "pieces": [_described(piece) for piece in pieces]}
            for run, pieces in self._by_run()
        ]
        head = {"format": FORMAT, "name": self.name, "description": self.description, "settings": self.settings}
        return json.loads(json.dumps({**head, "optimum": self._optimum(), "runs": runs}))

    def _optimum(self) -> dict[str, float]:
        """J* by environment, where it is known: so that a report need not solve POMDPs."""
        found = {}
        for run in {run.environment: run for run in self.runs}.values():
            best = maximal_return(run.training.pomdp)
            if best is not None and best.exact:
                found[run.environment] = best.value
        return found


def check_name(name: str) -> None:
    """Folders are named after studies, and a file system takes names of 255 bytes."""
    is_text = isinstance(name, str)
    require(
        is_text and name.strip() != "" and name.isprintable() and len(name.encode()) <= LONGEST_NAME,
        rule=f"a study's name is one line of printable characters, of at most {LONGEST_NAME} bytes",
        received=name[:LONGEST_NAME] if is_text else name,
        advice="give it a shorter or plainer one",
    )


def _pieces(run: RunSpec, *, first: bool) -> Iterator[Piece]:
    """`first`: of its environment, whose calibration it has."""
    piece = partial(Piece, run=run.id, label=run.label)
    yield piece(kind="train")
    for each in run.measurements:
        for episode in each.episodes:
            known = first and each.calibrate and episode == max(each.controls, default=None)
            measured = piece(kind="measure", episode=episode, measurement=each.spec)
            yield dataclasses.replace(measured, controls=episode in each.controls, calibrate=known)
    for episode in run.traces:
        yield piece(kind="trace", episode=episode)


def _described(piece: Piece) -> dict[str, Any]:
    given = {"kind": piece.kind, "episode": piece.episode, "controls": piece.controls or None}
    given["calibrate"] = piece.calibrate or None
    measurement = None if piece.measurement is None else piece.measurement.describe()
    return {name: value for name, value in {**given, "measurement": measurement}.items() if value is not None}
