"""The environments that a study's file can name: from the options of a table to a label and a POMDP."""

import dataclasses
from pathlib import Path
from typing import Any

from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze, Variant, read_pomdp
from beliefscope.study.table import one_of, read_table


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
        return _with_irrelevant(TMaze(self.length, self.stochasticity), self.irrelevant, variant)


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
        return read_pomdp(folder / self.path, horizon=self.horizon)


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
