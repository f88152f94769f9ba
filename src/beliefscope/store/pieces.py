"""A piece of a study: the smallest unit of work, done, stored and skipped as a whole. Plain data with a name."""

import dataclasses
from pathlib import Path
from typing import Any, Literal, NamedTuple

from beliefscope.store.layout import RunFiles, StudyFiles
from beliefscope.store.measurement_spec import MeasurementSpec

Kind = Literal["train", "measure", "trace"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """Train a run, measure one of its checkpoints, or trace one."""

    kind: Kind
    run: str  # the run's id
    label: str  # the run's
    episode: int | None = None  # the checkpoint; None for a training
    measurement: MeasurementSpec | None = None
    controls: bool = False
    calibrate: bool = False  # the measurement also says what is read of known information

    @property
    def name(self) -> str:
        """Unique in the study, and a file's name."""
        if self.kind == "train":
            return training_name(self.run)
        if self.kind == "trace":
            return f"trace-{self.run}-{self.episode}"
        return measurement_name(self.run, self._measurement_id())

    @property
    def title(self) -> str:
        """For people."""
        if self.episode is None:
            return f"{self.label}: {self.kind}"
        how = "" if self.measurement is None else f", ε = {self.measurement.epsilon:g}, {self.measurement.estimator}"
        how += ", whole memory" if self.measurement is not None and self.measurement.memory == "whole" else ""
        return f"{self.label}: {self.kind} episode {self.episode}{how}"

    def result(self, folder: Path) -> Path:
        """The file that exists once the piece is done."""
        files = self.files(folder)
        if self.kind == "train":
            return files.trained
        if self.kind == "trace":
            assert self.episode is not None
            return files.trace(self.episode)
        return files.measurement(self._measurement_id())

    def failure(self, folder: Path) -> Path:
        """The file that says why it could not be done."""
        return self.files(folder).failure(self.name)

    def files(self, folder: Path) -> RunFiles:
        """Those of its run."""
        return StudyFiles(folder).run(self.run)

    def describe(self) -> dict[str, Any]:
        """As study.json has it."""
        given = {"kind": self.kind, "episode": self.episode, "controls": self.controls or None}
        given["calibrate"] = self.calibrate or None
        measurement = None if self.measurement is None else self.measurement.describe()
        return {name: value for name, value in {**given, "measurement": measurement}.items() if value is not None}

    def needs(self, last: int) -> set[int]:
        """The checkpoints whose networks it reads; `last` is the run's last one."""
        if self.episode is None:
            return set()
        of_shares = self.measurement is not None and self.measurement.estimator == "sufficiency"
        return {self.episode, *([0] if self.controls else []), *([last] if of_shares else [])}

    def _measurement_id(self) -> str:
        assert self.measurement is not None
        assert self.episode is not None
        return self.measurement.id(self.episode, with_controls=self.controls, with_calibration=self.calibrate)


class Run(NamedTuple):
    """A run as study.json describes it."""

    id: str
    environment: str
    cell: str
    seed: int
    pieces: list[Piece]

    @property
    def label(self) -> str:
        """For people."""
        return run_label(self.environment, self.cell, self.seed)


def run_label(environment: str, cell: str, seed: int) -> str:
    return f"{environment}, {cell}, seed {seed}"


def training_name(run: str) -> str:
    return f"train-{run}"


def measurement_name(run: str, measurement: str) -> str:
    return f"measure-{run}-{measurement}"


def with_added(described: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """A study's description, and the pieces that `measure` has added to the one that is there."""
    added = {run["id"]: [piece for piece in run["pieces"] if piece.get("added")] for run in there["runs"]}

    def pieces(run: dict[str, Any]) -> list[dict[str, Any]]:
        own = [{**piece, "added": True} for piece in run["pieces"]]
        return [*run["pieces"], *(piece for piece in added.get(run["id"], []) if piece not in own)]

    return {**described, "runs": [{**run, "pieces": pieces(run)} for run in described["runs"]]}


def first_middle_last(episodes: list[int]) -> tuple[int, ...]:
    """The checkpoints that get controls and traces by default."""
    return tuple(sorted({episodes[0], episodes[len(episodes) // 2], episodes[-1]}))
