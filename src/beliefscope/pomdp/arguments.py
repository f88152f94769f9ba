"""Checks of arguments that run in Python, before JAX traces them: a POMDP's facts, a variant, actions outside `jit`."""

from typing import Any, Literal, get_args

import jax
import numpy as np
from jax.core import Tracer

from beliefscope.errors import is_real, is_whole, require
from beliefscope.pomdp.interface import POMDP, Action

Variant = Literal["text", "code"]  # the paper as printed, or as the authors' public code has it


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


def check_variant(variant: str) -> None:
    """Refuse anything but the two variants."""
    require(
        variant in get_args(Variant),
        rule="a variant of the paper is 'text' or 'code'",
        received=variant,
        advice="choose 'text' for the paper as printed",
    )


def check_observation(pomdp: POMDP, observation: Any, *, batch: int = 0) -> None:
    """Refuse what is not made of arrays of the shapes that the POMDP gives, behind so many axes of a batch."""
    key = jax.random.key(0)
    given = jax.eval_shape(lambda: pomdp.sample_observation(key, pomdp.sample_initial(key)))
    received = jax.tree.map(lambda leaf: getattr(leaf, "shape", None if _is_odd(leaf) else ()), observation)
    inner = jax.tree.map(lambda leaf: leaf.shape, given)
    fits = jax.tree.structure(observation) == jax.tree.structure(given) and all(
        not _is_odd(one) and np.shape(one)[batch:] == other.shape
        for one, other in zip(jax.tree.leaves(observation), jax.tree.leaves(given), strict=True)
    )
    require(
        fits,
        rule=f"an observation of {type(pomdp).__name__} has the shape {inner}{' in each step' if batch else ''}",
        received=received,
        advice="pass observations as the POMDP's sample_observation gives them",
    )


def _is_odd(leaf: Any) -> bool:
    """Is this anything but numbers?"""
    return not isinstance(leaf, Tracer) and getattr(leaf, "dtype", np.asarray(leaf).dtype).kind not in "biuf"


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
