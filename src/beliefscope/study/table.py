"""A table of a TOML file, checked: only known keys, each with a value of its kind.

A kind is `bool`, `int`, `float`, `str`, `dict`, a list of one of them, or a union such as `str | list[int]`. Whole
numbers have at most 64 bits; they will do where a number is wanted, and become one, so that 0 and 0.0 mean the same.
"""

import difflib
import types
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from beliefscope.errors import is_real, is_whole, require

WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "a table"}
PLURALS = {bool: "booleans", int: "whole numbers", float: "numbers", str: "texts", dict: "tables"}


def read_table(table: dict[str, Any], *, what: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The table's values, of the kinds that `keys` names; `what` is what errors call the table."""
    for key in table:
        require(
            key in keys,
            rule=f"the keys of {what} are {', '.join(keys)}",
            received=key,
            advice=nearest(key, keys, otherwise="leave it out"),
        )
    return {key: _value(key, value, keys[key]) for key, value in table.items()}


def one_of(value: str, choices: Iterable[str], *, what: str) -> str:
    """The value, if it is one of the choices."""
    choices = list(choices)
    require(
        value in choices,
        rule=f"{what} is {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}",
        received=value,
        advice=nearest(value, choices, otherwise="choose one of these"),
    )
    return value


def nearest(word: object, choices: Iterable[str], *, otherwise: str) -> str:
    """Advice for a misspelt word."""
    lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(str(word).lower(), lower, n=1)
    return f"perhaps {lower[found[0]]!r} is meant" if found else otherwise


def _value(key: str, value: Any, kind: Any) -> Any:
    chosen = next((each for each in _alternatives(kind) if _fits(value, each)), None)
    advice = f"write [[{key}]], in double brackets" if kind == list[dict] else "change its value"
    require(chosen is not None, rule=f"{key} is {_words(kind)}", received=value, advice=advice)
    if not isinstance(value, list):
        return _number(value) if chosen is float else value
    values = [_number(each) for each in value] if get_args(chosen) == (float,) else value
    repeated = any(each in values[:place] for place, each in enumerate(values))
    require(bool(values), rule=f"{key} names at least one", received=value, advice="add one, or leave the key out")
    require(not repeated, rule=f"{key} names each but once", received=value, advice="leave out the repeated ones")
    return values


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(each, *get_args(kind)) for each in value)
    if kind is int:
        return is_whole(value) and abs(value) < 2**63
    if kind is float:
        return is_real(value) and (isinstance(value, float) or abs(value) < 2**53)
    return isinstance(value, kind)


def _number(value: int | float) -> float:
    return float(value) + 0.0  # so that −0 becomes 0


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def _words(kind: Any) -> str:
    def word(each: Any) -> str:
        return f"a list of {PLURALS[get_args(each)[0]]}" if get_origin(each) is list else WORDS[each]

    return " or ".join(word(each) for each in _alternatives(kind))
