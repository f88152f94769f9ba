"""`beliefscope list`, `status`, `report`, `claims`, `export` and `archive`: what looks at stored results. No JAX."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from beliefscope.cli import plain
from beliefscope.errors import require
from beliefscope.paper import CELLS
from beliefscope.progress import count
from beliefscope.store.files import Damaged, write_atomic
from beliefscope.store.growing_study import made_by_train
from beliefscope.store.layout import StudyFiles
from beliefscope.store.pieces import ESTIMATORS
from beliefscope.store.study_folder import StudyFolder, archive, count_states
from beliefscope.studies import shipped_studies

Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
Folders = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR", name="folders")]
_SHOWN = 10  # failures
_TO_DO = ("missing", "running", "failed")  # states of pieces


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListCommand:
    """List the shipped studies, and the POMDPs, cells and estimators for studies of your own."""

    def run(self) -> int:
        print("studies (beliefscope show STUDY):")
        width = max(map(len, shipped_studies()))
        for name, description in shipped_studies().items():
            print(f"  {name:<{width}}  {description}")
        print(
            "POMDPs:      t-maze (length, stochasticity, irrelevant), mountain-hike (varying, irrelevant), "
            "file (path, horizon)"
        )
        print(f"cells:       {', '.join(CELLS)}")
        for place, (name, meaning) in enumerate(ESTIMATORS.items()):
            print(f"{'' if place else 'estimators:':<12} {name} ({meaning})")
        print("A study of your own is a TOML file: docs/studies.md.")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class StatusCommand:
    """Show the state of a study: what is done, running, failed or missing, and why pieces failed."""

    folder: Folder
    """The study's folder."""
    check: bool = False
    """Also read every finished file, and name the damaged ones."""

    def run(self) -> int:
        stored = StudyFolder(self.folder)
        status = describe_state(stored)
        damaged = _damaged(stored) if self.check else []
        for error in damaged[:_SHOWN]:
            print(f"  damaged: {plain(str(error.path))}: {error.why}")
        if self.check:
            print(f"{len(damaged)} of the files that are done are damaged")
        return 1 if damaged else status


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Write the report of studies: report.html, a page that needs no network, and figures/ as SVG, PDF and PNG.

    An unfinished study has a report too, which says what is missing. Nothing is measured. Several folders make one
    report, in which a run that two of them share counts once. An example:
    beliefscope report runs/paper-tmaze-50-quick-text
    """

    folders: Folders
    """The folders of one or several studies."""
    out: Path | None = None
    """The folder for the report, by default the study's own. Several studies need it."""

    def run(self) -> int:
        from beliefscope.report import write_results
        from beliefscope.results import read_results

        _check_given(self.folders)
        require(
            self.out is not None or len(self.folders) == 1,
            rule="the report of several studies has a folder of its own",
            received=f"{len(self.folders)} folders without --out",
            advice="add --out DIR",
        )
        out = self.out or self.folders[0]
        require(
            self.out is None or self.out.is_dir() or not os.path.lexists(self.out),
            rule="--out is a folder, or a path that does not exist yet",
            received=str(self.out),
            advice="choose another place for the report",
        )
        results = read_results(self.folders)
        page, figures = write_results(results, out)
        missing = sum(state in _TO_DO for state in results.states.values())
        _say_what_is_missing(missing, results.damaged, self.folders)
        where = f"{count(len(figures), 'figure')} in {StudyFiles(out).figures}"
        print(f"{page.resolve()} ({page.stat().st_size / 1e6:.1f} MB), and {where}")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimsCommand:
    """Print the paper's claims, each with its rule, the numbers of these studies and the verdict."""

    folders: Folders
    """The folders of studies, or tables that `beliefscope export` has written (.csv)."""

    def run(self) -> int:
        from beliefscope.claims import as_text, ledger
        from beliefscope.results import read_table
        from beliefscope.results.curves import panels
        from beliefscope.results.read import optimum_of

        _check_given(self.folders)
        stored, damaged = _studies(self.folders), list[Damaged]()
        table = read_table(self.folders, damaged)
        _say_what_is_missing(_missing(stored), damaged, self.folders)
        print(as_text(ledger(panels(table), optimum=optimum_of(stored))), end="")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """Write the table of studies: one row for each measured checkpoint, ε, estimator and part of the belief."""

    folders: Folders
    """The folders of one or several studies, or tables that were exported before (.csv)."""
    format: Literal["csv"] = "csv"
    """The format of the table."""
    out: Path | None = None
    """The file to write, by default standard output."""

    def run(self) -> int:
        from beliefscope.results import as_csv, read_table

        _check_given(self.folders)
        damaged = list[Damaged]()
        table = read_table(self.folders, damaged)
        _say_what_is_missing(_missing(_studies(self.folders)), damaged, self.folders)
        if self.out is None:
            print(as_csv(table), end="")
            return 0
        for folder in self.folders:
            _check_no_result(self.out, StudyFiles(folder))
        require(
            self.out.is_file() or not self.out.exists(),
            rule="--out is a file, or a path that does not exist yet",
            received=str(self.out),
            advice="name a file, such as table.csv, or omit --out for standard output",
        )
        require(
            Path(os.path.realpath(self.out)).parent.is_dir(),
            rule="--out is a file in a folder that exists",
            received=str(self.out),
            advice="make the folder first, or choose another place",
        )
        write_atomic(Path(os.path.realpath(self.out)), as_csv(table).encode())  # where a link leads; the link stays
        print(f"{len(table)} rows in {self.out}")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArchiveCommand:
    """Delete what only training needs: the networks and resume states of finished runs. All results stay.

    Every command still reads the folder. If a later measurement needs a deleted network, `beliefscope run` trains that
    run again first, and says so; a folder that `beliefscope train` has made is not trained again. An example:
    beliefscope archive runs/demo --keep-ends
    """

    folder: Folder
    """The study's folder."""
    keep_ends: bool = False
    """Keep the first and the last network of each run."""

    def run(self) -> int:
        done = archive(StudyFolder(self.folder), keep_ends=self.keep_ends)
        kept = ", and kept the first and the last network of each" if self.keep_ends else ""
        if done.runs:
            print(f"dropped the networks of {count(done.runs, 'finished run')}{kept}: {done.freed / 1e6:.1f} MB freed")
        else:
            print("nothing was dropped: there is no finished run with networks to drop")
        if done.needed:
            of = count(done.needed, "run")
            print(f"kept all networks of {of}, since pieces that are not done need them: finish the study first")
        return 0


def describe_state(stored: StudyFolder) -> int:
    """Print how a study stands; 1 if anything failed."""
    states, failures = stored.states(), stored.failures()
    name = plain(str(stored.description["name"]))
    print(f"{name}: {count_states(states)}, of {len(states)} pieces in {stored.path}")
    for piece, error in failures[:_SHOWN]:
        print(f"  failed: {piece.title}: {plain(error)}")
    if len(failures) > _SHOWN:
        print(f"  … and {len(failures) - _SHOWN} more, in {stored.files.run('*').failures}")
    diverged = [piece for piece in stored.pieces if states[piece.name] == "diverged"]
    for piece in diverged[:_SHOWN]:
        print(f"  diverged: {piece.label}: {plain(stored.why_diverged(piece.run))}")
    return 1 if failures or diverged else 0


def _check_given(folders: Sequence[Path]) -> None:
    require(
        len(folders) > 0,
        rule="the command takes at least one study's folder",
        received="none",
        advice="name a folder that `beliefscope run` or `beliefscope train` has made",
    )


def _studies(paths: Sequence[Path]) -> list[StudyFolder]:
    return [StudyFolder(path) for path in paths if not _is_table(path)]


def _check_no_result(out: Path, study: StudyFiles) -> None:
    real = Path(os.path.realpath(out))
    own = (study.study, study.manifest, study.locks, study.folder / "runs", study.aside("", 0).parent)
    require(
        not any(real.is_relative_to(os.path.realpath(path)) for path in own),
        rule="a table is not written over what a study's folder holds",
        received=str(out),
        advice="choose another place for the table",
    )


def _is_table(path: Path) -> bool:
    from beliefscope.results.read import is_table

    return is_table(path)


def _missing(stored: Sequence[StudyFolder]) -> int:
    done: set[str] = set()
    missing: set[str] = set()
    for folder in stored:
        for name, state in folder.states().items():
            (missing if state in _TO_DO else done).add(name)
    return len(missing - done)


def _say_what_is_missing(missing: int, damaged: Sequence[Damaged], folders: Sequence[Path]) -> None:
    """On standard error, so that a table on standard output stays a table."""
    parts = [f"{count(missing, 'piece')} {_are(missing)} missing"] if missing else []
    if damaged:
        number = len(damaged)
        parts += [
            f"{count(number, 'record')} {_are(number)} damaged and left out, such as {plain(str(damaged[0].path))}"
        ]
    if parts:
        trained = any(made_by_train(folder) for folder in folders if not _is_table(folder))
        maker = "repeat `beliefscope train` and `measure` to make" if trained else "`beliefscope run` makes"
        advice = f"{maker} {'it' if missing + len(damaged) == 1 else 'them'}"
        print(f"beliefscope: {', and '.join(parts)}; {advice}.", file=sys.stderr)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _damaged(stored: StudyFolder) -> list[Damaged]:
    found = []
    for piece in stored.pieces:
        if stored.is_done(piece):
            try:
                stored.check(piece)
            except Damaged as error:
                found.append(error)
    return found
