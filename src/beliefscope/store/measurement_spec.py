"""What is measured of a trained run, and how: plain data, named by the digest of its canonical JSON."""

import dataclasses
import functools
import hashlib
import json
import sys
from typing import Any, Literal

from beliefscope.errors import is_real, is_whole, require

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
_EPOCHS = {"mine": 200, "mine-authors": 100}  # of MINE, as the paper and as its authors' code have it


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
    num_samples: int = 10_000  # the pairs to measure on; MINE is judged on as many fresh ones besides
    num_particles: int = 1000  # M, of beliefs that are sets of particles
    epsilon: float = 0.0  # ε of the policy whose histories are measured
    epochs: int | None = None  # of MINE, by default 200, or 100 for 'mine-authors'; the others choose for themselves
    part: Literal["all", "relevant", "irrelevant"] = "all"  # which part of the belief, where it has parts
    memory: Literal["hidden", "whole"] = "hidden"  # h, as the paper has it, or all that is carried: (h, c) of the LSTM

    def __post_init__(self):
        object.__setattr__(self, "estimator", estimator_name(self.estimator))
        require(
            self.estimator in (*ESTIMATORS, OLDER),
            rule=f"the estimator is one of {', '.join(ESTIMATORS)}",
            received=self.estimator,
            advice="'mine' is the paper's",
        )
        for name, least in (("num_samples", 2000), ("num_particles", 1)):
            value = getattr(self, name)
            require(
                is_whole(value) and value >= least,
                rule=f"{name} is a whole number of at least {least}",
                received=value,
                advice=f"the paper's is {getattr(MeasurementSpec, name)}",
            )
        require(
            is_real(self.epsilon) and 0 <= self.epsilon <= 1,
            rule="epsilon lies in [0, 1]",
            received=self.epsilon,
            advice="0 is the greedy policy",
        )
        require(
            self.epochs is None or (is_whole(self.epochs) and self.epochs >= 1 and self.estimator in STORED),
            rule="epochs is a whole number of at least 1, for MINE alone",
            received=f"{self.epochs} with the estimator '{self.estimator}'",
            advice="the paper uses 200; leave it out for other estimators",
        )
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
        return self.epochs or _EPOCHS.get(self.estimator)

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
