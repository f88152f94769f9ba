"""Whether a value is of a kind. Kinds are written as types: TypedDict, list, dict, Literal, unions and plain types.

A tuple stands for a list of so many entries, since JSON has no tuples.
"""

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

Test = Callable[[Any], str | None]


@functools.cache
def misfit_test(kind: Any) -> Test:
    """What finds the first entry of a value that does not fit the kind; it returns the entry's name, or None."""
    if is_typeddict(kind):
        return _test_of_record(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: None
    if origin is list:
        return _test_of_many(list, misfit_test(inner[0]), enumerate)
    if origin is tuple:
        return _test_of_tuple([misfit_test(each) for each in inner])
    if origin is dict:
        return _test_of_many(dict, misfit_test(inner[1]), lambda value: value.items())
    if origin is Literal:
        return lambda value: None if isinstance(value, str) and value in inner else ""
    if origin in (Union, types.UnionType):
        return _test_of_union([misfit_test(each) for each in inner])
    return lambda value: None if _PLAIN[kind](value) else ""


def _test_of_record(kind: Any) -> Test:
    hints = get_type_hints(kind, include_extras=True)
    optional = {key for key, inner in hints.items() if get_origin(inner) is NotRequired}
    tests = {key: misfit_test(get_args(inner)[0] if key in optional else inner) for key, inner in hints.items()}

    def test(value: Any) -> str | None:
        if not isinstance(value, dict):
            return ""
        for key, inner in tests.items():
            if key not in value:
                if key not in optional:
                    return key
            elif (wrong := inner(value[key])) is not None:
                return _joined(key, wrong)
        return None

    return test


def _test_of_tuple(inner: list[Test]) -> Test:
    def test(value: Any) -> str | None:
        if not isinstance(value, list) or len(value) != len(inner):
            return ""
        wrong = ((place, each(entry)) for place, (each, entry) in enumerate(zip(inner, value, strict=True)))
        return next((_joined(str(place), found) for place, found in wrong if found is not None), None)

    return test


def _test_of_many(kind: type, inner: Test, entries: Callable[[Any], Iterable[tuple[Any, Any]]]) -> Test:
    def test(value: Any) -> str | None:
        if not isinstance(value, kind):
            return ""
        for key, each in entries(value):
            wrong = inner(each)
            if wrong is not None:
                return _joined(str(key), wrong)
        return None

    return test


def _test_of_union(inner: list[Test]) -> Test:
    def test(value: Any) -> str | None:
        wrong = [each(value) for each in inner]
        return None if None in wrong else max(map(str, wrong), key=len)

    return test


def _joined(key: str, inner: str) -> str:
    return f"{key}.{inner}" if inner else key


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**63


def is_text(value: Any) -> bool:
    """A lone surrogate cannot be written anywhere."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    float: _is_number,
    int: _is_count,
    str: is_text,
    bool: lambda value: isinstance(value, bool),
    type(None): lambda value: value is None,
}
