"""What there is to do: a study consists of runs, and a run of a training, measurements, traces and interventions.

Each of these is a piece, the smallest work that is stored and skipped as a whole; `DIR/study.json` lists the pieces.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from beliefscope.agent import TrainingSpec
from beliefscope.errors import is_whole, require
from beliefscope.pomdp import maximal_return
from beliefscope.store import MeasurementSpec
from beliefscope.store.pieces import Piece, run_label
from beliefscope.store.schema import LONGEST_NAME
from beliefscope.store.study_folder import FORMAT


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """One way to measure, and the checkpoints it is applied to."""

    spec: MeasurementSpec
    episodes: tuple[int, ...]  # the checkpoints
    controls: tuple[int, ...] = ()  # those of them that also get the controls
    calibrate: bool = False  # the last of those, in the first run of each environment, also gets the calibration

    def __post_init__(self):
        _as_stored(self, "episodes", "controls")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A training, the measurements of its checkpoints, and the checkpoints that are traced or intervened on.

    The run's name is that of its training alone, so that studies which measure it differently share it.
    """

    training: TrainingSpec
    environment: str  # its name in what people read, such as "T-Maze, L = 50"
    measurements: tuple[Measurement, ...] = ()
    traces: tuple[int, ...] = ()
    interventions: tuple[int, ...] = ()

    def __post_init__(self):
        require(
            isinstance(self.training, TrainingSpec),
            rule="the training of a run is a beliefscope.TrainingSpec",
            received=self.training,
            advice="pass TrainingSpec(pomdp=TMaze(50), learner=DRQN(cell=GRU), seed=0), say",
        )
        require(
            isinstance(self.measurements, tuple | list)
            and all(isinstance(each, Measurement) for each in self.measurements),
            rule="the measurements of a run are a tuple of beliefscope.Measurement",
            received=self.measurements,
            advice="pass (Measurement(spec=MeasurementSpec(), episodes=(0, 100)),), say",
        )
        _as_stored(self, "traces", "interventions")
        stored = checkpoints(self.training)
        asked = {
            *self.traces,
            *self.interventions,
            *(episode for each in self.measurements for episode in each.episodes),
        }
        require(
            asked <= set(stored),
            rule=f"a run stores a checkpoint every {self.training.learner.checkpoint_period} episodes and at its end, "
            "and only these are measured and traced",
            received=sorted(asked - set(stored)),
            advice=f"choose among the stored ones, from 0 to {stored[-1]}, or change checkpoint_period",
        )
        for each in self.measurements:
            require(
                set(each.controls) <= set(each.episodes),
                rule="controls belong to checkpoints that are measured",
                received=sorted(set(each.controls) - set(each.episodes)),
                advice="measure those checkpoints too",
            )

    @property
    def id(self) -> str:
        return self.training.id

    @property
    def label(self) -> str:
        """The run's name in what people read."""
        return run_label(self.environment, self.training.learner.cell.__name__, self.training.seed)


def _as_stored(spec: Measurement | RunSpec, *names: str) -> None:
    """Whole numbers of NumPy become Python's: NumPy's are no JSON."""
    for name in names:
        given = getattr(spec, name)
        given = tuple(given) if isinstance(given, Iterable) else given
        require(
            isinstance(given, tuple) and all(map(is_whole, given)),
            rule=f"{name} are whole numbers: the checkpoints' episodes",
            received=given,
            advice="pass a tuple such as (0, 100)",
        )
        object.__setattr__(spec, name, tuple(map(int, given)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """Runs with a name."""

    name: str
    runs: tuple[RunSpec, ...]
    description: str = ""
    settings: dict[str, str] = dataclasses.field(default_factory=dict)  # scale and variant, for people

    def __post_init__(self):
        check_name(self.name)
        require(
            isinstance(self.runs, tuple | list) and all(isinstance(run, RunSpec) for run in self.runs),
            rule="the runs of a study are a tuple of RunSpec",
            received=self.runs,
            advice="pass runs=(RunSpec(…), …)",
        )
        require(
            len(self.runs) > 0,
            rule="a study has at least one run",
            received=0,
            advice="name at least one environment, one cell and one seed",
        )
        ids = [run.id for run in self.runs]
        require(
            len(set(ids)) == len(ids),
            rule="no run is in a study twice",
            received=sorted({run.label for run, id in zip(self.runs, ids, strict=True) if ids.count(id) > 1}),
            advice="leave out the repeated cells, seeds or environments",
        )

    def pieces(self) -> list[Piece]:
        """All pieces; a run's training comes before its measurements and traces."""
        return [piece for _, pieces in self._by_run() for piece in pieces]

    def _by_run(self) -> Iterator[tuple[RunSpec, list[Piece]]]:
        seen: set[str] = set()  # environments
        for run in self.runs:
            yield run, list(_pieces(run, first=run.environment not in seen))
            seen.add(run.environment)

    def describe(self) -> dict[str, Any]:
        """The content of study.json: it names every piece, so that reading it builds no POMDP."""
        runs = [
            {"id": run.id, "environment": run.environment, "cell": run.training.learner.cell.__name__}
            | {"seed": run.training.seed, "pieces": [piece.describe() for piece in pieces]}
            for run, pieces in self._by_run()
        ]
        head = {"format": FORMAT, "name": self.name, "description": self.description, "settings": self.settings}
        return json.loads(json.dumps({**head, "optimum": self._optimum(), "runs": runs}))

    def _optimum(self) -> dict[str, float]:
        """J* by environment, where it is known, so that a report does not solve POMDPs."""
        found = {}
        for run in {run.environment: run for run in self.runs}.values():
            best = maximal_return(run.training.pomdp)
            if best is not None and best.exact:
                found[run.environment] = best.value
        return found


def checkpoints(training: TrainingSpec) -> list[int]:
    """The episodes after which a network is stored, 0 included."""
    return training.learner.checkpoints()


def merge(runs: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """The runs of several studies as one list: each run once, in the order of first appearance, with all that is asked.

    A run that two studies share is trained once, and measured for both.
    """
    merged: dict[str, RunSpec] = {}
    for run in runs:
        name = run.id
        merged[name] = _merged_run(merged[name], run) if name in merged else run
    return tuple(merged.values())


def _merged_run(first: RunSpec, second: RunSpec) -> RunSpec:
    return dataclasses.replace(
        first,
        measurements=_merged_measurements((*first.measurements, *second.measurements)),
        traces=tuple(sorted({*first.traces, *second.traces})),
        interventions=tuple(sorted({*first.interventions, *second.interventions})),
    )


def _merged_measurements(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """One for each MeasurementSpec: it measures a checkpoint once, with controls if any of them asks for controls."""
    merged: dict[MeasurementSpec, Measurement] = {}
    for each in measurements:
        before = merged.get(each.spec, each)
        merged[each.spec] = Measurement(
            spec=each.spec,
            episodes=tuple(sorted({*before.episodes, *each.episodes})),
            controls=tuple(sorted({*before.controls, *each.controls})),
            calibrate=before.calibrate or each.calibrate,
        )
    return tuple(merged.values())


def check_name(name: str) -> None:
    """A folder is named after its study, and a file system takes names of 255 bytes."""
    is_text = isinstance(name, str)
    require(
        is_text and name.strip() != "" and name.isprintable() and len(name.encode()) <= LONGEST_NAME,
        rule=f"a study's name is one line of printable characters, of at most {LONGEST_NAME} bytes",
        received=name[:LONGEST_NAME] if is_text else name,
        advice="give it a shorter or plainer one",
    )


def _pieces(run: RunSpec, *, first: bool) -> Iterator[Piece]:
    """`first`: the run is the first of its environment, and has the calibration of that environment."""
    piece = partial(Piece, run=run.id, label=run.label)
    yield piece(kind="train")
    for each in run.measurements:
        for episode in each.episodes:
            known = first and each.calibrate and episode == max(each.controls, default=None)
            measured = piece(kind="measure", episode=episode, measurement=each.spec)
            yield dataclasses.replace(measured, controls=episode in each.controls, calibrate=known)
    for episode in run.traces:
        yield piece(kind="trace", episode=episode)
    for episode in run.interventions:
        yield piece(kind="intervene", episode=episode)
