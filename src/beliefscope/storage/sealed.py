"""JSON that knows whether it was altered: every record carries, as "sum", the digest of all its other entries."""

import hashlib
import json
from pathlib import Path
from typing import Any

from beliefscope.storage.atomic import write_atomic
from beliefscope.storage.damaged import Damaged

Record = dict[str, Any]


def write_record(path: Path, record: Record) -> None:
    """One record, as a JSON file."""
    write_atomic(path, (json.dumps(_sealed(record), indent=1, allow_nan=False) + "\n").encode())


def read_record(path: Path) -> Record:
    """The record without its sum."""
    return _opened(path, path.read_bytes())


def write_lines(path: Path, records: list[Record]) -> None:
    """Many records, a line each."""
    write_atomic(path, "".join(json.dumps(_sealed(record), allow_nan=False) + "\n" for record in records).encode())


def read_lines(path: Path) -> list[Record]:
    return [_opened(path, line) for line in path.read_bytes().splitlines()]


def _sealed(record: Record) -> Record:
    return {**record, "sum": _digest(record)}


def _digest(record: Record) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _opened(path: Path, text: bytes) -> Record:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(record, dict) or record.pop("sum", None) != _digest(record):
        raise Damaged(path, "its checksum does not fit its content")
    return record
