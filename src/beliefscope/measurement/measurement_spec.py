"""What is measured of a trained run, and how. Its identity is that of its canonical JSON, as for a training."""

import dataclasses
import hashlib
import json
from typing import Literal

from beliefscope.errors import is_real, is_whole, require
from beliefscope.information import MINE, Estimator, Trusted

SCHEMA = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementSpec:
    """How memory and belief are compared; the defaults are the paper's."""

    estimator: Literal["text", "code", "trusted"] = "text"  # MINE as in the paper, as in its authors' code, or ours
    num_samples: int = 10_000  # N, the pairs that an estimate stands on
    num_particles: int = 1000  # M, of beliefs that are sets of particles
    epsilon: float = 0.0  # ε of the policy whose histories are measured
    epochs: int | None = None  # of MINE, by default 200 for 'text' and 100 for 'code'; 'trusted' chooses for itself
    part: Literal["all", "relevant", "irrelevant"] = "all"  # which part of the belief, where it has parts
    memory: Literal["hidden", "whole"] = "hidden"  # h, as the paper has it, or all that is carried: (h, c) of the LSTM

    def __post_init__(self):
        require(
            self.estimator in ("text", "code", "trusted"),
            rule="the estimator is 'text', 'code' or 'trusted'",
            received=self.estimator,
            advice="'text' is the paper's",
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
            self.epochs is None or (is_whole(self.epochs) and self.epochs >= 1 and self.estimator != "trusted"),
            rule="epochs is a whole number of at least 1, for MINE alone",
            received=f"{self.epochs} with the estimator '{self.estimator}'",
            advice="the paper has 200; leave it out for 'trusted'",
        )
        require(
            self.part in ("all", "relevant", "irrelevant"),
            rule="the part of the belief is 'all', 'relevant' or 'irrelevant'",
            received=self.part,
            advice="'all' measures every part there is",
        )
        require(
            self.memory in ("hidden", "whole"),
            rule="the memory is 'hidden' or 'whole'",
            received=self.memory,
            advice="'hidden' is the paper's: the hidden states; 'whole' adds the cell states of an LSTM",
        )

    def build(self) -> Estimator:
        if self.estimator == "trusted":
            return Trusted()
        mine = MINE(self.estimator)
        return dataclasses.replace(mine, settings=mine.settings._replace(epochs=self.num_epochs))

    @property
    def num_epochs(self) -> int | None:
        """Of MINE; None for `trusted`."""
        return None if self.estimator == "trusted" else self.epochs or MINE(self.estimator).settings.epochs

    @property
    def num_rows(self) -> int:
        """The pairs to draw: MINE trains on N and is judged on N fresh ones, `trusted` takes turns among N."""
        return self.num_samples if self.estimator == "trusted" else 2 * self.num_samples

    def id(self, episode: int, *, with_controls: bool) -> str:
        """The name of the measurement of one checkpoint."""
        described = {"schema": SCHEMA, **dataclasses.asdict(self), "episode": episode, "controls": with_controls}
        if self.memory == "hidden":  # as it was called before there was a choice
            del described["memory"]
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
