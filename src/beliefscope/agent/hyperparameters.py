"""The hyperparameters of DRQN, by default those of appendix E, and when to evaluate and to store."""

import dataclasses
import math

from beliefscope.agent.cells import GRU, Cell
from beliefscope.errors import is_real, is_whole, require
from beliefscope.pomdp.variant import Variant, check_variant


@dataclasses.dataclass(frozen=True, kw_only=True)
class DRQN:
    """How an agent learns."""

    cell: type[Cell] = GRU
    num_layers: int = 2  # S, how many recurrent layers
    hidden_size: int = 32  # the size of each layer's hidden state
    num_episodes: int = 5000  # E, the episodes to train for, a multiple of evaluation_period
    buffer_capacity: int = 8192  # N, the transitions that the replay buffer holds
    target_period: int = 10  # C, the episodes from one target network to the next
    gradient_steps: int = 10  # I, the gradient steps after each episode
    exploration_rate: float = 0.2  # ε, how often an action is drawn from the exploration policy
    batch_size: int = 32  # B, the transitions of a gradient step
    learning_rate: float = 1e-3  # α, of Adam
    variant: Variant = "text"  # the loss is a sum of squares as the paper prints, or a mean as the authors' code has it
    evaluation_period: int = 10  # the episodes from one evaluation to the next
    evaluation_episodes: int = 50  # the greedy rollouts of an evaluation
    checkpoint_period: int = 100  # the episodes from one stored network to the next, a multiple of evaluation_period

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
        _check_number("exploration_rate", self.exploration_rate, upper=1.0)
        _check_number("learning_rate", self.learning_rate, upper=math.inf)
        for name in ("num_episodes", "checkpoint_period"):
            value, period = getattr(self, name), self.evaluation_period
            require(
                value % period == 0,
                rule=f"{name} is a multiple of evaluation_period, here {period}",
                received=value,
                advice=f"take {-(-value // period) * period}, or change evaluation_period: training ends, and networks "
                "are stored, where agents are evaluated",
            )


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
