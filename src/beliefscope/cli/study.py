"""`beliefscope run`, `show`, `list`, `status` and `export`: studies from the command line."""

import dataclasses
import os
import shlex
from pathlib import Path
from typing import Annotated, Literal

import jax
import tyro

from beliefscope.agent.stored_spec import CELLS
from beliefscope.errors import require
from beliefscope.measurement.measurement_spec import ESTIMATORS
from beliefscope.storage import write_atomic
from beliefscope.study import Study, StudyFolder, read_study, run_study, shipped_studies
from beliefscope.study.cost import cost, duration, show
from beliefscope.study.folder import count_states

StudyName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
_SHOWN = 10  # failures


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options:
    """Which study."""

    study: StudyName
    """A study of the paper, such as paper/tmaze-50 (`beliefscope list` shows all), or a .toml file of your own."""
    scale: Literal["quick", "small", "full"] = "quick"
    """How much of it: minutes, hours, or as in the paper."""
    variant: Literal["text", "code"] = "text"
    """The paper as printed, or as its authors' code has it."""

    def read(self) -> Study:
        return read_study(self.study, scale=self.scale, variant=self.variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCommand(_Options):
    """Run a study: train its agents, measure their memories against the belief, store traces.

    Every core gets a worker; a GPU gets up to ten, which share it by NVIDIA's MPS where that can be started.
    Stop it whenever you like: the same command goes on with what is missing.
    A first look, of minutes: beliefscope run paper/tmaze-50
    """

    out: Path | None = None
    """The folder for the results; runs/<study>-<scale>-<variant> by default."""
    workers: int | None = None
    """How many processes work at once; by default one on each core, or as many as a GPU has room for, ten at most."""
    backend: Literal["local", "ray"] = "local"
    """Where: on this machine, or on a Ray cluster (docs/cluster.md)."""
    address: str | None = None
    """The Ray cluster's, such as 10.0.0.1:6379."""
    only: tuple[str, ...] = ()
    """Only pieces whose titles contain one of these texts, such as GRU, "seed 0" or train."""
    yes: bool = False
    """Start at full scale without asking for confirmation."""

    def run(self) -> int:
        jax.config.update("jax_platforms", "cpu")  # in this process: a GPU's memory is for the workers
        study = self.read()
        folder = self.out or Path("runs", f"{study.name.replace('/', '-')}-{self.scale}-{self.variant}")
        require(
            folder.is_dir() or not folder.exists(),
            rule="--out is a folder, or nothing yet",
            received=str(folder),
            advice="choose another place for the results",
        )
        if self.scale == "full" and not self.yes:
            print(show(study))
            print("\nTo start it, add --yes.")
            return 0
        print(f"{study.name}, {self.scale}, {self.variant}: about {duration(cost(study.runs).seconds)} on one core")
        print(f"results: {folder}", flush=True)
        stored = run_study(
            study, folder, workers=self.workers, only=self.only, backend=self.backend, address=self.address
        )
        left = {"running", "missing"} & set(stored.states().values()) if not self.only else set()
        status = _report(stored) or (1 if left else 0)
        print(f"to look at it: {shlex.join(['beliefscope', 'report', str(folder)])}")
        return status


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShowCommand(_Options):
    """Show what a study consists of and what it costs, without running it."""

    def run(self) -> int:
        print(show(self.read()))
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListCommand:
    """List the studies of the paper, and what studies of your own can be made of."""

    def run(self) -> int:
        print("studies (beliefscope show STUDY):")
        width = max(map(len, shipped_studies()))
        for name, description in shipped_studies().items():
            print(f"  {name:<{width}}  {description}")
        print(
            "POMDPs:      t-maze (length, stochasticity, irrelevant), mountain-hike (varying, irrelevant), file (path)"
        )
        print(f"cells:       {', '.join(CELLS)}")
        for place, (name, meaning) in enumerate(ESTIMATORS.items()):
            print(f"{'' if place else 'estimators:':<12} {name} ({meaning})")
        print("A study of your own is a TOML file: docs/studies.md.")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class StatusCommand:
    """Say where a study stands: what is done, running, failed or missing, and why pieces failed."""

    folder: Folder
    """The study's folder."""

    def run(self) -> int:
        return _report(StudyFolder(self.folder))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """Write a study's table: one row for each measured checkpoint, ε, estimator and part of the belief."""

    folder: Folder
    """The study's folder."""
    format: Literal["csv"] = "csv"
    """Of the table."""
    out: Path | None = None
    """The file to write; standard output by default."""

    def run(self) -> int:
        text = StudyFolder(self.folder).csv()
        if self.out is None:
            print(text, end="")
            return 0
        require(
            self.out.is_file() or not self.out.exists(),
            rule="--out is a file, or nothing yet",
            received=str(self.out),
            advice="name a file, such as table.csv, or leave --out out for standard output",
        )
        write_atomic(Path(os.path.realpath(self.out)), text.encode())  # where a link leads; the link stays
        print(f"{text.count(chr(10)) - 1} rows in {self.out}")
        return 0


def _report(stored: StudyFolder) -> int:
    """Print how a study stands; 1 if anything failed."""
    states, failures = stored.states(), stored.failures()
    print(f"{stored.description['name']}: {count_states(states)}, of {len(states)} pieces in {stored.path}")
    for piece, error in failures[:_SHOWN]:
        print(f"  failed: {piece.title}: {error}")
    if len(failures) > _SHOWN:
        print(f"  … and {len(failures) - _SHOWN} more, in {stored.path / 'runs' / '*' / 'failures'}")
    diverged = [piece for piece in stored.pieces if states[piece.name] == "diverged"]
    for piece in diverged[:_SHOWN]:
        print(f"  diverged: {piece.label}: {stored.why_diverged(piece.run)}")
    return 1 if failures or diverged else 0
