"""One sentence for bad input: the rule, the value received, what to do next."""

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

_LONGEST = 300  # characters of a value that is not as it should be


def require(holds: bool, *, rule: str, received: Any, advice: str) -> None:
    """Raise `ValueError("<rule>, but got <received>; <advice>.")` unless the rule holds."""
    if not holds:
        got = " ".join(repr(received).split())
        got = got if len(got) <= _LONGEST else f"{got[:_LONGEST]}…"
        raise ValueError(f"{rule}, but got {got}; {advice}.")


def is_whole(value: Any) -> bool:
    """Is this an integer (a bool is not)?"""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Is this a real number (a bool is not)?"""
    return isinstance(value, Real) and not isinstance(value, bool)


def nearest(word: object, choices: Iterable[str], *, otherwise: str) -> str:
    """Advice for a misspelt word."""
    lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(str(word).lower(), lower, n=1)
    return f"perhaps {lower[found[0]]!r} is meant" if found else otherwise


def check_std(name: str, std: float) -> None:
    """Refuse a standard deviation that is not a positive number."""
    require(
        is_real(std) and 0 < std < float("inf"),
        rule=f"{name} is a standard deviation above 0",
        received=std,
        advice="pass a positive number",
    )
