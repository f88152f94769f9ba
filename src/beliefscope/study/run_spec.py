"""One run of a study: what is trained, and what is measured of it."""

import dataclasses

from beliefscope.agent import TrainingSpec
from beliefscope.errors import require
from beliefscope.measurement import MeasurementSpec


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """One way to measure, and the checkpoints it is applied to."""

    spec: MeasurementSpec
    episodes: tuple[int, ...]  # the checkpoints
    controls: tuple[int, ...] = ()  # those of them that also get the controls
    calibrate: bool = False  # the last of those, in the first run of each environment, also gets the calibration


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A training, the measurements of its checkpoints, and the checkpoints of which traces are kept.

    The run's name is that of its training alone, so that studies which measure it differently share it.
    """

    training: TrainingSpec
    environment: str  # how people call the POMDP, such as "T-Maze, L = 50"
    measurements: tuple[Measurement, ...] = ()
    traces: tuple[int, ...] = ()

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
        stored = checkpoints(self.training)
        asked = {*self.traces, *(episode for each in self.measurements for episode in each.episodes)}
        require(
            asked <= set(stored),
            rule=f"measured are checkpoints, which are stored every {self.training.learner.checkpoint_period} episodes",
            received=sorted(asked - set(stored)),
            advice=f"choose among 0 to {stored[-1]}",
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
        """How people call the run."""
        return f"{self.environment}, {self.training.learner.cell.__name__}, seed {self.training.seed}"


def checkpoints(training: TrainingSpec) -> list[int]:
    """The episodes after which a network is stored, 0 included."""
    learner = training.learner
    return list(range(0, learner.num_episodes + 1, learner.checkpoint_period))


def first_middle_last(episodes: list[int]) -> tuple[int, ...]:
    """Those that get controls and traces."""
    return tuple(sorted({episodes[0], episodes[len(episodes) // 2], episodes[-1]}))
