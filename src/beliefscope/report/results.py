"""What a report draws from: a study's folder, read once, as curves over training.

`read_results(folder)` takes a `StudyFolder`, finished or not, and gives `Results`. A `Panel` holds the curves that may
share an axis: one environment, one part of the belief, one ε, one memory, one instrument (estimator, epochs, N and M).
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from beliefscope.report.printed import CELLS
from beliefscope.storage import Damaged, read_lines, read_record
from beliefscope.study.folder import State, StudyFolder
from beliefscope.study.piece import Run
from beliefscope.study.results import calibrations, columns

_NAMES = {"mine": "MINE", "mine-authors": "MINE (authors' code)", "atoms": "atoms bound"}
_ABOUT = ("environment", "cell", "seed", "run", "episode", "part", "memory", "estimator", "measurement", "warnings")
SHARES = "sufficiency"  # the estimator whose rows have shares in place of bits

Row = dict[str, Any]


class Instrument(NamedTuple):
    """How bits were measured; numbers of different instruments never share an axis."""

    estimator: str
    epochs: int | None
    N: int
    M: int | None

    def __str__(self) -> str:
        epochs = f", {self.epochs} epochs" if self.epochs is not None else ""
        particles = f", M = {self.M:,}" if self.M is not None else ""
        return f"{_NAMES.get(self.estimator, self.estimator)}{epochs}, N = {self.N:,}{particles}"


class Curve(NamedTuple):
    """One run through training: numbers of the table by column name, NaN where they were not measured.

    The entropy H(b) is NaN where it is flagged, too.
    """

    run: str
    seed: int
    episode: Int[np.ndarray, " checkpoints"]
    values: dict[str, Float[np.ndarray, " checkpoints"]]
    warnings: dict[int, str]  # what makes the number of a checkpoint doubtful, where anything does


class Panel(NamedTuple):
    """Curves that may share an axis, by cell."""

    environment: str
    part: str  # belief, relevant or irrelevant
    epsilon: float
    memory: str  # hidden: h; whole: all that is carried, (h, c) for the LSTM
    instrument: Instrument
    curves: dict[str, tuple[Curve, ...]]  # by cell, in the order of their seeds


class Calibrated(NamedTuple):
    """What an instrument reads of known information with the beliefs of one environment."""

    environment: str
    part: str
    instrument: Instrument
    num_atoms: int
    in_cells: bool
    points: tuple[tuple[float, float], ...]  # true and read bits, from the least


class Returns(NamedTuple):
    """The evaluations of one run: every tenth episode in the paper, more often than information is measured."""

    run: str
    seed: int
    episode: Int[np.ndarray, " evaluations"]
    values: Float[np.ndarray, " evaluations"]  # Ĵ


class Band(NamedTuple):
    """The mean over seeds, the least and the largest, at the episodes that all of them have."""

    episode: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    high: Float[np.ndarray, " points"]


class Results(NamedTuple):
    """All that a report needs of a study."""

    name: str
    description: str
    settings: dict[str, str]
    manifest: dict[str, Any]
    runs: tuple[Run, ...]
    specs: dict[str, dict[str, Any]]  # spec.json of each run that was begun
    states: dict[str, State]  # of every piece
    failures: tuple[tuple[str, str], ...]  # what failed or diverged, and why
    table: dict[str, list]  # as `beliefscope export` writes it
    panels: tuple[Panel, ...]  # of bits
    shares: tuple[Panel, ...]  # of sufficiency
    returns: dict[tuple[str, str], tuple[Returns, ...]]  # by environment and cell
    optimum: dict[str, float]  # J*, by environment, where it is known
    calibrations: tuple["Calibrated", ...] = ()

    @property
    def environments(self) -> list[str]:
        return list(dict.fromkeys(run.environment for run in self.runs))

    def panels_of(
        self, environment: str, *, part: str = "", epsilon: float | None = None, memory: str = "hidden"
    ) -> list[Panel]:
        """Those of one environment, by default of the histories nearest to the greedy policy's; `part` '' stands for
        the belief, or for its relevant part where it has parts."""
        parts = (part,) if part else ("belief", "relevant")
        return _chosen(self.panels, environment, parts, epsilon, memory)

    def shares_of(self, environment: str, *, parts: tuple[str, ...] = ("belief", "relevant")) -> list[Panel]:
        """The panels of sufficiency of one environment, on the histories nearest to the greedy policy's."""
        return _chosen(self.shares, environment, parts, None, "hidden")

    def cells_of(self, environment: str) -> list[str]:
        return in_order(run.cell for run in self.runs if run.environment == environment)


def _chosen(
    panels: Iterable[Panel], environment: str, parts: tuple[str, ...], epsilon: float | None, memory: str
) -> list[Panel]:
    here = [each for each in panels if (each.environment, each.memory) == (environment, memory) and each.part in parts]
    least = min((each.epsilon for each in here), default=0.0)
    return [each for each in here if each.epsilon == (least if epsilon is None else epsilon)]


def read_results(folder: StudyFolder) -> Results:
    """From the stored records alone; raises `Damaged` if one of them is not as it was written."""
    table = columns(folder.path, folder.runs)
    states = folder.states()
    failures = [(piece.title, why) for piece, why in folder.failures()]
    failures += [(run.pieces[0].label, folder.why_diverged(run.id)) for run in folder.runs if folder.diverged(run.id)]
    manifest = folder.path / "manifest.json"
    specs = {run.id: spec for run in folder.runs if (spec := _spec(folder, run)) is not None}
    return Results(
        name=str(folder.description["name"]),
        description=str(folder.description.get("description", "")),
        settings={str(name): str(value) for name, value in folder.description["settings"].items()},
        manifest=read_record(manifest) if manifest.is_file() else {},
        runs=tuple(folder.runs),
        specs=specs,
        states=states,
        failures=tuple(failures),
        table=table,
        panels=panels(table),
        shares=panels(table, of_shares=True),
        returns=_returns(folder),
        optimum={str(name): float(value) for name, value in folder.description.get("optimum", {}).items()},
        calibrations=tuple(map(_calibrated, calibrations(folder.path, folder.runs))),
    )


def _calibrated(row: Row) -> Calibrated:
    instrument = Instrument(row["estimator"], row["epochs"], row["N"], row["M"])
    points = tuple((point["truth"], point["bits"]) for point in row["points"])
    return Calibrated(row["environment"], row["part"], instrument, row["num_atoms"], row["in_cells"], points)


def panels(table: Mapping[str, list], *, of_shares: bool = False) -> tuple[Panel, ...]:
    """The curves of a table, in its order: those of bits, or those of sufficiency."""
    found: dict[tuple, dict[str, dict[tuple[int, str], list[Row]]]] = {}
    for values in zip(*table.values(), strict=True):
        row = dict(zip(table, values, strict=True))
        if (row["estimator"] == SHARES) != of_shares:
            continue
        instrument = Instrument(row["estimator"], row["epochs"], row["N"], row["M"])
        which = row["environment"], row["part"], float(row["epsilon"]), row["memory"], instrument
        found.setdefault(which, {}).setdefault(row["cell"], {}).setdefault((row["seed"], row["run"]), []).append(row)
    return tuple(
        Panel(
            *which,
            curves={
                cell: tuple(_curve(*who, rows) for who, rows in sorted(by_cell[cell].items()))
                for cell in in_order(by_cell)
            },
        )
        for which, by_cell in found.items()
    )


def are_pair(one: Panel, other: Panel) -> bool:
    """May the two parts of a belief share an axis? One instrument, but for particles: of those an exact filter, such as
    that of the irrelevant part, has none."""
    alike = (one.memory, one.epsilon, one.instrument[:3]) == (other.memory, other.epsilon, other.instrument[:3])
    particles = {one.instrument.M, other.instrument.M}
    return alike and (len(particles) == 1 or None in particles)


def band(curves: Iterable[Curve], column: str) -> Band:
    """Over the seeds that have this column; empty if none has."""
    return _band([(curve.episode, curve.values[column]) for curve in curves])


def return_band(returns: Iterable[Returns]) -> Band:
    """Of the evaluations."""
    return _band([(each.episode, each.values) for each in returns])


def failed_fits(curves: Iterable[Curve]) -> list[tuple[Curve, int, float]]:
    """The checkpoints whose fit failed, and the bits there: marked in every chart, and counted as they are."""
    return [
        (curve, int(episode), float(bits))
        for curve in curves
        for episode, bits in zip(curve.episode, curve.values["bits"], strict=True)
        if "failed fit" in curve.warnings.get(int(episode), "")
    ]


def in_order(cells: Iterable[str]) -> list[str]:
    """Without repetition, the paper's first."""
    found = list(dict.fromkeys(cells))
    return sorted(found, key=lambda cell: CELLS.index(cell) if cell in CELLS else len(CELLS))


def _band(curves: list[tuple[np.ndarray, np.ndarray]]) -> Band:
    known = [{int(e): float(v) for e, v in zip(*curve, strict=True) if math.isfinite(v)} for curve in curves]
    known = [values for values in known if values]
    shared = sorted(set.intersection(*map(set, known))) if known else []
    if not shared:
        return Band(np.zeros(0, int), *[np.zeros(0)] * 3)
    stack = np.array([[values[episode] for episode in shared] for values in known])
    return Band(np.array(shared, int), stack.mean(axis=0), stack.min(axis=0), stack.max(axis=0))


def _curve(seed: int, run: str, rows: list[Row]) -> Curve:
    """Of a checkpoint measured twice, with controls and without, what either says."""
    merged: dict[int, Row] = {}
    for row in rows:
        there = merged.setdefault(row["episode"], {})
        there.update({name: value for name, value in row.items() if there.get(name) is None})
    episodes = sorted(merged)
    names = [name for name in rows[0] if name not in _ABOUT]
    values = {name: np.array([_number(merged[episode][name]) for episode in episodes]) for name in names}
    values["entropy"] = np.where(values["entropy_flagged"] == 0, values["entropy"], np.nan)
    warnings = {episode: merged[episode]["warnings"] for episode in episodes if merged[episode]["warnings"]}
    return Curve(run, seed, np.array(episodes, int), values, warnings)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _spec(folder: StudyFolder, run: Run) -> dict[str, Any] | None:
    file = folder.path / "runs" / run.id / "spec.json"
    try:
        return json.loads(file.read_text()) if file.is_file() else None
    except ValueError as error:
        raise Damaged(file, "it is not JSON") from error


def _returns(folder: StudyFolder) -> dict[tuple[str, str], tuple[Returns, ...]]:
    """Of runs that are trained to their end; others have no results."""
    found: dict[tuple[str, str], list[Returns]] = {}
    for run in folder.runs:
        file = folder.path / "runs" / run.id / "metrics.jsonl"
        if not (file.parent / "trained.json").exists() or not file.is_file():
            continue
        lines = [line for line in read_lines(file) if line.get("return") is not None]
        episodes, values = (
            np.array([line[name] for line in lines], kind) for name, kind in (("episode", int), ("return", float))
        )
        found.setdefault((run.environment, run.cell), []).append(Returns(run.id, run.seed, episodes, values))
    return {which: tuple(sorted(each, key=lambda one: one.seed)) for which, each in found.items()}
