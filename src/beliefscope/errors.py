"""One sentence for bad input: the rule, the value received, what to do next."""

from numbers import Integral, Real
from typing import Any


def require(holds: bool, *, rule: str, received: Any, advice: str) -> None:
    """Raise `ValueError("<rule>, but got <received>; <advice>.")` unless the rule holds."""
    if not holds:
        raise ValueError(f"{rule}, but got {' '.join(repr(received).split())}; {advice}.")


def is_whole(value: Any) -> bool:
    """Is this an integer (a bool is not)?"""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Is this a real number (a bool is not)?"""
    return isinstance(value, Real) and not isinstance(value, bool)
