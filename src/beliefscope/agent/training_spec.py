"""The description of one training run: a POMDP, a learner with its hyperparameters, a seed.

Its identity is the first 16 hexadecimal digits of the SHA-256 of its canonical JSON: sorted keys, exact numbers, class
names, digests of arrays, a schema number. It depends neither on the time nor on the machine.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from beliefscope.agent.cells import GRU, Cell
from beliefscope.errors import is_real, is_whole, nearest, require
from beliefscope.paper import Variant, check_variant
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import check_pomdp_type

SCHEMA = 1
# How other libraries call settings of DRQN.
ALIASES = {
    "lr": "learning_rate",
    "epsilon": "exploration_rate",
    "eps": "exploration_rate",
    "episodes": "num_episodes",
    "layers": "num_layers",
    "hidden": "hidden_size",
    "buffer_size": "buffer_capacity",
    "capacity": "buffer_capacity",
    "target_update": "target_period",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DRQN:
    """The hyperparameters of DRQN, by default those of appendix E, and when to evaluate and to store."""

    cell: type[Cell] = GRU
    num_layers: int = 2  # S, the number of recurrent layers
    hidden_size: int = 32  # the size of each layer's hidden state
    num_episodes: int = 5000  # E, the episodes to train for, a multiple of evaluation_period
    buffer_capacity: int = 8192  # N, the transitions that the replay buffer holds
    target_period: int = 10  # C, the episodes from one target network to the next
    gradient_steps: int = 10  # I, the gradient steps after each episode
    exploration_rate: float = 0.2  # ε, how often an action is drawn from the exploration policy
    batch_size: int = 32  # B, the transitions of a gradient step
    learning_rate: float = 1e-3  # α, of Adam
    variant: Variant = "text"  # the loss: a sum of squares as in the paper's text, or a mean as in the authors' code
    evaluation_period: int = 10  # the episodes from one evaluation to the next
    evaluation_episodes: int = 50  # the greedy rollouts of an evaluation
    checkpoint_period: int = 100  # the episodes from one stored network to the next, a multiple of evaluation_period

    def __new__(cls, *_: Any, **given: Any):
        """Refuse a setting of another name, as a constructor does, in a sentence that names the one that is meant."""
        known = [field.name for field in dataclasses.fields(DRQN)]
        for name in given.keys() - known:
            meant = ALIASES.get(name)
            advice = f"write {meant}=…" if meant else nearest(name, known, otherwise="leave it out")
            raise TypeError(f"the settings of DRQN are {', '.join(known)}, but got {name!r}; {advice}.")
        return super().__new__(cls)

    def checkpoints(self) -> list[int]:
        """The episodes after which a network is stored: 0, every `checkpoint_period`-th one, and the last."""
        return [*range(0, self.num_episodes, self.checkpoint_period), self.num_episodes]

    def stores(self, episode: int) -> bool:
        """Is the network stored after so many episodes?"""
        return episode % self.checkpoint_period == 0 or episode == self.num_episodes

    def __post_init__(self):
        require(
            isinstance(self.cell, type) and issubclass(self.cell, Cell),
            rule="the cell is a class such as beliefscope.GRU or your own subclass of beliefscope.agent.Cell",
            received=self.cell,
            advice="pass the class itself, not an instance or a name",
        )
        check_variant(self.variant)
        for field in dataclasses.fields(self):
            if field.type is int:
                _check_count(field.name, getattr(self, field.name), default=field.default)
                object.__setattr__(self, field.name, int(getattr(self, field.name)))  # NumPy's is no JSON
        for name, upper in (("exploration_rate", 1.0), ("learning_rate", math.inf)):
            _check_number(name, getattr(self, name), upper=upper)
            object.__setattr__(self, name, float(getattr(self, name)))  # 0 and 0.0 are one number
        for name in ("num_episodes", "checkpoint_period"):
            value, period = getattr(self, name), self.evaluation_period
            require(
                value % period == 0,
                rule=f"{name} is a multiple of evaluation_period, here {period}",
                received=value,
                advice=f"take {-(-value // period) * period}, or change evaluation_period: training ends, and networks "
                "are stored, where agents are evaluated",
            )


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
            advice="pass DRQN(cell=GRU), for example",
        )
        require(
            is_whole(self.seed) and 0 <= self.seed < 2**32,
            rule="a seed is a whole number from 0 to 4294967295",
            received=self.seed,
            advice="use 0, 1, 2 and 3 for four agents, as many as the paper trains",
        )
        object.__setattr__(self, "seed", int(self.seed))
        input_size = self.pomdp.num_actions + self.pomdp.observation_size
        _check_cell(self.learner.cell, input_size=input_size, hidden_size=self.learner.hidden_size)

    def canonical_json(self) -> str:
        """The description as text: the same for the same run, on any machine."""
        return json.dumps({"schema": SCHEMA, **_describe(self)}, sort_keys=True, indent=1) + "\n"

    @property
    def id(self) -> str:
        """The run's name."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]


def _describe(value: Any) -> Any:
    """A value as JSON: objects by class and fields, arrays by digest, numbers exactly."""
    if isinstance(value, float):
        return value + 0.0  # -0.0 and 0.0 are one number
    if value is None or isinstance(value, bool | int | str):
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
    """Classes of beliefscope by name alone, others with their module."""
    if kind.__module__.startswith("beliefscope."):
        return kind.__name__
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__  # a worker's name for a user's script
    return f"{module}.{kind.__qualname__}"


def _check_count(name: str, value: object, *, default: object) -> None:
    require(
        is_whole(value) and int(value) >= 1,  # pyright: ignore[reportArgumentType]
        rule=f"{name} is a whole number of at least 1",
        received=value,
        advice=f"the paper's is {default}",
    )


def _check_number(name: str, value: float, *, upper: float) -> None:
    require(
        is_real(value) and math.isfinite(value) and 0 <= value <= upper,
        rule=f"{name} is a finite number of at least 0" + (f" and at most {upper:g}" if math.isfinite(upper) else ""),
        received=value,
        advice=f"the paper's is {getattr(DRQN, name)}",
    )


@functools.cache  # a study has hundreds of runs with the same few cells
def _check_cell(cell: type[Cell], *, input_size: int, hidden_size: int) -> None:
    """Refuse a class that is not a whole cell, or whose step changes the memory's structure, shapes or types."""
    require(
        not inspect.isabstract(cell),
        rule="a cell has the methods __init__, init_memory and step",
        received=f"{cell.__name__} without {', '.join(sorted(cell.__abstractmethods__))}",
        advice="see examples/own_cell.py",
    )

    def one_step(key, inputs):
        built = cell(key, input_size, hidden_size)
        before = jax.tree.map(jnp.asarray, built.init_memory())
        return before, built.step(before, inputs)

    before, after = jax.eval_shape(
        one_step, jax.random.key(0), jax.ShapeDtypeStruct((input_size,), jnp.zeros(()).dtype)
    )
    require(
        _form(before) == _form(after),
        rule=f"a step of {cell.__name__} keeps the memory's structure, shapes and types, here {_form(before)}",
        received=_form(after),
        advice="return the new memory in the form of init_memory's",
    )
    first = jax.tree.leaves(before)[:1]
    require(
        [leaf.shape for leaf in first] == [(hidden_size,)],
        rule=f"the first array of the memory of {cell.__name__} is the hidden state, of shape ({hidden_size},)",
        received=_form(before),
        advice="make it the first of jax.tree.leaves(memory), with hidden_size numbers",
    )


def _form(memory: object) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", memory))
