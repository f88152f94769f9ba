"""The work of a study as plain data: what is measured, and the pieces that are done, stored and skipped as a whole.

A `MeasurementSpec` says what is measured of a trained run, and how. It is named by the digest of its canonical JSON. A
`Piece` is the smallest unit of work: a training, a measured checkpoint, a trace, the interventions on a checkpoint.
"""

import dataclasses
import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

from beliefscope.errors import is_real, is_whole, require
from beliefscope.paper import MINE_EPOCHS
from beliefscope.store.layout import RunFiles, StudyFiles

SCHEMA = 2
EstimatorName = Literal["mine", "mine-authors", "sufficiency", "atoms", "best-bound", "trusted", "text", "code"]
ESTIMATORS = {
    "mine": "MINE as in the paper",
    "mine-authors": "MINE as in its authors' code",
    "sufficiency": "the share of what the belief knows about the state",
    "atoms": "a lower bound, where beliefs recur",
    "best-bound": "the best of several critics, for any two arrays",
}
OLDER = "trusted"  # the name of records from before the best bound; whoever asks for it now gets the best bound
# How stored records, and their ids, call two of them; on the command line and in TOML these are aliases.
STORED = {"mine": "text", "mine-authors": "code"}


def asked_estimator(given: str) -> str:
    """The current name of a requested estimator, which may be given by an older name."""
    if given == OLDER:
        _say_once("the estimator 'trusted' is now 'best-bound', which is measured in its place")
        return "best-bound"
    return estimator_name(given)


@functools.cache
def _say_once(sentence: str) -> None:
    """Without this, a study would repeat it for each of its runs."""
    print(sentence, file=sys.stderr)


def estimator_name(given: str) -> str:
    """The name of an estimator as records have it."""
    return next((name for name, stored in STORED.items() if stored == given), given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementSpec:
    """How memory and belief are compared; the defaults are the paper's."""

    estimator: EstimatorName = "mine"  # the paper's MINE; 'text' and 'code' are older names of mine and mine-authors
    num_samples: int = 10_000  # the number of pairs; MINE is evaluated on as many fresh ones
    num_particles: int = 1000  # M, the particles of a belief, where beliefs are sets of particles
    epsilon: float = 0.0  # ε of the policy whose histories are measured
    epochs: int | None = None  # of MINE: 200, or 100 for 'mine-authors', unless given; others choose their own
    part: Literal["all", "relevant", "irrelevant"] = "all"  # which part of the belief, where it has parts
    memory: Literal["hidden", "whole"] = "hidden"  # h, as in the paper, or all that a cell carries: (h, c) of the LSTM

    def __post_init__(self):
        object.__setattr__(self, "estimator", estimator_name(self.estimator))
        require(
            self.estimator in (*ESTIMATORS, OLDER),
            rule=f"the estimator is one of {', '.join(ESTIMATORS)}",
            received=self.estimator,
            advice="'mine' is the paper's",
        )
        # Equal numbers give one id, whatever their types are.
        for name, least in (("num_samples", 2000), ("num_particles", 1)):
            value = getattr(self, name)
            require(
                is_whole(value) and value >= least,
                rule=f"{name} is a whole number of at least {least}",
                received=value,
                advice=f"the paper's is {getattr(MeasurementSpec, name)}",
            )
            object.__setattr__(self, name, int(value))
        require(
            is_real(self.epsilon) and 0 <= self.epsilon <= 1,
            rule="epsilon lies in [0, 1]",
            received=self.epsilon,
            advice="0 is the greedy policy",
        )
        object.__setattr__(self, "epsilon", float(self.epsilon) + 0.0)  # not -0.0
        require(
            self.epochs is None or (is_whole(self.epochs) and self.epochs >= 1 and self.estimator in STORED),
            rule="epochs is a whole number of at least 1, for MINE alone",
            received=f"{self.epochs} with the estimator '{self.estimator}'",
            advice="the paper uses 200; leave it out for other estimators",
        )
        object.__setattr__(self, "epochs", None if self.epochs is None else int(self.epochs))
        require(
            self.part in ("all", "relevant", "irrelevant"),
            rule="the part of the belief is 'all', 'relevant' or 'irrelevant'",
            received=self.part,
            advice="'all' measures every part",
        )
        require(
            self.memory in ("hidden", "whole"),
            rule="the memory is 'hidden' or 'whole'",
            received=self.memory,
            advice="'hidden' is the paper's: the hidden states; 'whole' adds the cell states of an LSTM",
        )

    @property
    def num_epochs(self) -> int | None:
        """Of MINE; None for others."""
        return self.epochs or MINE_EPOCHS.get(self.estimator)

    @property
    def num_rows(self) -> int:
        """N, the pairs that the estimator is given: MINE trains on half of them and is evaluated on the other half."""
        return 2 * self.num_samples if self.estimator in STORED else self.num_samples

    def describe(self) -> dict[str, Any]:
        """As it is stored."""
        return {**dataclasses.asdict(self), "estimator": STORED.get(self.estimator, self.estimator)}

    def id(self, episode: int, *, with_controls: bool, with_calibration: bool = False) -> str:
        """The name of the measurement of one checkpoint."""
        described = {"schema": SCHEMA, **self.describe(), "episode": episode, "controls": with_controls}
        if self.memory == "hidden":  # as it was called before there was a choice
            del described["memory"]
        if with_calibration:
            described["calibration"] = True
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


Kind = Literal["train", "measure", "trace", "intervene"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """Train a run, measure one of its checkpoints, trace one, or intervene on one."""

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
        if self.kind in ("trace", "intervene"):
            return f"{self.kind}-{self.run}-{self.episode}"
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
        assert self.episode is not None
        if self.kind == "trace":
            return files.trace(self.episode)
        if self.kind == "intervene":
            return files.interventions(self.episode)
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


def with_kept(described: dict[str, Any], kept: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A study's description, and those of its folder's pieces that stay although the definition lacks them, by run."""

    def pieces(run: dict[str, Any]) -> list[dict[str, Any]]:
        own = [{**piece, "added": True} for piece in run["pieces"]]
        also = ({**piece, "added": True} for piece in kept.get(run["id"], []))
        return [*run["pieces"], *(piece for piece in also if piece not in own)]

    return {**described, "runs": [{**run, "pieces": pieces(run)} for run in described["runs"]]}


def first_middle_last(episodes: list[int]) -> tuple[int, ...]:
    """The checkpoints that get controls and traces by default."""
    return tuple(sorted({episodes[0], episodes[len(episodes) // 2], episodes[-1]}))
