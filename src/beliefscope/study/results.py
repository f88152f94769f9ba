"""One tidy table of a study: a row for each measured checkpoint, ε, estimator and part of the belief.

It is read from the stored records alone, in the order of the study, and holds neither times nor hosts: the same study
gives the same bytes, however often it was interrupted and whoever ran it. Runs that diverged have no rows.
"""

import csv
import dataclasses
import hashlib
import io
from pathlib import Path
from typing import Any

from beliefscope.storage import Damaged, read_lines, read_record
from beliefscope.study.piece import Piece, Run

Row = dict[str, Any]
_CONTROLS = ("shuffled", "untrained", "time", "observation", "recent", "memory and time")
_SCORES = tuple(f"{of}{score}" for of in ("", "baseline_") for score in ("cross_entropy", "kl", "total_variation"))
_NOISES = ("0.1", "0.01", "0.001")
COLUMNS = (
    "environment",
    "cell",
    "seed",
    "episode",
    "epsilon",
    "estimator",
    "epochs",
    "part",
    "memory",
    "N",
    "M",
    "return",  # Ĵ, of the evaluation's greedy episodes
    "sampled_return",  # of the episodes that the pairs are from
    "bits",
    "standard_error",
    "ceiling",
    "near_ceiling",
    "entropy",
    "entropy_flagged",
    "effective_sample_size",
    "impossible",
    *(f"control_{name.replace(' ', '_')}" for name in _CONTROLS),
    "given_time",
    *(f"exact_{noise}" for noise in _NOISES),
    "exact_entropy",
    *(f"{probe}_{score}" for probe in ("linear", "MLP") for score in _SCORES),
    "run",
    "measurement",
)


def columns(folder: Path, runs: list[Run]) -> dict[str, list[Any]]:
    """The table, column by column; what was not measured is None."""
    rows = [row for run in runs for row in _rows(folder, run)]
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def as_csv(table: dict[str, list[Any]]) -> str:
    """The table as text; numbers are written so that they read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows([_cell(value) for value in row] for row in zip(*table.values(), strict=True))
    return text.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _rows(folder: Path, run: Run) -> list[Row]:
    done = [piece for piece in run.pieces if piece.kind == "measure" and piece.result(folder).exists()]
    if not done or not (folder / "runs" / run.id / "trained.json").exists():
        return []
    metrics = _checked_metrics(folder / "runs" / run.id)
    returns = {line["episode"]: line["return"] for line in read_lines(metrics)}
    about = {"environment": run.environment, "cell": run.cell, "seed": run.seed, "run": run.id}
    rows = []
    for piece in done:
        assert piece.measurement is not None
        record = read_record(piece.result(folder))
        check_record(piece, piece.result(folder), record)
        if piece.episode not in returns:
            raise Damaged(metrics, f"the evaluation after {piece.episode} episodes is missing")
        for part in ("belief", "relevant", "irrelevant"):
            if part in record:
                how = {"epochs": piece.measurement.num_epochs, "memory": piece.measurement.memory}
                how["measurement"] = piece.result(folder).stem
                rows.append({**about, **how, "part": part, "return": returns[piece.episode], **_row(record, part)})
    return rows


def check_record(piece: Piece, file: Path, record: Row) -> None:
    """Raise `Damaged` if this is another measurement's record, whole as it may be."""
    assert piece.measurement is not None
    expected = {"run": piece.run, "episode": piece.episode, **dataclasses.asdict(piece.measurement)}
    written = {"memory": "hidden", **record}  # what it was before there was a choice
    if any(written.get(name) != value for name, value in expected.items()):
        raise Damaged(file, "it is the record of another measurement")


def _checked_metrics(run: Path) -> Path:
    """The evaluations of a finished run, if they and its description are those it was finished with."""
    file, spec = run / "metrics.jsonl", run / "spec.json"
    digest = read_record(run / "trained.json").get("files", {}).get(file.name)
    for path, fits in ((file, lambda digits: digits == digest), (spec, lambda digits: digits[:16] == run.name)):
        if not path.is_file():
            raise Damaged(path, "it is not there any more")
        if not fits(hashlib.sha256(path.read_bytes()).hexdigest()):
            raise Damaged(path, "it is not the one that its run was finished with")
    return file


def _row(record: Row, part: str) -> Row:
    found = record[part]
    row = {name: found[name] for name in ("bits", "standard_error", "N", "M", "ceiling", "near_ceiling")}
    row |= {name: record[name] for name in ("episode", "epsilon", "estimator")}
    row |= {"sampled_return": record["return"], **found["health"]}
    if found["entropy"] is not None:
        row |= {"entropy": found["entropy"]["bits"], "entropy_flagged": found["entropy"]["flagged"]}
    if "controls" in found:
        row |= {f"control_{name.replace(' ', '_')}": found["controls"][name]["bits"] for name in _CONTROLS}
        row["given_time"] = found["given time"]
    if found.get("decoded") is not None:
        row |= {f"{probe}_{score}": found["decoded"][probe][score] for probe in ("linear", "MLP") for score in _SCORES}
    if "exact" in record and part == "belief":
        row |= {f"exact_{noise}": record["exact"][f"σ = {noise}"] for noise in _NOISES}
        row["exact_entropy"] = record["exact"]["entropy"]
    return row
