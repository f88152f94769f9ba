"""`beliefscope audit` and `beliefscope bits`. Agents are never loaded here: their files are pickles (SECURITY.md)."""

import dataclasses
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from beliefscope.auditing import Audit, audit
from beliefscope.errors import nearest, require
from beliefscope.information import mutual_information
from beliefscope.pomdp import CLASSICS, HORIZON, POMDP, classic
from beliefscope.study.definition_tables import MountainHikeEnvironment, TMazeEnvironment, build_from_file


@dataclasses.dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """Audit an agent from its log: how much of the belief does its memory hold? Writes DIR/report.html.

    A log is an .npz or .parquet file with observations, actions, memories and the ends of episodes (docs/audit.md):
    beliefscope audit log.npz --pomdp t-maze --length 20 --out runs/audit
    """

    log: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
    """The recorded episodes."""
    pomdp: str
    """t-maze, mountain-hike, a classic (tiger, cheese-maze, crying-baby), or the path of a .pomdp file."""
    out: Path
    """The folder for the page and the numbers. It is created if it does not exist."""
    length: int = 50
    """L, the length of a T-Maze."""
    stochasticity: float = 0.0
    """λ, how often a move of a T-Maze goes astray."""
    varying: bool = False
    """Of a Mountain Hike: start with an unknown orientation."""
    irrelevant: int = 0
    """d, irrelevant variables beside a T-Maze or a Mountain Hike."""
    horizon: int | None = None
    """H, the horizon of a classic or of a .pomdp file."""
    bits: bool = True
    """Also estimate the bits, I(h; b), which takes a minute or two."""

    def run(self) -> int:
        require(
            self.out.is_dir() or not self.out.exists(),
            rule="--out is a folder, or a path that does not exist yet",
            received=str(self.out),
            advice="choose another place for the audit",
        )
        found: Audit = audit(self.log, self._pomdp(), bits=self.bits, calibrated=self.bits)
        print(found)
        print(found.report(self.out))
        return 0

    def _pomdp(self) -> POMDP:
        if self.pomdp == "t-maze":
            maze = TMazeEnvironment(length=self.length, stochasticity=self.stochasticity, irrelevant=self.irrelevant)
            return maze.build("text")
        if self.pomdp == "mountain-hike":
            return MountainHikeEnvironment(varying=self.varying, irrelevant=self.irrelevant).build("text")
        if self.pomdp in CLASSICS:
            return classic(self.pomdp, horizon=self.horizon)
        known = ["t-maze", "mountain-hike", *CLASSICS]
        require(
            self.pomdp.endswith(".pomdp"),
            rule=f"--pomdp is one of {', '.join(known)}, or the path of a .pomdp file",
            received=self.pomdp,
            advice=nearest(self.pomdp, known, otherwise="name one of these"),
        )
        return build_from_file(Path(self.pomdp), HORIZON if self.horizon is None else self.horizon)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BitsCommand:
    """Say how many bits two arrays share: .npy files with a row for each pair, x [N, d] and y [N, d] or [N, M, d].

    beliefscope bits memory.npy belief.npy
    """

    x: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="X.npy")]
    """The first array."""
    y: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="Y.npy")]
    """The second array."""

    def run(self) -> int:
        print(mutual_information(_array(self.x), _array(self.y)))
        return 0


def _array(path: Path) -> np.ndarray:
    """An array on disk; nothing is unpickled."""
    require(
        path.is_file(),
        rule="an array is an .npy file",
        received=str(path),
        advice="that is a folder: name a file in it" if path.is_dir() else "nothing is there: correct the path",
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # of Python's parser, about an odd header
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # whatever NumPy's reader raises on a file that is none, or was altered
        raise ValueError(
            f"an array is an .npy file of numbers, but got {str(path)!r}, which is none; write it by np.save."
        ) from error
    require(
        isinstance(found, np.ndarray),
        rule="an array is an .npy file",
        received=str(path),
        advice="write each array by np.save to a file of its own",
    )
    return np.array(found)
