"""`beliefscope train`, `measure`, `run` and `show`: what trains agents and measures them, one by one or as a study."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import tyro

from beliefscope.agent import DRQN, TrainingSpec, train
from beliefscope.agent.run_folder import CELLS, RunFolder, check_companions, read_spec
from beliefscope.cli.look import describe_state
from beliefscope.errors import require
from beliefscope.information import Ratio
from beliefscope.measurement import measure
from beliefscope.pomdp import HORIZON, POMDP, Variant, label_of
from beliefscope.store import MeasurementSpec, RunFiles, StudyFiles, StudyFolder, is_file
from beliefscope.store.growing_study import check_room
from beliefscope.store.pieces import asked_estimator, run_label
from beliefscope.study import Study, read_study, run_study
from beliefscope.study.cost import show
from beliefscope.study.definition_tables import MountainHikeEnvironment, TMazeEnvironment, build_from_file
from beliefscope.warning_signs import stored_warnings

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
class FileOptions:
    """Any POMDP in Cassandra's .pomdp format."""

    path: Annotated[Path, tyro.conf.Positional]
    """The file."""
    horizon: int = HORIZON
    """H, the number of actions after which an episode is cut."""

    def build(self, variant: Variant) -> POMDP:
        return build_from_file(self.path, self.horizon)

    @property
    def label(self) -> str:
        return self.path.stem


Environment = (
    Annotated[TMazeEnvironment, tyro.conf.subcommand("t-maze")]
    | Annotated[MountainHikeEnvironment, tyro.conf.subcommand("mountain-hike")]
    | Annotated[FileOptions, tyro.conf.subcommand("file")]
)


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train recurrent Q-networks to act in a POMDP (DRQN), and store the networks.

    The defaults are the paper's: 5,000 episodes of four agents. Agents train side by side in one program. The same
    command continues an interrupted training. An example that takes a minute:
    beliefscope train t-maze --length 5 --num-episodes 300 --out runs/first
    """

    environment: Environment
    learner: LearnerOptions
    out: Path
    """The folder for the runs. It is created if it does not exist."""
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    """One agent is trained for each seed: 0 1 2 3, or 0,1,2,3."""
    lengthen: Path | None = None
    """A folder with the same runs of fewer episodes: training continues them, with the same bits as from the start."""

    def run(self) -> int:
        learner = self.learner.build()
        pomdp = self.environment.build(learner.variant)
        require(
            len(self.seeds) > 0,
            rule="--seeds takes at least one whole number",
            received="none",
            advice="the paper trains four agents: --seeds 0 1 2 3",
        )
        require(
            self.out.is_dir() or not self.out.exists(),
            rule="--out is a folder, or a path that does not exist yet",
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


def _summary(run: RunFolder) -> str:
    failed = run.failed()
    if failed is not None:
        kept = f", and its last finite network is that after {run.due()[-1]}" if run.due() else ""
        return f"seed {run.spec.seed}: diverged after {failed} episodes{kept} ({run.path})"
    last = run.metrics()[-1]
    return f"seed {run.spec.seed}: return {last['return']:.4f} after {last['episode']} episodes ({run.path})"


_SHOWN = 12  # checkpoints that are written out


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementOptions(MeasurementSpec):
    """How memory and belief are compared; the defaults are the paper's."""

    def __post_init__(self):
        """Checked by `build_spec`, where an error can be told."""

    def build_spec(self) -> MeasurementSpec:
        spec = MeasurementSpec(**dataclasses.asdict(self))
        return dataclasses.replace(spec, estimator=asked_estimator(spec.estimator))  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class MeasureCommand:
    """Measure how much of the belief the memory of a trained run holds, checkpoint by checkpoint.

    The defaults are the paper's: MINE on 10,000 pairs, particle sets of 1,000. Measured checkpoints are kept in
    DIR/runs/<id>/measure, and the same command continues with the others. The first, middle and last also get the
    controls. `beliefscope report DIR` shows them all. An example:
    beliefscope measure runs/first
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """The folder of trained runs, or that of one of them, DIR/runs/<id>."""
    measurement: MeasurementOptions
    episodes: tuple[int, ...] = ()
    """Measure only the networks after these numbers of episodes, by default all stored ones."""
    file: Path | None = None
    """The .pomdp file of a run, where an older version trained the run and did not store the file with it."""

    def run(self) -> int:
        asked = self.measurement.build_spec()
        runs = sorted((self._run(path) for path in self._paths()), key=lambda run: run.spec.seed)
        for run in runs:
            print(_about(run), flush=True)
            for record in measure(run, asked, episodes=self.episodes or None):
                print(_line(record), flush=True)
        print(f"to look at it: {shlex.join(['beliefscope', 'report', str(_study_of(self.folder))])}")
        return 0

    def _paths(self) -> list[Path]:
        """The folders of the runs."""
        if is_file(RunFiles(self.folder).spec):
            return [self.folder]
        return [files.folder for files in StudyFiles(self.folder).runs()] or [self.folder]

    def _run(self, path: Path) -> RunFolder:
        spec = read_spec(path, file=self.file)
        run = RunFolder(_study_of(path.resolve()), spec)
        require(
            run.path == path.resolve(),
            rule=f"the folder of this run is named runs/{spec.id}",
            received=str(path),
            advice="give it back its name",
        )
        return run


def _study_of(path: Path) -> Path:
    """The folder of the study in which a run lies, or the one that was given."""
    return path.resolve().parent.parent if is_file(RunFiles(path).spec) else path


def _about(run: RunFolder) -> str:
    """Which run, and which checkpoints there are."""
    stored, due = run.checkpoints(), run.due()
    gone = sorted(set(due) - set(stored))
    state = f"; not there: {_listed(gone)}" if gone else ""
    known = StudyFolder(run.folder).runs if is_file(run.files.study.study) else []
    label = run_label(label_of(run.spec.pomdp), run.spec.learner.cell.__name__, run.spec.seed)
    name = next((each.label for each in known if each.id == run.spec.id), label)
    return f"{name} ({run.spec.id}): networks after {_listed(stored)} episodes{state}"


def _listed(episodes: Sequence[int]) -> str:
    """All of a few, the ends of many."""
    if len(episodes) <= _SHOWN:
        return ", ".join(map(str, episodes)) or "no"
    return f"{episodes[0]}, {episodes[1]}, … {episodes[-1]} ({len(episodes)} networks)"


def _line(record: dict[str, Any]) -> str:
    """One checkpoint: its return, then of each part of the belief what was measured, and what makes it doubtful."""
    say = _share if record["estimator"] == "sufficiency" else _bits
    parts = [f"{name} {say(record[name])}" for name in ("belief", "relevant", "irrelevant") if name in record]
    return f"episode {record['episode']}: return {record['return']:.4f}, {'; '.join(parts)}"


def _bits(found: dict[str, Any]) -> str:
    """What was shared, of how much, and what time alone shares."""
    entropy = found["entropy"]
    of = f" of {entropy['bits']:.2f}" if entropy is not None and not entropy["flagged"] else ""
    time = f", time alone {found['controls']['time']['bits']:.2f}" if "controls" in found else ""
    given = f", given time {found['given time']:.2f}" if "controls" in found else ""
    warnings = "".join(f" (warning: {warning})" for warning in stored_warnings(found, None))
    return f"{found['bits']:.2f} ± {found['standard_error']:.2f}{of} bits{time}{given}{warnings}"


def _share(found: dict[str, Any]) -> str:
    """Sufficiency on the policy's own histories and on the last policy's, and what the atoms bound proves."""

    def ratio(measured: dict[str, Any]) -> str:
        given = measured["given_time"]
        return str(Ratio(*given["best"])) if given["best"] else f"no share of {given['available']:.2f} bits"

    atoms = f", at least {found['atoms']['bits']:.2f} bits of I(h; b)" if found["atoms"] else ""
    warnings = "".join(f" (warning: {warning})" for warning in found["own"]["warnings"])
    return f"sufficiency {ratio(found['own'])}, on the last policy's histories {ratio(found['last'])}{atoms}{warnings}"


StudyName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _StudyOptions:
    """Which study."""

    study: StudyName
    """A study of the paper, such as paper/tmaze-50 (`beliefscope list` shows all), or a .toml file of your own."""
    scale: Literal["quick", "small", "full"] = "quick"
    """The size of the study: quick takes minutes, small takes hours, full is the paper's."""
    variant: Literal["text", "code"] = "text"
    """text: the paper as printed; code: the code of its authors."""

    def read(self) -> Study:
        return read_study(self.study, scale=self.scale, variant=self.variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCommand(_StudyOptions):
    """Run a study: train its agents, measure their memories against the belief, store traces.

    Each core gets one worker. A GPU gets up to ten, which share it by NVIDIA's MPS where that can be started.
    You can stop the command at any time: the same command continues with what is missing.
    An example that takes minutes: beliefscope run paper/tmaze-50
    """

    out: Path | None = None
    """The folder for the results, by default runs/<study>-<scale>-<variant>."""
    workers: int | None = None
    """The number of worker processes, by default one for each core, or as many as fit on the GPU, ten at most."""
    backend: Literal["local", "ray"] = "local"
    """Where to compute: on this machine, or on a Ray cluster (docs/cluster.md)."""
    address: str | None = None
    """The address of the Ray cluster, such as 10.0.0.1:6379."""
    only: tuple[str, ...] = ()
    """Do only the pieces whose titles contain one of these texts, such as GRU, "seed 0" or train."""
    yes: bool = False
    """Start at full scale without asking for confirmation."""

    def run(self) -> int:
        jax.config.update("jax_platforms", "cpu")  # in this process: a GPU's memory is for the workers
        study = self.read()
        folder = self.out or Path("runs", f"{study.name.replace('/', '-')}-{self.scale}-{self.variant}")
        require(
            folder.is_dir() or not folder.exists(),
            rule="--out is a folder, or a path that does not exist yet",
            received=str(folder),
            advice="choose another place for the results",
        )
        if self.scale == "full" and not self.yes:
            print(show(study))
            print("\nTo start it, add --yes.")
            return 0
        print(f"{study.name}, {self.scale}, {self.variant}; results: {folder}", flush=True)
        stored = run_study(
            study, folder, workers=self.workers, only=self.only, backend=self.backend, address=self.address
        )
        left = {"running", "missing"} & set(stored.states().values()) if not self.only else set()
        status = describe_state(stored) or (1 if left else 0)
        print(f"to look at it: {shlex.join(['beliefscope', 'report', str(folder)])}")
        return status


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShowCommand(_StudyOptions):
    """Show what a study consists of and what it costs, without running it."""

    def run(self) -> int:
        print(show(self.read()))
        return 0
