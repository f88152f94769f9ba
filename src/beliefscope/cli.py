"""The command `beliefscope`: the only place where strings become objects.

A wrong value gets one sentence on standard error and exit status 2, an interruption says how to go on (130).
"""

import dataclasses
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from beliefscope.agent import DRQN, TrainingSpec, train
from beliefscope.agent.run_folder import RunFolder, check_companions
from beliefscope.agent.stored_spec import CELLS, read_spec
from beliefscope.errors import require
from beliefscope.measurement import MeasurementSpec, measure
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze, read_pomdp

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

    def build(self, learner: DRQN) -> POMDP:
        return _with_irrelevant(TMaze(self.length, self.stochasticity), self.irrelevant, learner)


@dataclasses.dataclass(frozen=True)
class MountainHikeOptions:
    """The Mountain Hike: find the goal on a map, seeing a noisy altitude."""

    varying: bool = False
    """Start with an unknown orientation: the paper's Varying Mountain Hike."""
    irrelevant: int = 0
    """d, irrelevant variables to observe beside it; the paper uses 1 and 4."""

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
        return read_pomdp(self.path, horizon=self.horizon)


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
    """One agent for each."""

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
        runs = train(specs, self.out)
        for run in runs:
            print(_summary(run))
        return 1 if any(run.failed() is not None for run in runs) else 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementOptions(MeasurementSpec):
    """How memory and belief are compared; the defaults are the paper's."""

    def __post_init__(self):
        """Checked by `build_spec`, where an error can be told."""

    def build_spec(self) -> MeasurementSpec:
        return MeasurementSpec(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class MeasureCommand:
    """Measure how much of the belief the memory of a trained run holds, checkpoint by checkpoint.

    The defaults are the paper's: MINE on 10,000 pairs, particle sets of 1,000. Measured checkpoints are kept in
    RUN/measure, and the same command goes on with the others. The first, middle and last also get the controls.
    beliefscope measure runs/first/runs/0123456789abcdef
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(name="run", metavar="RUN")]
    """The folder of a trained run, DIR/runs/<id>."""
    measurement: MeasurementOptions
    episodes: tuple[int, ...] = ()
    """Only the networks after so many episodes; by default all that are stored."""
    file: Path | None = None
    """The .pomdp file, if the run was trained on one."""

    def run(self) -> int:
        asked, spec = self.measurement.build_spec(), read_spec(self.run_folder, file=self.file)
        folder = self.run_folder.resolve().parent.parent
        require(
            RunFolder(folder, spec).path == self.run_folder.resolve(),
            rule=f"the folder of this run is named runs/{spec.id}",
            received=str(self.run_folder),
            advice="give it back its name",
        )
        for record in measure(RunFolder(folder, spec), asked, episodes=self.episodes or None):
            print(_line(record))
        return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Small products do not thread: on two threads training is no faster, and its bits depend on their number.
    os.environ.setdefault("NPROC", "1")
    command = tyro.extras.subcommand_cli_from_dict(
        {"train": TrainCommand, "measure": MeasureCommand},
        args=given,
        prog="beliefscope",
        description="Does my agent's memory encode the belief?",
        config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )
    try:
        return command.run()
    except (ValueError, OSError) as error:
        print(f"beliefscope: {_one_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        again = shlex.join(["beliefscope", *given])
        print(f"\nInterrupted. What is finished is saved; to go on, run again:\n  {again}", file=sys.stderr)
        return 130


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
        return f"seed {run.spec.seed}: diverged after {failed} episodes ({run.path})"
    last = run.metrics()[-1]
    return f"seed {run.spec.seed}: return {last['return']:.4f} after {last['episode']} episodes ({run.path})"


def _line(record: dict[str, Any]) -> str:
    """One checkpoint: what was shared, of how much, and what time alone shares."""
    parts = []
    for name in ("belief", "relevant", "irrelevant"):
        if name in record:
            found, entropy = record[name], record[name]["entropy"]
            of = f" of {entropy['bits']:.2f}" if entropy is not None and not entropy["flagged"] else ""
            time = f", time alone {found['controls']['time']['bits']:.2f}" if "controls" in found else ""
            given = f", given time {found['given time']:.2f}" if "controls" in found else ""
            parts.append(f"{name} {found['bits']:.2f} ± {found['standard_error']:.2f}{of} bits{time}{given}")
    return f"episode {record['episode']}: return {record['return']:.4f}, {'; '.join(parts)}"


def _one_sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
