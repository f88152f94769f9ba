"""One tidy table of a study: a row for each measured checkpoint, ε, estimator and part of the belief.

It is read from the stored records alone, in the order of the study, and holds neither times nor hosts: the same study
gives the same bytes, however often it was interrupted and whoever ran it. Runs that diverged have no rows.
"""

import csv
import hashlib
import io
from functools import partial
from pathlib import Path
from typing import Any

from beliefscope.measurement.doubts import stored_warnings
from beliefscope.measurement.measurement_spec import estimator_name
from beliefscope.storage import Damaged, read_lines, read_record
from beliefscope.study.piece import Piece, Run

Row = dict[str, Any]
_CONTROLS = ("shuffled", "untrained", "time", "observation", "recent", "memory and time")
_SCORES = tuple(f"{of}{score}" for of in ("", "baseline_") for score in ("cross_entropy", "kl", "total_variation"))
_NOISES = ("0.1", "0.01", "0.001")
# Given the time, of the better decoder with the ends of its interval, on the policy's own histories and on those of the
# run's last policy; by family; plain; of the time alone; the bits there are to be read; of the controls.
SUFFICIENCY = (
    *(f"sufficiency{where}{end}" for where in ("", "_last") for end in ("", "_low", "_high")),
    *(f"sufficiency{where}_{what}" for where in ("", "_last") for what in ("linear", "MLP", "plain", "time", "bits")),
    *(f"sufficiency_{control}" for control in ("untrained", "observation", "recent", "shuffled")),
)
ATOMS = ("atoms_bits", "atoms_standard_error", "atoms_number", "atoms_rows")
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
    "N",  # the pairs that the estimator was given: MINE trains on half of them
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
    *SUFFICIENCY,
    *ATOMS,
    "warnings",  # what makes the row's number doubtful, with "; " between them
    *(f"{probe}_{score}" for probe in ("linear", "MLP") for score in _SCORES),
    "run",
    "measurement",
)


def columns(folder: Path, runs: list[Run]) -> dict[str, list[Any]]:
    """The table, column by column; what was not measured is None."""
    rows = [row for run in runs for row in _rows(folder, run)]
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def calibrations(folder: Path, runs: list[Run]) -> list[Row]:
    """What estimators read of known information with an environment's own beliefs, where that was measured."""
    found = []
    for run in runs:
        for piece in run.pieces:
            if not piece.calibrate or not piece.result(folder).exists():
                continue
            assert piece.measurement is not None
            record = read_record(piece.result(folder))
            check_record(piece, piece.result(folder), record)
            how = {"estimator": piece.measurement.estimator, "epochs": piece.measurement.num_epochs}
            how |= {"environment": run.environment, "N": piece.measurement.num_rows}
            parts = [part for part in ("belief", "relevant", "irrelevant") if "calibration" in record.get(part, {})]
            found += [{**how, "part": part, "M": record[part]["M"], **record[part]["calibration"]} for part in parts]
    return found


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
        how = {"N": piece.measurement.num_rows, "epochs": piece.measurement.num_epochs}
        how |= {"memory": piece.measurement.memory, "measurement": piece.result(folder).stem}
        make = _sufficiency_row if piece.measurement.estimator == "sufficiency" else _row
        how["return"] = returns[piece.episode]
        parts = [part for part in ("belief", "relevant", "irrelevant") if part in record]
        rows += [{**about, "part": part, **make(record, part), **how} for part in parts]
    return _with_warnings(rows)


def _with_warnings(rows: list[Row]) -> list[Row]:
    """A number of bits is held against what the atoms bound proves on the same policy's histories."""
    same = ("episode", "epsilon", "memory", "part")
    proven = {
        tuple(row[name] for name in same): row["atoms_bits"] - 2 * row["atoms_standard_error"]
        for row in rows
        if row.get("atoms_bits") is not None
    }
    return [
        row | {"warnings": "; ".join(row["warnings"](proven.get(tuple(row[name] for name in same))))} for row in rows
    ]


def check_record(piece: Piece, file: Path, record: Row) -> None:
    """Raise `Damaged` if this is another measurement's record, whole as it may be."""
    assert piece.measurement is not None
    expected = {"run": piece.run, "episode": piece.episode, **piece.measurement.describe()}
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
    row = {name: found[name] for name in ("bits", "standard_error", "M", "ceiling", "near_ceiling")}
    row |= _about(record, part) | {"warnings": partial(stored_warnings, found)}
    if "controls" in found:
        row |= {f"control_{name.replace(' ', '_')}": found["controls"][name]["bits"] for name in _CONTROLS}
        row["given_time"] = found["given time"]
    if found.get("decoded") is not None:
        row |= {f"{probe}_{score}": found["decoded"][probe][score] for probe in ("linear", "MLP") for score in _SCORES}
    if "exact" in record and part == "belief":
        row |= {f"exact_{noise}": record["exact"][f"σ = {noise}"] for noise in _NOISES}
        row["exact_entropy"] = record["exact"]["entropy"]
    return row


def _about(record: Row, part: str) -> Row:
    """What rows of all estimators have."""
    found = record[part]
    row = {"episode": record["episode"], "epsilon": record["epsilon"], "estimator": estimator_name(record["estimator"])}
    row |= {"sampled_return": record["return"], **found["health"]}
    if found["entropy"] is not None:
        row |= {"entropy": found["entropy"]["bits"], "entropy_flagged": found["entropy"]["flagged"]}
    return row


def _sufficiency_row(record: Row, part: str) -> Row:
    found = record[part]
    row = {"M": found["M"], **_about(record, part)}
    for where, measured in (("", found["own"]), ("_last", found["last"])):
        name, given = f"sufficiency{where}", measured["given_time"]
        row |= {f"{name}{end}": given["best"] and given["best"][k] for k, end in enumerate(("", "_low", "_high"))}
        row |= {f"{name}_linear": _value(given["linear"]), f"{name}_MLP": _value(given["mlp"])}
        row |= {f"{name}_plain": _value(measured["plain"]["best"]), f"{name}_time": _value(measured["time_alone"])}
        row[f"{name}_bits"] = given["available"]
    for control, measured in found.get("controls", {}).items():
        row[f"sufficiency_{control}"] = _value(measured["given_time"]["best"])
    atoms, doubts = found["atoms"], [*found["own"]["warnings"]]
    if atoms is not None:
        row |= {f"atoms_{name}": atoms[name] for name in ("bits", "standard_error")}
        row |= {"atoms_number": atoms["num_atoms"], "atoms_rows": atoms["num_judged"]}
        doubts += atoms["warnings"]
    return row | {"warnings": lambda proven: doubts}


def _value(ratio: list[float] | None) -> float | None:
    return None if ratio is None else ratio[0]
