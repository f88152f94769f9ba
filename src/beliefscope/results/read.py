"""Everything that a report needs from one or several studies, read once.

`read_results` takes study folders, finished or not; `read_table` takes exported tables as well.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars

from beliefscope.errors import require
from beliefscope.results.correlations import Correlated, correlated
from beliefscope.results.curves import Calibrated, Instrument, Panel, Returns, bound_panels, in_order, panels
from beliefscope.results.table import COLUMNS, Row, Source, calibrations, read_csv, sources_of, table_of
from beliefscope.store.files import Damaged, Record, read_json
from beliefscope.store.layout import is_there
from beliefscope.store.pieces import Piece, Run, training_name
from beliefscope.store.records import check_spec, read_interventions
from beliefscope.store.study_folder import State, StudyFolder

_SAME = ("run", "measurement", "part")  # name a row
_BEST_STATE: tuple[State, ...] = ("done", "running", "missing", "failed", "diverged", "left out")


@dataclasses.dataclass(frozen=True, eq=False)
class Results:
    """One or several studies."""

    name: str
    description: str
    settings: dict[str, str]
    calls: list[dict[str, Any]]  # that made the folders
    runs: list[Run]
    specs: dict[str, dict[str, Any]]  # spec.json of each run that was begun
    states: dict[str, State]  # of every piece
    failures: list[tuple[str, str]]  # what failed or diverged, and why
    table: polars.DataFrame  # as `beliefscope export` writes it
    panels: tuple[Panel, ...]  # of bits
    shares: tuple[Panel, ...]  # of sufficiency
    returns: dict[tuple[str, str], tuple[Returns, ...]]  # by environment and cell
    optimum: dict[str, float]  # J*, by environment, where it is known
    calibrations: tuple[Calibrated, ...] = ()
    traces: tuple[tuple[Run, Piece, Path], ...] = ()  # that are stored
    interventions: tuple[tuple[Run, Record], ...] = ()  # on checkpoints, as they are stored
    damaged: list[Damaged] = dataclasses.field(default_factory=list)  # what is left out of every number

    @property
    def environments(self) -> list[str]:
        return list(dict.fromkeys(run.environment for run in self.runs))

    @cached_property
    def correlations(self) -> list[Correlated]:
        """How return and information correlate: for every panel of greedy histories, over all cells and for each."""
        return [
            row
            for environment in self.environments
            for panel in self.panels_of(environment)
            for row in self.correlations_of(panel)
        ]

    @cached_property
    def _correlated(self) -> dict[tuple, list[Correlated]]:
        return {}

    def correlations_of(self, panel: Panel) -> list[Correlated]:
        """Over all cells, then for each; computed once."""
        which = panel[:-1]
        if which not in self._correlated:
            self._correlated[which] = correlated(panel)
        return self._correlated[which]

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


def read_results(paths: Sequence[str | Path]) -> Results:
    """From the stored records alone. Damaged records are left out and listed."""
    folders = [StudyFolder(path) for path in paths]
    require(
        len(folders) > 0,
        rule="results are read from at least one study's folder",
        received=paths,
        advice="name a folder that `beliefscope run` or `beliefscope train` has made",
    )
    sources, damaged = sources_of(folders), list[Damaged]()
    table = table_of(sources, damaged)
    shares, bits = panels(table, of_shares=True), panels(table)
    states = _states(folders)
    settings: dict[str, dict[str, None]] = {}  # a name's values, each once
    for folder in folders:
        for name, value in folder.description["settings"].items():
            settings.setdefault(name, {})[value] = None
    return Results(
        name=" + ".join(dict.fromkeys(folder.description["name"] for folder in folders)),
        description=folders[0].description.get("description", "") if len(folders) == 1 else "",
        settings={name: ", ".join(values) for name, values in settings.items()},
        calls=[call for folder in folders for call in _calls(folder)],
        runs=[source.run for source in sources],
        specs={source.run.id: spec for source in sources if (spec := _spec(source, damaged)) is not None},
        states=states,
        failures=[failure for folder in folders for failure in _failures(folder, states)],
        table=table,
        panels=(*bound_panels(shares, bits), *bits),
        shares=shares,
        returns=_all_returns(sources),
        optimum=optimum_of(folders),
        calibrations=tuple(map(_calibrated, calibrations(sources))),
        traces=tuple(
            (run, piece, done[piece.name])
            for run, _, done in sources
            for piece in run.pieces
            if piece.kind == "trace" and piece.name in done
        ),
        interventions=tuple(_interventions(sources, damaged)),
        damaged=damaged,
    )


def read_table(paths: Sequence[str | Path], damaged: list[Damaged] | None = None) -> polars.DataFrame:
    """The rows of study folders and of exported tables, which end in .csv; each measurement once.

    A damaged record raises `Damaged`, or is left out and added to the list `damaged`.
    """
    files = [Path(path) for path in paths]
    folders = [path for path in files if not is_table(path)]
    stored = table_of(sources_of([*map(StudyFolder, folders)]), damaged)
    tables = {str(path): read_csv(path) for path in files if is_table(path)}
    return _joined({", ".join(map(str, folders)): stored, **tables}) if tables else stored


def is_table(path: Path) -> bool:
    """Is this an exported table, and no study's folder?"""
    return path.suffix == ".csv" and not path.is_dir()


def _joined(tables: Mapping[str, polars.DataFrame]) -> polars.DataFrame:
    """The rows of tables by name, each measurement once; a number that one table lacks is taken from the next."""
    found = polars.concat([table.with_columns(table=polars.lit(name)) for name, table in tables.items()])
    # A warning may rest on other rows of its table.
    numbers = [name for name in COLUMNS if name != "warnings"]
    found = found.unique(numbers, keep="first", maintain_order=True).with_row_index("place")
    twice = found.filter(polars.struct(_SAME).is_duplicated() & polars.col("measurement").is_not_null())
    if twice.is_empty():
        return found.select(COLUMNS)
    groups = twice.group_by(_SAME, maintain_order=True)
    differing = groups.agg(polars.col(set(numbers) - set(_SAME)).drop_nulls().n_unique() > 1)
    for row in differing.filter(polars.any_horizontal(polars.exclude(_SAME))).iter_rows(named=True):
        _refuse(twice.filter(*(polars.col(name) == row[name] for name in _SAME)))
    merged = groups.agg(polars.exclude(_SAME).drop_nulls().first()).select(found.columns)
    once = found.filter(~polars.col("place").is_in(twice["place"].implode()))
    return polars.concat([once, merged]).sort("place").select(COLUMNS)


def _refuse(rows: polars.DataFrame) -> None:
    """Rows of one measurement differ: raise an error that says where."""
    for name in COLUMNS:
        values = [(row[name], row["table"]) for row in rows.iter_rows(named=True) if row[name] is not None]
        if name not in (*_SAME, "warnings") and len({value for value, _ in values}) > 1:
            (one, here), (other, there) = values[0], next(each for each in values if each[0] != values[0][0])
            which = rows.row(0, named=True)
            title = "{environment}, {cell}, seed {seed}, episode {episode}, {estimator}".format(**which)
            raise ValueError(
                f"tables that hold the same measurement hold the same numbers, but of {title}, {name} is {one} in "
                f"{here} and {other} in {there}; leave out one of them."
            )


def optimum_of(folders: Iterable[StudyFolder]) -> dict[str, float]:
    """J* by environment, where it is known."""
    return {name: value for folder in folders for name, value in folder.description.get("optimum", {}).items()}


def _calibrated(row: Row) -> Calibrated:
    instrument = Instrument(row["estimator"], row["epochs"], row["N"], row["M"])
    points = tuple((point["truth"], point["bits"]) for point in row["points"])
    return Calibrated(row["environment"], row["part"], instrument, row["num_atoms"], row["in_cells"], points)


def _chosen(
    panels: Iterable[Panel], environment: str, parts: tuple[str, ...], epsilon: float | None, memory: str
) -> list[Panel]:
    here = [each for each in panels if (each.environment, each.memory) == (environment, memory) and each.part in parts]
    least = min((each.epsilon for each in here), default=0.0)
    return [each for each in here if each.epsilon == (least if epsilon is None else epsilon)]


def _states(folders: Sequence[StudyFolder]) -> dict[str, State]:
    """The state of a piece is that in the folder where it has got furthest."""
    found: dict[str, State] = {}
    for folder in folders:
        for name, state in folder.states().items():
            best = found.get(name, state)
            found[name] = best if _BEST_STATE.index(best) < _BEST_STATE.index(state) else state
    return found


def _failures(folder: StudyFolder, states: Mapping[str, State]) -> list[tuple[str, str]]:
    """What failed or diverged there, and is done in no other folder."""
    failed = [(piece.title, why) for piece, why in folder.failures() if states[piece.name] != "done"]
    diverged = [run for run in folder.runs if folder.diverged(run.id) and states[training_name(run.id)] != "done"]
    return failed + [(run.label, folder.why_diverged(run.id)) for run in diverged]


def _calls(folder: StudyFolder) -> list[dict[str, Any]]:
    try:
        return folder.manifest()
    except Damaged:  # it tells of the past, and no number rests on it
        return []


def _spec(source: Source, damaged: list[Damaged]) -> dict[str, Any] | None:
    file = source.files.spec
    if not is_there(file):
        return None
    try:
        return check_spec(file, json.loads(read_json(file)))
    except Damaged as error:
        found = error
    except (ValueError, RecursionError):
        found = Damaged(file, "it is not JSON")
    if file not in {each.path for each in damaged}:
        damaged.append(found)
    return None


def _interventions(sources: Iterable[Source], damaged: list[Damaged]) -> Iterator[tuple[Run, Record]]:
    for run, _, done in sources:
        for piece in run.pieces:
            if piece.kind == "intervene" and piece.episode is not None and piece.name in done:
                try:
                    yield run, read_interventions(done[piece.name], run.id, piece.episode)
                except Damaged as error:
                    damaged.append(error)


def _all_returns(sources: Iterable[Source]) -> dict[tuple[str, str], tuple[Returns, ...]]:
    """By environment and cell; of runs that are trained to their end, since others have no results."""
    found: dict[tuple[str, str], list[Returns]] = {}
    for source in sources:
        known = _returns(source)
        if known is not None:
            found.setdefault((source.run.environment, source.run.cell), []).append(known)
    return {which: tuple(sorted(each, key=lambda one: one.seed)) for which, each in found.items()}


def _returns(source: Source) -> Returns | None:
    if not source.is_trained:
        return None
    try:
        known = {episode: value for episode, value in source.returns().items() if value is not None}
    except Damaged:  # the table says so
        return None
    return Returns(source.run.id, source.run.seed, np.array([*known], int), np.array([*known.values()], float))
