"""Checks that run in Python, where values can still be looked at: a POMDP's facts, and actions outside `jit`."""

import numpy as np
from jax.core import Tracer

from beliefscope.errors import is_real, is_whole, require
from beliefscope.pomdp.interface import POMDP, Action


def check_facts(pomdp: POMDP) -> None:
    """Refuse a discount outside [0, 1] or a horizon below 1."""
    require(
        is_real(pomdp.discount) and 0 <= pomdp.discount <= 1,
        rule="a discount γ lies in [0, 1]",
        received=pomdp.discount,
        advice="the paper uses 0.98 and 0.99",
    )
    require(
        is_whole(pomdp.horizon) and pomdp.horizon >= 1,
        rule="a horizon is a whole number of at least 1",
        received=pomdp.horizon,
        advice="pass the number of actions after which an episode is cut",
    )


def check_std(name: str, std: float) -> None:
    """Refuse a standard deviation that is not a positive number."""
    require(
        is_real(std) and 0 < std < float("inf"),
        rule=f"{name} is a standard deviation above 0",
        received=std,
        advice="pass a positive number",
    )


def check_action(action: Action, num_actions: int) -> None:
    """Refuse a concrete action out of range; a traced one passes (under `jit` indices are clamped, not checked)."""
    if isinstance(action, Tracer):
        return
    concrete = np.asarray(action).item()
    require(
        is_whole(concrete) and 0 <= concrete < num_actions,
        rule=f"an action is an integer from 0 to {num_actions - 1}",
        received=concrete,
        advice="choose one of the POMDP's actions",
    )
