"""The folder of a study: `DIR/study.json` says which pieces there are, their files say which of them are done.

Nothing here builds a POMDP or a network, so that a folder can be listed and tabled anywhere, within seconds.
"""

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from beliefscope.errors import is_whole, require
from beliefscope.measurement import MeasurementSpec
from beliefscope.storage import Busy, Damaged, load_arrays, lock, read_record, write_record
from beliefscope.study.piece import Kind, Piece, Run
from beliefscope.study.results import as_csv, check_record, columns
from beliefscope.study.study import FORMAT, Study

State = Literal["done", "running", "diverged", "left out", "failed", "missing"]
_TRAINING_FILES = ("trained.json", "failed.json", "resume.eqx", "metrics.jsonl", "params")


@dataclasses.dataclass(frozen=True, init=False)
class StudyFolder:
    """A study on disk."""

    path: Path

    def __init__(self, path: str | Path):
        object.__setattr__(self, "path", Path(path))

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
        self._check_no_links()
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
        try:
            return [_run(described) for described in self.description["runs"]]
        except (KeyError, TypeError, AttributeError, AssertionError) as error:
            raise ValueError(
                f"{self.path / 'study.json'} lists runs and their pieces as beliefscope writes them, but it does not "
                f"({type(error).__name__}: {error}); repeat the `beliefscope run` that made the folder."
            ) from error

    @property
    def pieces(self) -> list[Piece]:
        return [piece for run in self.runs for piece in run.pieces]

    def prepare(self, study: Study) -> None:
        """Write the study's description, unless the folder is another study's."""
        self._check_no_links()
        file, described = self.path / "study.json", study.describe()
        if file.exists() and _is_damaged(file):
            self._move_aside("study.json", [file])
        if file.exists():
            there = {name: self.description[name] for name in ("name", "settings")}
            asked = {name: described[name] for name in ("name", "settings")}
            require(
                there == asked,
                rule=f"{self.path} holds the study {_called(there)}, and a folder holds one study",
                received=_called(asked),
                advice="choose another folder with --out",
            )
            self._check_none_is_lost({run["id"] for run in described["runs"]})
        if not file.exists() or self.description != described:
            write_record(file, described)
            for cached in ("description", "runs"):
                self.__dict__.pop(cached, None)

    def _check_no_links(self) -> None:
        """A link would lead out of a folder that may be a stranger's."""
        for place, folders, files in os.walk(self.path):
            for name in (*folders, *files):
                require(
                    not os.path.islink(os.path.join(place, name)),
                    rule="no file or folder in a study's folder is a symbolic link",
                    received=os.path.join(place, name),
                    advice="put what it leads to in its place; the folder itself may be a link",
                )

    def _check_none_is_lost(self, asked: set[str]) -> None:
        lost = [run for run in self.runs if run.id not in asked and (self.path / "runs" / run.id).exists()]
        require(
            not lost,
            rule=f"a study that goes on in {self.path} has all the runs that are there",
            received=f"a definition without {len(lost)} of them, such as {lost[0].pieces[0].label}" if lost else "",
            advice="choose another folder with --out, or go back to the old definition and add to it",
        )

    def diverged(self, run: str) -> bool:
        """Was the run's agent recorded as failed, and not trained to its end since?"""
        folder = self.path / "runs" / run
        return (folder / "failed.json").exists() and not (folder / "trained.json").exists()

    def states(self) -> dict[str, State]:
        """How each piece stands, by its name, in the order of the study."""
        held = {file.name for file in (self.path / "locks").glob("*-*") if _is_held(file)}
        states: dict[str, State] = {}
        for run in self.runs:
            diverged = self.diverged(run.id)
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
        return [(piece, _reason(piece.failure(self.path), "error")) for piece in failed]

    def why_diverged(self, run: str) -> str:
        return _reason(self.path / "runs" / run / "failed.json", "reason")

    def check(self, piece: Piece) -> None:
        """Raise `Damaged` if a piece that is done is not as it was written."""
        result = piece.result(self.path)
        if piece.kind == "trace":
            load_arrays(result)
            return
        record = read_record(result)
        if piece.measurement is not None:
            check_record(piece, result, record)
        for name, digest in record.get("files", {}).items():
            file = result.parent / name
            if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
                raise Damaged(file, "its checksum is not the one that trained.json has of it")

    def set_aside_damaged(self, watch: Callable[[Piece], None] = lambda piece: None) -> list[Damaged]:
        """Move what is damaged to `quarantine/`, so that it is made again; say what it was."""
        damaged = [error for run in self.runs if (error := self._damaged_failure(run.id)) is not None]
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
        training = [run / name for name in _TRAINING_FILES]
        self._move_aside(piece.name, training if piece.kind == "train" else [piece.result(self.path)])

    def _damaged_failure(self, run: str) -> Damaged | None:
        """A failed.json that is not as it was written says nothing of its run."""
        file = self.path / "runs" / run / "failed.json"
        if not file.exists() or not _is_damaged(file):
            return None
        self._move_aside(f"failed-{run}", [file])
        return Damaged(file, "its checksum does not fit its content")

    def _move_aside(self, name: str, files: Iterable[Path]) -> None:
        number = 0
        while (aside := self.path / "quarantine" / f"{name}.{number}").exists():
            number += 1
        aside.mkdir(parents=True)
        for file in files:
            if file.exists():
                shutil.move(file, aside / file.name)


def count_states(states: dict[str, State]) -> str:
    """For people: how many pieces stand how."""
    counts = Counter(states.values())
    order: tuple[State, ...] = ("done", "running", "diverged", "left out", "failed", "missing")
    return ", ".join(f"{counts[state]} {state}" for state in order if counts[state])


def _run(described: dict[str, Any]) -> Run:
    id, environment, cell, seed = (described[name] for name in ("id", "environment", "cell", "seed"))
    if not re.fullmatch("[0-9a-f]{16}", id):  # it becomes a path
        raise TypeError(f"a run's id has 16 hexadecimal digits, and is not {id!r}")
    label = f"{environment}, {cell}, seed {seed}"
    return Run(id, environment, cell, seed, [_piece(id, label, given) for given in described["pieces"]])


def _piece(run: str, label: str, given: dict[str, Any]) -> Piece:
    kind, episode = given["kind"], given.get("episode")
    if kind not in get_args(Kind) or not (is_whole(episode) or (episode is None and kind == "train")):
        raise TypeError(f"a piece is a training, or a checkpoint's after so many episodes, not {kind!r} {episode!r}")
    measurement = MeasurementSpec(**given["measurement"]) if "measurement" in given else None
    return Piece(
        kind=kind,
        run=run,
        label=label,
        episode=episode,
        measurement=measurement,
        controls=given.get("controls", False),
        calibrate=given.get("calibrate", False),
    )


def _called(description: dict[str, Any]) -> str:
    return " ".join([str(description["name"]), *map(str, description["settings"].values())])


def _is_damaged(file: Path) -> bool:
    try:
        read_record(file)
    except Damaged:
        return True
    return False


def _reason(file: Path, name: str) -> str:
    try:
        return str(read_record(file).get(name))
    except Damaged as error:
        return f"unknown, since {error.why} in {file}"


def _is_held(file: Path) -> bool:
    try:
        with lock(file):
            return False
    except Busy:
        return True
    except OSError:
        return False
