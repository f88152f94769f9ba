"""The environments that a study's file can name: from the options of a table to a label and a POMDP."""

import dataclasses
from pathlib import Path
from typing import Any

from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze, Variant, read_pomdp
from beliefscope.study.table import one_of, read_table


def build_t_maze(length: int, stochasticity: float) -> TMaze:
    """A T-Maze with the paper's horizon, where there is one."""
    require(
        stochasticity != 1,
        rule="the horizon of a T-Maze, ⌈3 L / (1 − λ)⌉, needs a stochasticity λ below 1",
        received=stochasticity,
        advice="the paper uses 0 and 0.3; in Python TMaze(length, 1, horizon=…) has a horizon of its own",
    )
    return TMaze(length, stochasticity)


def build_from_file(path: Path, horizon: int) -> POMDP:
    """The POMDP of a .pomdp file."""
    require(
        path.is_file(),
        rule="the path of a POMDP leads to a .pomdp file",
        received=str(path.absolute()),
        advice="that is a folder: name a file in it" if path.is_dir() else "nothing is there: correct the path",
    )
    return read_pomdp(path, horizon=horizon)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TMazeEnvironment:
    """`pomdp = "t-maze"`."""

    length: int = 50  # L
    stochasticity: float = 0.0  # λ
    irrelevant: int = 0  # d

    @property
    def label(self) -> str:
        astray = self.stochasticity
        name = f"Stochastic T-Maze, L = {self.length}, λ = {astray:.12g}" if astray else f"T-Maze, L = {self.length}"
        return name + _suffix(self.irrelevant)

    def build(self, variant: Variant, folder: Path) -> POMDP:
        return _with_irrelevant(build_t_maze(self.length, self.stochasticity), self.irrelevant, variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MountainHikeEnvironment:
    """`pomdp = "mountain-hike"`."""

    varying: bool = False
    irrelevant: int = 0  # d

    @property
    def label(self) -> str:
        return ("Varying Mountain Hike" if self.varying else "Mountain Hike") + _suffix(self.irrelevant)

    def build(self, variant: Variant, folder: Path) -> POMDP:
        return _with_irrelevant(MountainHike.of_paper(variant, varying=self.varying), self.irrelevant, variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileEnvironment:
    """`pomdp = "file"`: any POMDP in Cassandra's format."""

    path: str = ""  # relative to the study's file
    horizon: int = 100  # H

    @property
    def label(self) -> str:
        return Path(self.path).stem

    def build(self, variant: Variant, folder: Path) -> POMDP:
        require(
            self.path != "",
            rule="an environment with pomdp = 'file' has a path, relative to the study's file",
            received=self.path,
            advice="write path = 'my.pomdp'",
        )
        return build_from_file(folder / self.path, self.horizon)


Environment = TMazeEnvironment | MountainHikeEnvironment | FileEnvironment
KINDS: dict[str, type[Environment]] = {
    "t-maze": TMazeEnvironment,
    "mountain-hike": MountainHikeEnvironment,
    "file": FileEnvironment,
}


def read_environment(table: dict[str, Any]) -> Environment:
    """The environment that a table of the study's file describes."""
    name = table.get("pomdp", "")
    require(
        isinstance(name, str) and name != "",
        rule="an environment has a key pomdp, which is " + " or ".join(map(repr, KINDS)),
        received=table,
        advice="write pomdp = 't-maze', say",
    )
    kind = KINDS[one_of(name, KINDS, what="pomdp")]
    keys = {field.name: field.type for field in dataclasses.fields(kind)}
    given = read_table(table, what=f"a {name} environment", keys={"pomdp": str, **keys})
    return kind(**{key: value for key, value in given.items() if key != "pomdp"})


def _suffix(size: int) -> str:
    return f" + {size} irrelevant" if size else ""


def _with_irrelevant(pomdp: POMDP, size: int, variant: Variant) -> POMDP:
    return Irrelevant.of_paper(pomdp, size, variant) if size else pomdp
