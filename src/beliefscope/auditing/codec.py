"""From the records of an audit to JSON and back, by the types that fields are annotated with."""

import dataclasses
import math
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np


def to_record(value: Any) -> Any:
    """Named tuples and dataclasses become dictionaries, tuples lists, and what is not finite text."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        return [to_record(each) for each in value.tolist()]
    if dataclasses.is_dataclass(value):
        return {field.name: to_record(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: to_record(getattr(value, name)) for name in value._fields}  # pyright: ignore
    if isinstance(value, dict):
        return {str(name): to_record(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_record(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no record")


def from_record(hint: Any, record: Any) -> Any:
    """The value that `to_record` was given, of the annotated type; entries that a class does not know are left out."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or record is None:
        return record
    if origin in (Union, types.UnionType):
        return from_record(next(each for each in inner if each is not type(None)), record)
    if origin is dict:
        return {name: from_record(inner[1], each) for name, each in record.items()}
    if origin is tuple:
        kinds = [inner[0]] * len(record) if inner[1:] == (...,) else inner
        return tuple(from_record(kind, each) for kind, each in zip(kinds, record, strict=True))
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        kinds = get_type_hints(hint)
        return hint(**{name: from_record(kinds[name], each) for name, each in record.items() if name in kinds})
    if hint is float:
        return float(record)
    if hint in (int, str, bool):
        return hint(record)
    return np.asarray(record, float)  # an array
