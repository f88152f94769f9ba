"""What `train` and `measure` enter into a folder's study.json, so that a folder of runs is a study of them.

`train` describes a folder as a study whose pieces are its trainings, and adds the runs of later calls. `measure` adds
every checkpoint that it has measured, also to a study that `beliefscope run` has made; there such pieces are marked as
added, and stay when the study goes on.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from beliefscope.errors import require
from beliefscope.store.files import Busy, lock, read_record, write_record
from beliefscope.store.layout import StudyFiles, is_file
from beliefscope.store.pieces import Piece
from beliefscope.store.schema import LONGEST_NAME
from beliefscope.store.study_folder import FORMAT, StudyFolder

SETTINGS = {"made by": "train"}
_POLL = 0.05  # seconds between two tries to hold the lock


class NewRun(NamedTuple):
    """A run to enter."""

    id: str
    environment: str
    cell: str
    seed: int
    group: str  # the same for runs that may share a curve: those that differ in cell and seed alone


def made_by_train(folder: Path) -> bool:
    """Has the folder a study.json that `train` wrote, or none yet?"""
    return not is_file(StudyFiles(folder).study) or StudyFolder(folder).description["settings"] == SETTINGS


def check_room(folder: Path, ids: Sequence[str]) -> None:
    """Refuse runs for the folder of a study that `beliefscope run` has made and that has others."""
    if made_by_train(folder):
        return
    stored = StudyFolder(folder)
    others = [id for id in ids if id not in {run.id for run in stored.runs}]
    require(
        not others,
        rule=f"{folder} holds the study {stored.description['name']!r} of `beliefscope run`, with its own runs alone",
        received=f"{len(others)} other runs",
        advice="choose another folder with --out",
    )


def add_runs(folder: Path, runs: Sequence[NewRun], optimum: Callable[[str], float | None]) -> None:
    """Enter trainings; a study that `beliefscope run` has made stays as it is.

    `optimum` gives J* for the id of a run, where it is known; it is asked once for each new environment.
    """
    if not made_by_train(folder):
        return

    def change(described: dict[str, Any]) -> None:
        there = described["runs"]
        for run in runs:
            if run.id in {each["id"] for each in there}:
                continue
            environment = _distinct(run, there)
            best = None if environment in {each["environment"] for each in there} else optimum(run.id)
            if best is not None:
                described["optimum"][environment] = best
            pieces = [Piece(kind="train", run=run.id, label="").describe()]
            there.append({**run._asdict(), "environment": environment, "pieces": pieces})

    _change(folder, change)


def add_measurement(folder: Path, piece: Piece) -> None:
    """Enter a checkpoint that was measured, unless study.json has it, or does not know its run."""
    if not is_file(StudyFiles(folder).study):
        return
    if any(known.name == piece.name for known in StudyFolder(folder).pieces):
        return

    def change(described: dict[str, Any]) -> None:
        mark = {} if described["settings"] == SETTINGS else {"added": True}
        for run in described["runs"]:
            if run["id"] == piece.run and piece.describe() not in run["pieces"]:
                run["pieces"].append({**piece.describe(), **mark})

    _change(folder, change)


def _change(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Read study.json, change it and write it, one process at a time; what is as it was is not written."""
    file = StudyFiles(folder).study
    while True:
        try:
            with lock(StudyFiles(folder).lock("study.json")):
                there = StudyFolder(folder).description if is_file(file) else None
                described = read_record(file) if there is not None else _empty(folder)
                change(described)
                if described != there:
                    write_record(file, described)
                return
        except Busy:  # another command is entering its results, which takes it no time
            time.sleep(_POLL)


def _empty(folder: Path) -> dict[str, Any]:
    name = folder.resolve().name
    if not name.strip() or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        name = "runs"
    head = {"format": FORMAT, "name": name, "description": "", "settings": SETTINGS}
    return {**head, "optimum": {}, "runs": []}


def _distinct(run: NewRun, there: Sequence[dict[str, Any]]) -> str:
    """The environment's name, numbered where other settings than this run's have it."""
    number, name = 1, run.environment
    while any(each["environment"] == name and each.get("group") != run.group for each in there):
        number += 1
        name = f"{run.environment} ({number})"
    return name
