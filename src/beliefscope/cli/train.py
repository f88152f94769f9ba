"""`beliefscope train`."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Literal

import tyro

from beliefscope.agent import DRQN, TrainingSpec, train
from beliefscope.agent.run_folder import RunFolder, check_companions
from beliefscope.agent.stored_spec import CELLS
from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike
from beliefscope.store.growing_study import check_room
from beliefscope.study.definition_tables import build_from_file, build_t_maze

CellName = Literal["LSTM", "GRU", "BRC", "NBRC", "MGU"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerOptions(DRQN):
    """How the agents learn; the defaults are those of the paper's appendix E."""

    cell: CellName = "GRU"  # pyright: ignore[reportAssignmentType]
    """The recurrent cell."""

    def __post_init__(self):
        """Checked by `build`, where an error can be told."""

    def build(self) -> DRQN:
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return DRQN(**{**settings, "cell": CELLS[self.cell]})


@dataclasses.dataclass(frozen=True)
class TMazeOptions:
    """The T-Maze: remember the first observation until the crossroads."""

    length: int = 50
    """L, the corridor's length; the paper uses 50 and 100."""
    stochasticity: float = 0.0
    """λ, how often a move goes astray; the paper's Stochastic T-Maze has 0.3."""
    irrelevant: int = 0
    """d, irrelevant variables to observe beside it; the paper uses 1 and 4."""
    label = None  # by the POMDP itself

    def build(self, learner: DRQN) -> POMDP:
        return _with_irrelevant(build_t_maze(self.length, self.stochasticity), self.irrelevant, learner)


@dataclasses.dataclass(frozen=True)
class MountainHikeOptions:
    """The Mountain Hike: find the goal on a map, seeing a noisy altitude."""

    varying: bool = False
    """Start with an unknown orientation: the paper's Varying Mountain Hike."""
    irrelevant: int = 0
    """d, irrelevant variables to observe beside it; the paper uses 1 and 4."""
    label = None

    def build(self, learner: DRQN) -> POMDP:
        hike = MountainHike.of_paper(learner.variant, varying=self.varying)
        return _with_irrelevant(hike, self.irrelevant, learner)


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """Any POMDP in Cassandra's .pomdp format."""

    path: Annotated[Path, tyro.conf.Positional]
    """The file."""
    horizon: int = 100
    """H, the number of actions after which an episode is cut."""

    def build(self, learner: DRQN) -> POMDP:
        return build_from_file(self.path, self.horizon)

    @property
    def label(self) -> str:
        return self.path.stem


Environment = (
    Annotated[TMazeOptions, tyro.conf.subcommand("t-maze")]
    | Annotated[MountainHikeOptions, tyro.conf.subcommand("mountain-hike")]
    | Annotated[FileOptions, tyro.conf.subcommand("file")]
)


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train recurrent Q-networks to act in a POMDP (DRQN), and store what they become.

    The defaults are the paper's: 5,000 episodes of four agents. Agents train side by side in one program. The same
    command goes on with what was interrupted. A first look, of a minute:
    beliefscope train t-maze --length 5 --num-episodes 300 --out runs/first
    """

    environment: Environment
    learner: LearnerOptions
    out: Path
    """The folder for the runs; made if it is not there."""
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    """One agent for each: 0 1 2 3, or 0,1,2,3."""
    lengthen: Path | None = None
    """A folder with the same runs of fewer episodes, from which training goes on: the same bits as from the start."""

    def run(self) -> int:
        learner = self.learner.build()
        pomdp = self.environment.build(learner)
        require(
            len(self.seeds) > 0,
            rule="--seeds takes at least one whole number",
            received="none",
            advice="the paper trains four agents: --seeds 0 1 2 3",
        )
        require(
            self.out.is_dir() or not self.out.exists(),
            rule="--out is a folder, or nothing yet",
            received=str(self.out),
            advice="choose another place for the runs",
        )
        specs = [TrainingSpec(pomdp=pomdp, learner=learner, seed=seed) for seed in self.seeds]
        check_companions(self.out, specs[0])
        check_room(self.out, [spec.id for spec in specs])
        runs = train(specs, self.out, environment=self.environment.label, lengthen=self.lengthen)
        for run in runs:
            print(_summary(run))
        print(f"to measure their memories: {shlex.join(['beliefscope', 'measure', str(self.out)])}")
        return 1 if any(run.failed() is not None for run in runs) else 0


def _with_irrelevant(pomdp: POMDP, size: int, learner: DRQN) -> POMDP:
    require(
        size >= 0,
        rule="--irrelevant is a whole number of at least 0",
        received=size,
        advice="the paper uses 1 and 4, and 0 leaves the environment as it is",
    )
    return Irrelevant.of_paper(pomdp, size, learner.variant) if size else pomdp


def _summary(run: RunFolder) -> str:
    failed = run.failed()
    if failed is not None:
        kept = f", and its last finite network is that after {run.due()[-1]}" if run.due() else ""
        return f"seed {run.spec.seed}: diverged after {failed} episodes{kept} ({run.path})"
    last = run.metrics()[-1]
    return f"seed {run.spec.seed}: return {last['return']:.4f} after {last['episode']} episodes ({run.path})"
