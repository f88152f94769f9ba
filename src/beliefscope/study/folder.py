"""The folder of a study: `DIR/study.json` says which pieces there are, their files say which of them are done.

Nothing here builds a POMDP or a network, so that a folder can be listed and tabled anywhere, within seconds.
"""

import contextlib
import dataclasses
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from beliefscope.errors import require
from beliefscope.measurement import MeasurementSpec
from beliefscope.storage import Busy, Damaged, load_arrays, lock, read_record, write_record
from beliefscope.study.piece import Piece, Run
from beliefscope.study.results import as_csv, columns
from beliefscope.study.study import FORMAT, Study

State = Literal["done", "running", "diverged", "left out", "failed", "missing"]
_TRAINING_FILES = ("trained.json", "failed.json", "resume.eqx", "metrics.jsonl", "params")


@dataclasses.dataclass(frozen=True)
class StudyFolder:
    """A study on disk."""

    path: Path

    @cached_property
    def description(self) -> dict[str, Any]:
        """What study.json says."""
        file = self.path / "study.json"
        require(
            file.is_file(),
            rule="the folder of a study holds a study.json",
            received=str(self.path),
            advice="name a folder that `beliefscope run` has made",
        )
        description = read_record(file)
        require(
            description.get("format") == FORMAT,
            rule=f"this version of beliefscope reads study folders of format {FORMAT}",
            received=f"format {description.get('format')} in {file}",
            advice="use the version of beliefscope that made the folder, which its manifest.json names",
        )
        return description

    @cached_property
    def runs(self) -> list[Run]:
        return [_run(described) for described in self.description["runs"]]

    @property
    def pieces(self) -> list[Piece]:
        return [piece for run in self.runs for piece in run.pieces]

    def prepare(self, study: Study) -> None:
        """Write the study's description, unless the folder is another study's."""
        file, described = self.path / "study.json", study.describe()
        if file.exists():
            there = {name: self.description[name] for name in ("name", "settings")}
            asked = {name: described[name] for name in ("name", "settings")}
            require(
                there == asked,
                rule=f"{self.path} holds the study {_called(there)}, and a folder holds one study",
                received=_called(asked),
                advice="choose another folder with --out",
            )
        if not file.exists() or self.description != described:
            write_record(file, described)
            for cached in ("description", "runs"):
                self.__dict__.pop(cached, None)

    def states(self) -> dict[str, State]:
        """How each piece stands, by its name, in the order of the study."""
        held = {file.name for file in (self.path / "locks").glob("*-*") if _is_held(file)}
        states: dict[str, State] = {}
        for run in self.runs:
            diverged = (self.path / "runs" / run.id / "failed.json").exists()
            for piece in run.pieces:
                states[piece.name] = self._state(piece, held, diverged=diverged)
        return states

    def _state(self, piece: Piece, held: set[str], *, diverged: bool) -> State:
        if piece.result(self.path).exists():
            return "done"
        if diverged:
            return "diverged" if piece.kind == "train" else "left out"
        if piece.name in held:
            return "running"
        return "failed" if piece.failure(self.path).exists() else "missing"

    def table(self) -> Any:
        """All results, a row for each measured checkpoint, ε, estimator and part of the belief (results.py).

        As a pandas DataFrame where pandas is installed, else as a dict of columns.
        """
        found = columns(self.path, self.runs)
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            return found
        return pandas.DataFrame(found)

    def csv(self) -> str:
        """The table as text."""
        return as_csv(columns(self.path, self.runs))

    def failures(self) -> list[tuple[Piece, str]]:
        """The pieces that could not be done, and why."""
        failed = [piece for piece in self.pieces if piece.failure(self.path).exists()]
        return [(piece, read_record(piece.failure(self.path))["error"]) for piece in failed]

    def check(self, piece: Piece) -> None:
        """Raise `Damaged` if a piece that is done is not as it was written."""
        result = piece.result(self.path)
        if piece.kind == "trace":
            load_arrays(result)
            return
        record = read_record(result)
        for name, digest in record.get("files", {}).items():
            file = result.parent / name
            if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
                raise Damaged(file, "its checksum is not the one that trained.json has of it")

    def set_aside_damaged(self, watch: Callable[[Piece], None] = lambda piece: None) -> list[Damaged]:
        """Move what is damaged to `quarantine/`, so that it is made again; say what it was."""
        damaged = []
        for piece in self.pieces:
            watch(piece)
            if piece.result(self.path).exists():
                try:
                    self.check(piece)
                except Damaged as error:
                    with contextlib.suppress(Busy), lock(self.path / "locks" / piece.name):
                        self.set_aside(piece)
                        damaged.append(error)
        return damaged

    def set_aside(self, piece: Piece) -> None:
        """Move a piece's files to `quarantine/`; of a training all but its description."""
        run = self.path / "runs" / piece.run
        names = _TRAINING_FILES if piece.kind == "train" else [str(piece.result(self.path).relative_to(run))]
        number = 0
        while (aside := self.path / "quarantine" / f"{piece.name}.{number}").exists():
            number += 1
        aside.mkdir(parents=True)
        for name in names:
            if (run / name).exists():
                shutil.move(run / name, aside / Path(name).name)


def count_states(states: dict[str, State]) -> str:
    """For people: how many pieces stand how."""
    counts = Counter(states.values())
    order: tuple[State, ...] = ("done", "running", "diverged", "left out", "failed", "missing")
    return ", ".join(f"{counts[state]} {state}" for state in order if counts[state])


def _run(described: dict[str, Any]) -> Run:
    id, environment, cell, seed = (described[name] for name in ("id", "environment", "cell", "seed"))
    label = f"{environment}, {cell}, seed {seed}"
    return Run(id, environment, cell, seed, [_piece(id, label, given) for given in described["pieces"]])


def _piece(run: str, label: str, given: dict[str, Any]) -> Piece:
    measurement = MeasurementSpec(**given["measurement"]) if "measurement" in given else None
    return Piece(
        kind=given["kind"],
        run=run,
        label=label,
        episode=given.get("episode"),
        measurement=measurement,
        controls=given.get("controls", False),
    )


def _called(description: dict[str, Any]) -> str:
    return " ".join([str(description["name"]), *map(str, description["settings"].values())])


def _is_held(file: Path) -> bool:
    try:
        with lock(file):
            return False
    except Busy:
        return True
    except OSError:
        return False
