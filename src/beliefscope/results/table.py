"""One table of results: a row for each measured checkpoint, ε, estimator and part of the belief.

It is read from the stored records of one or several study folders, or from exported tables. The rows are in the order
of the studies and hold neither times nor hosts. So the same study gives the same bytes, however often it was
interrupted and wherever it ran. Runs that diverged have no rows. A table is a Polars DataFrame; values that were not
measured are null.

Studies share runs, and a study may be done in parts, in several folders. A run that is in two folders counts once, with
the pieces of both. If both have the same piece, or have trained the run, they must agree.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars

from beliefscope.errors import require
from beliefscope.store.files import Damaged, Record, read_bytes, read_record
from beliefscope.store.layout import RunFiles, is_file
from beliefscope.store.pieces import STORED, Piece, Run, estimator_name
from beliefscope.store.records import read_measurement, read_returns, read_trained
from beliefscope.store.schema import LONGEST_NAME, PARTS
from beliefscope.store.study_folder import StudyFolder
from beliefscope.warning_signs import stored_warnings


class Source(NamedTuple):
    """A run, and where its files lie."""

    run: Run
    files: RunFiles  # of its training
    done: dict[str, Path]  # the result of each piece that is done, by its name

    @property
    def is_trained(self) -> bool:
        return is_file(self.files.trained)

    @property
    def is_whole(self) -> bool:
        """Is the record of its training intact?"""
        try:
            self.returns()
        except Damaged:
            return False
        return True

    def returns(self) -> dict[int, float | None]:
        """Ĵ by episode."""
        return read_returns(self.files)

    def measurement(self, piece: Piece) -> Record:
        return read_measurement(piece, self.done[piece.name])


def sources_of(folders: Sequence[StudyFolder]) -> list[Source]:
    """Every run of the folders once, in the order of its first appearance."""
    found: dict[str, Source] = {}
    for folder in folders:
        for run in folder.runs:
            done = {piece.name: piece.result(folder.path) for piece in run.pieces if folder.is_done(piece)}
            source = Source(run, folder.results_of(run.id), done)
            found[run.id] = _united(found[run.id], source) if run.id in found else source
    return list(found.values())


def _united(first: Source, second: Source) -> Source:
    """Of a piece that both have done, the first's file, unless that is damaged and the second's is not."""
    done = {**second.done, **first.done}
    for piece in first.run.pieces:
        if piece.name in first.done.keys() & second.done.keys():
            done[piece.name] = _one_of(piece, first.done[piece.name], second.done[piece.name])
    names = {piece.name for piece in first.run.pieces}
    pieces = [*first.run.pieces, *(piece for piece in second.run.pieces if piece.name not in names)]
    whole = (source.files for source in (first, second) if source.is_trained and source.is_whole)
    trained = (source.files for source in (first, second) if source.is_trained)
    files = next(whole, next(trained, first.files))
    return Source(first.run._replace(pieces=pieces), files, done)


def _one_of(piece: Piece, one: Path, other: Path) -> Path:
    """One of two files of a piece, which must say the same; traces are drawn and not counted, and not compared."""
    if piece.kind == "trace":
        return one
    contents = [_content(file, piece) for file in (one, other)]
    if None not in contents and contents[0] != contents[1]:
        raise ValueError(
            f"folders that hold the same piece hold the same result, but {piece.title!r} differs between {one} and "
            f"{other}; leave out one of the folders."
        )
    return other if contents[0] is None and contents[1] is not None else one


def _content(file: Path, piece: Piece) -> object:
    """The content of a record, without the versions it was made with; None if it is damaged."""
    try:
        if piece.kind == "train":
            return {"metrics": read_trained(file)["files"].get("metrics.jsonl")}
        record = read_record(file) if piece.measurement is None else read_measurement(piece, file)
        return {name: value for name, value in record.items() if name != "made_with"}
    except Damaged:  # whoever reads it says so
        return None


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
    "bits_low",  # the ends of the interval, of estimators that have one
    "bits_high",
    "ceiling",
    "near_ceiling",
    "entropy",
    "entropy_flagged",
    "effective_sample_size",
    "impossible",
    *(f"control_{name.replace(' ', '_')}" for name in _CONTROLS),
    "given_time",
    "given_time_error",
    *(f"exact_{noise}" for noise in _NOISES),
    "exact_entropy",
    *SUFFICIENCY,
    *ATOMS,
    "warnings",  # what makes the row's number doubtful, with "; " between them
    *(f"{probe}_{score}" for probe in ("linear", "MLP") for score in _SCORES),
    "run",
    "measurement",
)
_TEXTS = ("environment", "cell", "estimator", "part", "memory", "warnings", "run", "measurement")
_COUNTS = ("seed", "episode", "epochs", "N", "M", "atoms_number", "atoms_rows")
_FLAGS = ("near_ceiling", "entropy_flagged")
_NEEDED = ("environment", "cell", "seed", "episode", "epsilon", "estimator", "part", "N", "return", "bits", "run")
_NEVER_EMPTY = ("environment", "cell", "seed", "episode", "epsilon", "estimator", "part", "run")
_MOST = 2**28  # bytes of a table
SCHEMA: dict[str, Any] = {
    **dict.fromkeys(COLUMNS, polars.Float64),
    **dict.fromkeys(_TEXTS, polars.String),
    **dict.fromkeys(_COUNTS, polars.Int64),
    **dict.fromkeys(_FLAGS, polars.Boolean),
}


def make_table(rows: Iterable[Row]) -> polars.DataFrame:
    """The rows as a table; missing values are null."""
    return polars.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows], SCHEMA)


def table_of(sources: Iterable[Source], damaged: list[Damaged] | None = None) -> polars.DataFrame:
    """The table of stored runs. A damaged record raises `Damaged`, or is left out and added to the list `damaged`."""
    return make_table(row for source in sources for row in _rows(source, damaged))


def calibrations(sources: Iterable[Source]) -> list[Row]:
    """What estimators read where the information with an environment's own beliefs is known, if that was measured."""
    found = []
    for source in sources:
        for piece in source.run.pieces:
            if not piece.calibrate or piece.name not in source.done:
                continue
            assert piece.measurement is not None
            try:
                record = source.measurement(piece)
            except Damaged:  # the table says so
                continue
            how = {"estimator": piece.measurement.estimator, "epochs": piece.measurement.num_epochs}
            how |= {"environment": source.run.environment, "N": piece.measurement.num_rows}
            parts = [part for part in PARTS if "calibration" in record.get(part, {})]
            found += [{**how, "part": part, "M": record[part]["M"], **record[part]["calibration"]} for part in parts]
    return found


def as_csv(table: polars.DataFrame) -> str:
    """The table as text; numbers are written so that they read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_written(value) for value in row] for row in table.iter_rows())
    return text.getvalue()


def read_csv(file: Path) -> polars.DataFrame:
    """A table that `beliefscope export` has written, also by versions with older names of estimators."""
    try:
        text = read_bytes(file.resolve(), _MOST).decode()
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows, columns = list(reader), reader.fieldnames or ()
    except (OSError, RuntimeError, UnicodeDecodeError, csv.Error, Damaged) as error:
        raise ValueError(
            f"an exported table is a CSV file, but {str(file)!r} cannot be read ({error}); export the study again."
        ) from error
    require(
        set(_NEEDED) <= set(columns) <= set(COLUMNS),
        rule="an exported table has the columns that `beliefscope export` writes",
        received=f"{file} without {sorted(set(_NEEDED) - set(columns))}, with {sorted(set(columns) - set(COLUMNS))}",
        advice="export the study again",
    )
    require(
        len(set(columns)) == len(columns),
        rule="an exported table has each column once",
        received=f"{file} with {next((name for name in columns if list(columns).count(name) > 1), '')!r} twice",
        advice="export the study again",
    )
    require(
        all(None not in row for row in rows),
        rule="an exported table has a column for each of its values",
        received=f"a row of {file} with more values than columns",
        advice="export the study again",
    )
    return make_table(_renamed({name: _read(file, name, value) for name, value in row.items()}) for row in rows)


def _renamed(row: Row) -> Row:
    """Older tables have other names for the two estimators of the paper, and half of the pairs that these are given."""
    row.setdefault("memory", "hidden")
    if row["estimator"] in STORED.values() and row["N"] is not None:
        row["N"] *= 2
    return row | {"estimator": estimator_name(row["estimator"]), "warnings": row.get("warnings") or ""}


def _written(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _read(file: Path, name: str, text: str | None) -> Any:
    try:
        if not text and name not in _NEVER_EMPTY:
            return None
        return _READERS[SCHEMA[name]](name, text or "")
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"the column {name} of an exported table has values of its kind, but {file} has "
            f"{str(text)[:LONGEST_NAME]!r}; export the study again."
        ) from error


def _read_text(name: str, text: str) -> str:
    """A name is short, and holds nothing that a terminal would obey."""
    if not text or not text.isprintable() or (len(text) > LONGEST_NAME and name != "warnings"):
        raise ValueError(name)
    return text


def _read_count(name: str, text: str) -> int:
    count = int(text)
    if abs(count) >= 2**53:
        raise ValueError(name)
    return count


def _read_number(name: str, text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(name)
    return number


_READERS: dict[Any, Callable[[str, str], Any]] = {
    polars.Boolean: lambda name, text: {"True": True, "False": False}[text],
    polars.String: _read_text,
    polars.Int64: _read_count,
    polars.Float64: _read_number,
}


def _rows(source: Source, damaged: list[Damaged] | None) -> list[Row]:
    done = [piece for piece in source.run.pieces if piece.kind == "measure" and piece.name in source.done]
    if not done or not source.is_trained:
        return []
    run = source.run
    about = {"environment": run.environment, "cell": run.cell, "seed": run.seed, "run": run.id}
    rows = []
    try:
        returns = source.returns()
    except Damaged as error:
        return _left_out(error, damaged)
    for piece in done:
        assert piece.measurement is not None
        try:
            record = source.measurement(piece)
            if piece.episode not in returns:
                raise Damaged(source.files.metrics, f"the evaluation after {piece.episode} episodes is missing")
        except Damaged as error:
            _left_out(error, damaged)
            continue
        how = {"N": piece.measurement.num_rows, "epochs": piece.measurement.num_epochs}
        how |= {"memory": piece.measurement.memory, "measurement": source.done[piece.name].stem}
        make = _sufficiency_row if piece.measurement.estimator == "sufficiency" else _row
        how["return"] = returns[piece.episode]
        rows += [{**about, "part": part, **make(record, part), **how} for part in PARTS if part in record]
    return _with_warnings(rows)


def _left_out(error: Damaged, damaged: list[Damaged] | None) -> list[Row]:
    if damaged is None:
        raise error
    damaged.append(error)
    return []


def _with_warnings(rows: list[Row]) -> list[Row]:
    """A number of bits is compared with what the atoms bound proves on the same policy's histories."""
    same = ("episode", "epsilon", "memory", "part")
    proven = {
        tuple(row[name] for name in same): row["atoms_bits"] - 2 * row["atoms_standard_error"]
        for row in rows
        if row.get("atoms_bits") is not None
    }
    return [
        row | {"warnings": "; ".join(row["warnings"](proven.get(tuple(row[name] for name in same))))} for row in rows
    ]


def _row(record: Row, part: str) -> Row:
    found = record[part]
    row = {name: found[name] for name in ("bits", "standard_error", "M", "ceiling", "near_ceiling")}
    row |= _about(record, part) | {"warnings": partial(stored_warnings, found)}
    row["bits_low"], row["bits_high"] = found.get("interval", (None, None))
    if "controls" in found:
        row |= {f"control_{name.replace(' ', '_')}": found["controls"][name]["bits"] for name in _CONTROLS}
        row["given_time"] = found.get("given time")
        errors = (found["controls"][name]["standard_error"] for name in ("memory and time", "time"))
        row["given_time_error"] = math.hypot(*errors)
    if found.get("decoded") is not None:
        row |= {f"{probe}_{score}": found["decoded"][probe][score] for probe in ("linear", "MLP") for score in _SCORES}
    return row


def _about(record: Row, part: str) -> Row:
    """What rows of all estimators have."""
    found = record[part]
    row = {"episode": record["episode"], "epsilon": record["epsilon"], "estimator": estimator_name(record["estimator"])}
    row |= {"sampled_return": record["return"], **found["health"]}
    if found["entropy"] is not None:
        row |= {"entropy": found["entropy"]["bits"], "entropy_flagged": found["entropy"]["flagged"]}
    if "exact" in record and part == "belief":
        row |= {f"exact_{noise}": record["exact"][f"σ = {noise}"] for noise in _NOISES}
        row["exact_entropy"] = record["exact"]["entropy"]
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
