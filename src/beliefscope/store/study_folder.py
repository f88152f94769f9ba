"""The folder of a study: `study.json` says which pieces there are, their files say which of them are done.

Nothing here builds a POMDP or a network, or imports JAX. So a folder can be read on any machine, within a second.
"""

import contextlib
import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from beliefscope.errors import require
from beliefscope.store.files import (
    Busy,
    Damaged,
    clear_unfinished,
    lock,
    read_record,
    write_record,
)
from beliefscope.store.layout import (
    RunFiles,
    StudyFiles,
    is_file,
    is_run_id,
    is_there,
    move_aside,
    move_odd_aside,
)
from beliefscope.store.pieces import MeasurementSpec, Piece, Run, run_label, training_name, with_kept
from beliefscope.store.records import (
    check_study,
    checked,
    digest_of,
    read_interventions,
    read_measurement,
    read_returns,
    read_trace,
    read_trained,
    stored_episodes,
)
from beliefscope.store.schema import LONGEST_NAME, Failed, Failure, Manifest

if TYPE_CHECKING:
    import polars

FORMAT = 1
State = Literal["done", "running", "diverged", "left out", "failed", "missing"]
_ORDER: tuple[State, ...] = ("done", "running", "diverged", "left out", "failed", "missing")


@dataclasses.dataclass(frozen=True, init=False)
class StudyFolder:
    """A study on disk."""

    path: Path

    def __init__(self, path: str | Path):
        object.__setattr__(self, "path", Path(path))

    @property
    def files(self) -> StudyFiles:
        return StudyFiles(self.path)

    @cached_property
    def description(self) -> dict[str, Any]:
        """What study.json says."""
        file = self.files.study
        require(
            is_file(file),
            rule="the folder of a study holds a study.json",
            received=str(self.path),
            advice="name a folder that `beliefscope run` or `beliefscope train` has made",
        )
        self._check_no_links()
        description = read_record(file)
        require(
            not isinstance(description.get("format"), int) or description["format"] == FORMAT,
            rule=f"this version of beliefscope reads study folders of format {FORMAT}",
            received=f"format {description.get('format')} in {file}",
            advice="use the version of beliefscope that made the folder, which its manifest.json names",
        )
        return check_study(file, description)

    @cached_property
    def runs(self) -> list[Run]:
        described = self.description["runs"]
        try:
            return [_run(each) for each in described]
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.files.study} lists runs and their pieces as beliefscope writes them, but it does not "
                f"({error}); repeat the `beliefscope run` that made the folder."
            ) from error

    @property
    def pieces(self) -> list[Piece]:
        return [piece for run in self.runs for piece in run.pieces]

    def prepare(self, described: dict[str, Any]) -> None:
        """Write a study's description, unless the folder is another study's."""
        self._check_no_links()
        clear_unfinished(self.files.folders)
        for odd in move_odd_aside(self.files):
            print(f"set aside, since it is of another kind than what belongs there: {odd}", flush=True)
        file = self.files.study
        if is_file(file) and self._is_damaged():
            move_aside(self.files, "study.json", [file])
            self._forget()
        if is_file(file):
            there = {name: self.description[name] for name in ("name", "settings")}
            asked = {name: described[name] for name in ("name", "settings")}
            require(
                there == asked,
                rule=f"{self.path} holds the study {_called(there)}, and a folder holds one study",
                received=_called(asked),
                advice="choose another folder with --out",
            )
            self._check_none_is_lost({run["id"] for run in described["runs"]})
            described = with_kept(described, self._kept())
        if not is_file(file) or self.description != described:
            write_record(file, described)
            self._forget()

    def _kept(self) -> dict[str, list[dict[str, Any]]]:
        """By run, the pieces that stay whatever the definition is: added by `measure`, or done."""
        return {
            run.id: [
                given
                for piece, given in zip(run.pieces, described["pieces"], strict=True)
                if given.get("added") or self.is_done(piece)
            ]
            for run, described in zip(self.runs, self.description["runs"], strict=True)
        }

    def _is_damaged(self) -> bool:
        """Does study.json say nothing that can be relied on? That of another format is no damage."""
        try:
            description = self.description
        except Damaged:
            return True
        try:
            return not [_run(each) for each in description["runs"]]
        except (ValueError, TypeError):
            return True

    def _forget(self) -> None:
        for cached in ("description", "runs"):
            self.__dict__.pop(cached, None)

    def _check_no_links(self) -> None:
        """A link could lead out of a folder from an untrusted source."""
        for place, folders, files in os.walk(self.path):
            for name in (*folders, *files):
                require(
                    not os.path.islink(os.path.join(place, name)),
                    rule="no file or folder in a study's folder is a symbolic link",
                    received=os.path.join(place, name),
                    advice="replace the link by its target; the folder itself may be a link",
                )

    def _check_none_is_lost(self, asked: set[str]) -> None:
        lost = [run for run in self.runs if run.id not in asked and self.files.run(run.id).folder.exists()]
        require(
            not lost,
            rule=f"a study that continues in {self.path} has all the runs of that folder",
            received=f"a definition without {len(lost)} of them, such as {lost[0].label}" if lost else "",
            advice="choose another folder with --out, or add to the old definition",
        )

    def diverged(self, run: str) -> bool:
        """Was the run's agent recorded as failed, and not trained to its end since?"""
        files = self.files.run(run)
        return is_file(files.failed) and not is_file(files.trained)

    def results_of(self, run: str) -> RunFiles:
        """The files of a run; while it is trained again, those of the training that was last set aside."""
        files = self.files.run(run)
        if is_file(files.trained) or self.diverged(run):
            return files
        aside = (RunFiles(files.folder, folder) for folder in reversed(self.trainings_aside(run)))
        return next((each for each in aside if is_file(each.trained)), files)

    def trainings_aside(self, run: str) -> list[Path]:
        """Where trainings of a run were set aside, in order."""
        numbered = (self.files.aside(training_name(run), number) for number in itertools.count())
        return list(itertools.takewhile(Path.exists, numbered))

    def states(self) -> dict[str, State]:
        """How each piece stands, by its name, in the order of the study."""
        held = {file.name for file in self.files.locks.glob("*-*") if is_file(file) and is_held(file)}
        states: dict[str, State] = {}
        for run in self.runs:
            diverged = self.diverged(run.id)
            for piece in run.pieces:
                states[piece.name] = self._state(piece, held, diverged=diverged)
        return states

    def _state(self, piece: Piece, held: set[str], *, diverged: bool) -> State:
        if self.is_done(piece):
            return "done"
        if diverged:
            return "diverged" if piece.kind == "train" else "left out"
        if piece.name in held:
            return "running"
        return "failed" if is_file(piece.failure(self.path)) else "missing"

    def is_done(self, piece: Piece) -> bool:
        return is_file(piece.result(self.path))

    def table(self) -> "polars.DataFrame":
        """All results, a row for each measured checkpoint, ε, estimator and part of the belief (docs/studies.md)."""
        from beliefscope.results import read_table  # results are made of stored records: they import this module

        return read_table([self.path])

    def csv(self) -> str:
        """The table as text."""
        from beliefscope.results import as_csv

        return as_csv(self.table())

    def failures(self) -> list[tuple[Piece, str]]:
        """The pieces that could not be done, and why."""
        failed = [piece for piece in self.pieces if is_file(piece.failure(self.path))]
        return [(piece, _reason(piece.failure(self.path), "error", Failure)) for piece in failed]

    def why_diverged(self, run: str) -> str:
        return _reason(self.files.run(run).failed, "reason", Failed)

    def manifest(self) -> list[dict[str, Any]]:
        """The calls that made the folder, for people."""
        file = self.files.manifest
        return checked(file, read_record(file), Manifest)["calls"] if is_there(file) else []

    def check(self, piece: Piece) -> None:
        """Raise `Damaged` if the files of a finished piece differ from what was written.

        A missing network is not damage; a network with other bytes is.
        """
        result = piece.result(self.path)
        if piece.kind == "trace":
            read_trace(result)
        elif piece.kind == "intervene" and piece.episode is not None:
            read_interventions(result, piece.run, piece.episode)
        elif piece.measurement is not None:
            read_measurement(piece, result)
        else:
            read_returns(piece.files(self.path))
            for name, digest in read_trained(result)["files"].items():
                file = result.parent / name
                if Path(name).is_absolute() or ".." in Path(name).parts:
                    raise Damaged(result, "it names a file outside its folder")
                if is_there(file) and digest_of(file) != digest:
                    raise Damaged(file, "its checksum differs from the one in trained.json")

    def lacking(self, piece: Piece) -> set[int]:
        """The checkpoints that the piece reads and whose networks are gone, though its run is trained."""
        files = piece.files(self.path)
        if not is_file(files.trained):
            return set()
        last = max(stored_episodes(read_trained(files.trained)), default=0)
        return piece.needs(last) - set(files.networks())

    def set_aside_damaged(self, watch: Callable[[Piece], None] = lambda piece: None) -> list[Damaged]:
        """Move damaged pieces to `quarantine/`, so that they are made again; say which they were."""
        damaged = [error for run in self.runs if (error := self._damaged_failure(run.id)) is not None]
        for piece in self.pieces:
            watch(piece)
            if is_there(piece.result(self.path)):
                try:
                    self.check(piece)
                except Damaged as error:
                    with contextlib.suppress(Busy), lock(self.files.lock(piece.name)):
                        self.set_aside(piece)
                        damaged.append(error)
        return damaged

    def set_aside(self, piece: Piece) -> None:
        """Move a piece's files to `quarantine/`; of a training all but its description."""
        training = piece.files(self.path).of_training
        move_aside(self.files, piece.name, training if piece.kind == "train" else [piece.result(self.path)])

    def _damaged_failure(self, run: str) -> Damaged | None:
        """A failed.json that differs from what was written says nothing about its run."""
        file = self.files.run(run).failed
        try:
            if is_there(file):
                checked(file, read_record(file), Failed)
            return None
        except Damaged as error:
            move_aside(self.files, f"failed-{run}", [file])
            return error


class Archived(NamedTuple):
    """What `archive` has done."""

    runs: int  # whose networks it has removed
    freed: int  # bytes
    needed: int  # runs whose networks it has kept, since pieces that are not done need them


def archive(folder: StudyFolder, *, keep_ends: bool) -> Archived:
    """Remove the networks and resume states of finished runs.

    With `keep_ends` the first and the last network of each run are kept.
    """
    runs = freed = needed = 0
    for run in folder.runs:
        files = folder.files.run(run.id)
        if not is_file(files.trained):
            continue
        if not all(map(folder.is_done, run.pieces)):
            needed += 1
            continue
        with lock(folder.files.lock(training_name(run.id))):
            stored = stored_episodes(read_trained(files.trained))
            kept = {*stored[:1], *stored[-1:]} if keep_ends else set()
            dropped = [files.network(episode) for episode in stored if episode not in kept]
            dropped = [file for file in (*dropped, files.resume) if is_file(file)]
            for file in dropped:
                freed += file.stat().st_size
                file.unlink()
        runs += bool(dropped)
    return Archived(runs, freed, needed)


def count_states(states: dict[str, State]) -> str:
    """For people: how many pieces are in each state."""
    counts = Counter(states.values())
    return ", ".join(f"{counts[state]} {state}" for state in _ORDER if counts[state])


def _run(described: dict[str, Any]) -> Run:
    id, environment, cell, seed = (described[name] for name in ("id", "environment", "cell", "seed"))
    if not is_run_id(id):  # it becomes a path
        raise ValueError(f"a run's id has 16 hexadecimal digits, and is not {id!r}")
    for name in (environment, cell):
        if not name.isprintable() or len(name) > LONGEST_NAME:
            raise ValueError(f"names are at most {LONGEST_NAME} printable characters, and not {name[:LONGEST_NAME]!r}")
    label = run_label(environment, cell, seed)
    return Run(id, environment, cell, seed, [_piece(id, label, given) for given in described["pieces"]])


def _piece(run: str, label: str, given: dict[str, Any]) -> Piece:
    kind, episode = given["kind"], given.get("episode")
    if (episode is None) != (kind == "train") or ("measurement" in given) != (kind == "measure"):
        raise ValueError(
            f"a piece is a training, or belongs to a checkpoint after some episode, not {kind!r} {episode!r}"
        )
    return Piece(
        kind=kind,
        run=run,
        label=label,
        episode=episode,
        measurement=MeasurementSpec(**given["measurement"]) if "measurement" in given else None,
        controls=given.get("controls", False),
        calibrate=given.get("calibrate", False),
    )


def _called(description: dict[str, Any]) -> str:
    return " ".join([str(description["name"]), *map(str, description["settings"].values())])


def _reason(file: Path, name: str, kind: Any) -> str:
    try:
        return str(checked(file, read_record(file), kind).get(name))
    except Damaged as error:
        return f"unknown, since {error.why} in {file}"


def is_held(file: Path) -> bool:
    """Has a process the lock on this file?"""
    try:
        with lock(file):
            return False
    except Busy:
        return True
    except OSError:
        return False
