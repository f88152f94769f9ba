"""Checks that run in Python, where values can still be looked at: a POMDP's facts, and actions outside `jit`."""

from typing import Any

import numpy as np
from jax.core import Tracer

from beliefscope.errors import is_real, is_whole, require
from beliefscope.pomdp.interface import POMDP, Action


def checked_discount(discount: Any) -> float:
    """γ as a float, if it lies in [0, 1]."""
    require(
        is_real(discount) and 0 <= discount <= 1,
        rule="a discount γ lies in [0, 1]",
        received=discount,
        advice="the paper uses 0.98 and 0.99",
    )
    return float(discount)


def checked_horizon(horizon: Any) -> int:
    """H as an int, if it is a whole number of at least 1."""
    require(
        is_whole(horizon) and horizon >= 1,
        rule="a horizon is a whole number of at least 1",
        received=horizon,
        advice="pass the number of actions after which an episode is cut",
    )
    return int(horizon)


def check_pomdp_type(pomdp: Any) -> None:
    """Refuse what is not an instance of `POMDP`."""
    require(
        isinstance(pomdp, POMDP),
        rule="a POMDP is an instance of the class POMDP",
        received=pomdp,
        advice="pass the POMDP itself, such as TMaze(50)",
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
    given = np.asarray(action)
    require(
        given.size == 1,
        rule="one belief or state takes one action",
        received=given.tolist(),
        advice="use jax.vmap for a batch",
    )
    concrete = given.item()
    require(
        is_whole(concrete) and 0 <= concrete < num_actions,
        rule=f"an action is an integer from 0 to {num_actions - 1}",
        received=concrete,
        advice="choose one of the POMDP's actions",
    )
