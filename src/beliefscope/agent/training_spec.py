"""The description of one training run: a POMDP, a learner, a seed.

Its identity is the first 16 hexadecimal digits of the SHA-256 of its canonical JSON: sorted keys, exact numbers, class
names, digests of arrays, a schema number. Neither the clock nor the machine enters.
"""

import dataclasses
import hashlib
import json
from typing import Any

import jax
import numpy as np

from beliefscope.agent.cells.check import check_cell
from beliefscope.agent.hyperparameters import DRQN
from beliefscope.errors import is_whole, require
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.eager import check_pomdp_type

SCHEMA = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """One agent, one seed."""

    pomdp: POMDP
    learner: DRQN = dataclasses.field(default_factory=DRQN)
    seed: int = 0

    def __post_init__(self):
        check_pomdp_type(self.pomdp)
        require(
            isinstance(self.learner, DRQN),
            rule="the learner is a beliefscope.DRQN",
            received=self.learner,
            advice="pass DRQN(cell=GRU), say",
        )
        require(
            is_whole(self.seed) and 0 <= self.seed < 2**32,
            rule="a seed is a whole number from 0 to 4294967295",
            received=self.seed,
            advice="the paper trains four agents; 0, 1, 2 and 3 will do",
        )
        input_size = self.pomdp.num_actions + self.pomdp.observation_size
        check_cell(self.learner.cell, input_size=input_size, hidden_size=self.learner.hidden_size)

    def canonical_json(self) -> str:
        """The description as text: the same for the same run, on any machine."""
        return json.dumps({"schema": SCHEMA, **_describe(self)}, sort_keys=True, indent=1) + "\n"

    @property
    def id(self) -> str:
        """The run's name."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]


def _describe(value: Any) -> Any:
    """A value as JSON: objects by class and fields, arrays by digest, numbers exactly."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, type):
        return _class_name(value)
    if dataclasses.is_dataclass(value):
        fields = {field.name: _describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": _class_name(type(value)), **fields}
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {"class": "array", "dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest}
    if isinstance(value, tuple | list):
        return [_describe(item) for item in value]
    raise ValueError(
        "a run is described by numbers, texts, arrays and modules made of them, but its description holds "
        f"{value!r}; give your POMDP fields of these kinds."
    )


def _class_name(kind: type) -> str:
    """Ours by name alone, another's with its module."""
    if kind.__module__.startswith("beliefscope."):
        return kind.__name__
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__  # a worker's name for a user's script
    return f"{module}.{kind.__qualname__}"
