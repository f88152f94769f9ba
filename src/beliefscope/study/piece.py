"""A piece of a study: the smallest work that is done, stored and skipped as a whole. Plain data, with its own name."""

import dataclasses
from pathlib import Path
from typing import Literal, NamedTuple

from beliefscope.measurement import MeasurementSpec

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
        return "-".join([self.kind, self.run, *([] if self.kind == "train" else [self._result().stem])])

    @property
    def title(self) -> str:
        """For people."""
        if self.episode is None:
            return f"{self.label}: {self.kind}"
        how = "" if self.measurement is None else f", ε = {self.measurement.epsilon:g}, {self.measurement.estimator}"
        how += ", whole memory" if self.measurement is not None and self.measurement.memory == "whole" else ""
        return f"{self.label}: {self.kind} episode {self.episode}{how}"

    def result(self, folder: Path) -> Path:
        """The file that is there once the piece is done."""
        return folder / "runs" / self.run / self._result()

    def failure(self, folder: Path) -> Path:
        """The file that says why it could not be done."""
        return folder / "runs" / self.run / "failures" / f"{self.name}.json"

    def _result(self) -> Path:
        if self.kind == "train":
            return Path("trained.json")
        if self.kind == "trace":
            return Path("traces", f"{self.episode}.npz")
        assert self.measurement is not None
        assert self.episode is not None
        extras = {"with_controls": self.controls, "with_calibration": self.calibrate}
        return Path("measure", f"{self.measurement.id(self.episode, **extras)}.json")


class Run(NamedTuple):
    """A run as study.json describes it."""

    id: str
    environment: str
    cell: str
    seed: int
    pieces: list[Piece]
