"""Stored records as they are read: each is checked against its kind (schema.py), and raises `Damaged` if it is no such
record, has changed since it was written, or belongs to another piece.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beliefscope.store.files import Damaged, Record, load_arrays, read_bytes, read_lines, read_record
from beliefscope.store.kinds import is_text, misfit_test
from beliefscope.store.layout import RunFiles, episode_of, is_there
from beliefscope.store.pieces import Piece
from beliefscope.store.schema import (
    LONGEST_NAME,
    BitsRecord,
    Evaluation,
    HikeSpec,
    InterventionsRecord,
    IrrelevantSpec,
    MazeSpec,
    SharesRecord,
    SpecRecord,
    StudyRecord,
    TableSpec,
    Trained,
)

_POMDPS: dict[str, Any] = {"TMaze": MazeSpec, "MountainHike": HikeSpec, "Irrelevant": IrrelevantSpec}


def check_spec(path: Path, spec: Any) -> Record:
    """The description of a run, if it has the entries that reports read."""
    pomdp = checked(path, spec, SpecRecord)["pomdp"]
    while True:
        name = pomdp.get("class")
        if not is_text(name):
            raise Damaged(path, "its entry pomdp.class is of the wrong kind")
        checked(path, pomdp, _POMDPS.get(name, TableSpec))
        if name != "Irrelevant":
            return spec
        pomdp = pomdp["pomdp"]


def checked(path: Path, record: Any, kind: Any) -> Record:
    """The record, if it is of this kind; else `Damaged` says where it is not."""
    wrong = misfit_test(kind)(record)
    if wrong is not None:
        where = f"its entry {wrong}" if wrong else "it"
        raise Damaged(path, f"{where} is of the wrong kind")
    return record


def check_study(path: Path, description: Any) -> Record:
    """The content of study.json; its name is printed, and folders are named after it."""
    if len(checked(path, description, StudyRecord)["name"]) > LONGEST_NAME:
        raise Damaged(path, f"its name has more than {LONGEST_NAME} characters")
    return description


def has_part(record: Record, part: str) -> bool:
    """Does the record of a measurement have this part of the belief, or "all" of it?"""
    return part in record if part != "all" else "belief" in record or {"relevant", "irrelevant"} <= record.keys()


def check_trace(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, if they are those of a trace of two episodes (measurement/greedy_episodes.py)."""
    lengths = arrays.get("lengths")
    steps = {
        name: array for name, array in arrays.items() if name != "lengths" and not name.startswith("decoded_cells")
    }
    asked: dict[str, Callable[[int], bool]] = dict.fromkeys(("values", "observations", "states", "memory"), (3).__eq__)
    asked |= dict.fromkeys(("actions", "rewards"), (2).__eq__)
    right = (
        lengths is not None
        and lengths.shape == (2,)
        and lengths.dtype.kind in "iu"
        and asked.keys() <= steps.keys()
        and all(test(steps[name].ndim) for name, test in asked.items())
        and all(array.dtype.kind in "iuf" for array in arrays.values())
        and any(name.startswith("belief") for name in steps)
        and all(array.ndim in (2, 3, 4) and array.shape[0] == 2 for array in steps.values())
        and len({array.shape[1] for array in steps.values()}) == 1
        and 0 <= lengths.min() <= lengths.max() <= steps["actions"].shape[1]
    )
    if not right:
        raise Damaged(path, "its arrays are not those of a trace")
    return arrays


def read_trace(file: Path) -> dict[str, np.ndarray]:
    """The arrays of a traced checkpoint."""
    return check_trace(file, load_arrays(file))


def read_interventions(file: Path, run: str, episode: int) -> Record:
    """The interventions on a checkpoint; `Damaged` if they are those on another one, even intact."""
    record = checked(file, read_record(file), InterventionsRecord)
    if (record["run"], record["episode"]) != (run, episode):
        raise Damaged(file, "it is the record of another checkpoint")
    return record


def read_trained(file: Path) -> Record:
    """The record of a finished training."""
    return checked(file, read_record(file), Trained)


def read_returns(run: RunFiles) -> dict[int, float | None]:
    """Ĵ by episode, of a finished run whose evaluations and description have not changed since."""
    digest = read_trained(run.trained)["files"].get(run.metrics.name)
    own = ((run.metrics, lambda digits: digits == digest), (run.spec, lambda digits: digits[:16] == run.folder.name))
    for path, fits in own:
        if not is_there(path):
            raise Damaged(path, "it is missing")
        if not fits(digest_of(path)):
            raise Damaged(path, "it has changed since its run was finished")
    lines = [checked(run.metrics, line, Evaluation) for line in read_lines(run.metrics)]
    return {line["episode"]: line["return"] for line in lines}


def read_measurement(piece: Piece, file: Path) -> Record:
    """The record of a measured checkpoint; `Damaged` if it belongs to another measurement, even an intact one."""
    assert piece.measurement is not None
    kind = SharesRecord if piece.measurement.estimator == "sufficiency" else BitsRecord
    record = checked(file, read_record(file), kind)
    expected = {"run": piece.run, "episode": piece.episode, **piece.measurement.describe()}
    written = {"memory": "hidden", **record}  # what it was before there was a choice
    if any(written.get(name) != value for name, value in expected.items()):
        raise Damaged(file, "it is the record of another measurement")
    if not has_part(record, piece.measurement.part):
        raise Damaged(file, "it lacks the part of the belief that was measured")
    return record


def stored_episodes(trained: Record) -> list[int]:
    """Of what a training says of its end: the episodes after which it stored a network, in order."""
    return sorted(episode for name in trained["files"] if (episode := episode_of(name)) is not None)


def digest_of(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(read_bytes(file)).hexdigest()
