"""`beliefscope run` and `show`: what builds a study."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Literal

import jax
import tyro

from beliefscope.cli.look import describe_state
from beliefscope.errors import require
from beliefscope.study import Study, read_study, run_study
from beliefscope.study.cost import cost, duration, show

StudyName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]


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
        status = describe_state(stored) or (1 if left else 0)
        print(f"to look at it: {shlex.join(['beliefscope', 'report', str(folder)])}")
        return status


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShowCommand(_Options):
    """Show what a study consists of and what it costs, without running it."""

    def run(self) -> int:
        print(show(self.read()))
        return 0
