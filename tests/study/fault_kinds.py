"""What is done to the files of a study: each function alters one file, or puts something else in its place."""

import io
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beliefscope.store import load_arrays, read_lines, save_arrays
from beliefscope.store.files import _sealed

ODD: tuple[Any, ...] = (None, True, 0, -1, 10**30, 1.5, "", "x", "\ud800", "../..", "\x1b[2J", [], [[]], {}, {"": None})
ODD += (float("nan"), float("inf"), 1e308, -1e308, 5e-324, 2**63, 2**31, "é" * 300, "NaN", "<b>", [0.5], [1, 2, 3])


def mutate(draw: random.Random, content: bytes) -> bytes:
    """Flip, cut, double, fill or insert."""
    if not content:
        return b"\0"
    start, length = draw.randrange(len(content)), draw.choice([1, 1, 2, 8, 64])
    part = content[start : start + length]
    how = draw.randrange(7)
    if how == 0:
        return content[:start]
    if how == 1:
        return content[:start] + content[start + length :]
    if how == 2:
        return content[:start] + part + part + content[start + length :]
    if how == 3:
        return content[:start] + draw.choice([b"\0", b"\xff", b" ", b"9"]) * len(part) + content[start + length :]
    if how == 4:
        return content[:start] + draw.randbytes(length) + content[start:]
    if how == 5:
        other = draw.randrange(len(content))
        return content[:start] + content[other : other + length] + content[start + length :]
    flipped = bytearray(content)
    flipped[start] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def altered(draw: random.Random, record: Any) -> Any:
    """A record with one entry less, or with something odd in place of one."""
    record = json.loads(json.dumps(record))
    inner = record
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = draw.choice(keys)
        if isinstance(inner[key], dict | list) and len(inner[key]) and draw.random() < 0.7:
            inner = inner[key]
            continue
        if draw.random() < 0.4:
            del inner[key]
        else:
            inner[key] = draw.choice(ODD)
        return record


def flip(draw: random.Random, file: Path) -> None:
    file.write_bytes(mutate(draw, file.read_bytes()))


def remove(draw: random.Random, file: Path) -> None:
    file.unlink()


def pipe(draw: random.Random, file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(draw: random.Random, file: Path) -> None:
    file.unlink()
    file.mkdir()
    if draw.random() < 0.5:
        (file / "inside").write_bytes(b"x")


def socket_file(draw: random.Random, file: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(file.with_name("s")))
    file.with_name("s").rename(file)


def huge(draw: random.Random, file: Path) -> None:
    os.truncate(file, 2**40)


def swap(draw: random.Random, file: Path) -> None:
    """The file of another place in the study, whole as it is."""
    study = next(parent for parent in file.parents if (parent / "study.json").exists())
    others = sorted(each for each in study.rglob(f"*{file.suffix}") if each.is_file() and each != file)
    if others:
        shutil.copyfile(draw.choice(others), file)


def leave_unfinished(draw: random.Random, file: Path) -> None:
    """What a killed write leaves, and a pipe of such a name."""
    number = draw.choice([1, 4_000_000, os.getpid()])
    left = file.with_name(f".{file.name}.{number}.tmp")
    left.unlink(missing_ok=True)
    left.write_bytes(file.read_bytes()[:10]) if draw.random() < 0.7 else os.mkfifo(left)


def forge(draw: random.Random, file: Path) -> None:
    """Another content, with the checksum that belongs to it, that no command of beliefscope writes."""
    if file.suffix == ".npz":
        _forge_arrays(draw, file)
    elif file.suffix == ".eqx":
        import hashlib

        buffer = io.BytesIO()
        np.save(buffer, np.zeros(draw.randrange(3)))
        file.write_bytes(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).hexdigest().encode())
    elif file.suffix == ".jsonl":
        lines: list[Any] = read_lines(file)
        lines[draw.randrange(len(lines))] = {"episode": draw.choice(ODD)}
        file.write_text("".join(json.dumps(_sealed(line)) + "\n" for line in lines))  # `write_lines` refuses NaN
    else:
        record = json.loads(file.read_text())
        record.pop("sum", None)
        _forge_record(draw, file, record)


def _forge_arrays(draw: random.Random, file: Path) -> None:
    arrays = load_arrays(file)
    name = draw.choice(sorted(arrays))
    odd = (np.zeros(()), np.zeros(3), np.array(["x"]), np.zeros((2, 0)), np.zeros((1, 2, 3, 4, 5)))
    save_arrays(file, arrays | {name: draw.choice(odd)})


# The entries that every reader needs: without one of them, or with another kind, a record is of no use.
_NEEDED = {
    "study.json": ["name", "settings", "runs"],
    "manifest.json": ["calls"],
    "trained.json": ["files"],
    "spec.json": ["pomdp", "seed"],
    "measure": ["run", "episode", "belief", "epsilon", "return"],
}


def _forge_record(draw: random.Random, file: Path, record: dict[str, Any]) -> None:
    name = draw.choice(_NEEDED.get(file.name, _NEEDED["measure"]))
    odd = [each for each in (None, True, "", "x", "\ud800", [[]], [3]) if type(each) is not type(record.get(name))]
    if draw.random() < 0.4:
        record.pop(name, None)
    else:
        record[name] = draw.choice(odd)
    if file.name == "spec.json":
        file.write_text(json.dumps(record))
    else:
        file.unlink()
        file.write_text(json.dumps(_sealed(record), indent=1))


ON_FILES: dict[str, Callable[[random.Random, Path], None]] = {
    "mutated": flip,
    "forged": forge,
    "removed": remove,
    "swapped": swap,
    "pipe": pipe,
    "socket": socket_file,
    "folder": folder,
    "huge": huge,
    "unfinished": leave_unfinished,
}
