"""Content made to break those who look: they answer with a sentence, within 5 seconds of processor time and 1 GB."""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from report.made_up import finish, stored_study

from beliefscope.store import StudyFolder, read_record
from beliefscope.store.files import _sealed
from beliefscope.store.layout import RunFiles

COMMANDS = ("status", "status --check", "export", "claims", "report --out {}-report")
LOOK = """
import io, json, resource, signal, sys, contextlib
from pathlib import Path
from beliefscope.cli import main
import beliefscope.claims, beliefscope.report, beliefscope.report.figures
_, most = resource.getrlimit(resource.RLIMIT_AS)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, most))
for line in sys.stdin:
    signal.setitimer(signal.ITIMER_PROF, 5)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main(line.split())
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps([status, said.getvalue()]), flush=True)
"""


class Place(NamedTuple):
    """Where a hostile thing is put."""

    study: StudyFolder
    run: RunFiles
    record: Path  # of a measurement
    trace: Path


def deeply_nested(place: Place) -> None:
    for file in (place.record, place.run.spec, place.run.trained):
        file.write_bytes(b'{"belief": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def nested_until_it_is_sealed(place: Place) -> None:
    """Deep enough for those who walk through it, not too deep for the parser."""
    deep: list = []
    for _ in range(480):
        deep = [deep]
    _write(place.record, {**read_record(place.record), "belief": deep})


def many_small_things(place: Place) -> None:
    """Each takes three bytes on disk and 64 in memory; the file is not too large for a record of ours."""
    for file in (place.record, place.run.spec, place.run.metrics):
        file.write_bytes(b'{"belief": [' + b"[]," * (20 * 2**20) + b"[]]}")
    text = place.study.files.study.read_bytes().rstrip()  # and as many as are read
    place.study.files.study.write_bytes(text[:-1] + b', "more": [' + b'{"":0},' * (2**21 - 10_000) + b"{}]}")


def huge_integers(place: Place) -> None:
    record = read_record(place.record)
    for digits in (400, 4000):
        _write(place.record, record | {"belief": {**record["belief"], "bits": 10**digits}})
    place.run.failed.write_text('{"episode": ' + "9" * 100_000 + "}")


def no_numbers(place: Place) -> None:
    record = read_record(place.record)
    odd = {"bits": float("nan"), "ceiling": float("inf"), "standard_error": float("-inf")}
    _write(place.record, record | {"belief": record["belief"] | odd, "return": float("nan")})


def keys_twice(place: Place) -> None:
    text = place.study.files.study.read_text().rstrip()
    place.study.files.study.write_text(text[:-1] + ', "runs": [], "runs": 3}')


def other_encodings(place: Place) -> None:
    """A byte order mark, UTF-16 and line ends of Windows."""
    place.record.write_bytes(b"\xef\xbb\xbf" + place.record.read_bytes())
    place.study.files.manifest.write_text('{"calls": []}', "utf-16")
    place.run.metrics.write_bytes(place.run.metrics.read_bytes().replace(b"\n", b"\r\n\x1c\x85"))


def zip_bombs(place: Place) -> None:
    """Zeros that unpack to 4 GB, and a member that says it is small."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(0))
    with zipfile.ZipFile(place.trace, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("memory.npy", "w", force_zip64=True) as member:
            for _ in range(4):
                member.write(bytes(2**26))
        archive.writestr("sha256.npy", buffer.getvalue())
    content = place.trace.read_bytes()
    other = sorted(place.trace.parent.glob("*.npz"))[-1]
    other.write_bytes(content.replace((2**28).to_bytes(4, "little"), (2**20).to_bytes(4, "little")))


def a_sparse_record(place: Place) -> None:
    os.truncate(place.record, 10 * 2**30)


def deep_folders(place: Place) -> None:
    """Deeper than Python's recursion goes, and than a path may be long."""
    here = os.getcwd()
    os.chdir(place.study.path)
    for _ in range(2500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)


def loops_of_links(place: Place) -> None:
    (place.study.path / "a").symlink_to("b")
    (place.study.path / "b").symlink_to("a")
    (place.run.folder / "loop").symlink_to("..")


def names_beyond_text(place: Place) -> None:
    for name in (b"\xff\xfe", b"\n\x1b[2J", b"x" * 255, b"-rf"):
        Path(os.fsdecode(os.fsencode(place.run.params) + b"/" + name)).touch()
        Path(os.fsdecode(os.fsencode(place.record.parent) + b"/" + name)).touch()


THINGS: tuple[Callable[[Place], None], ...] = (
    deeply_nested,
    nested_until_it_is_sealed,
    many_small_things,
    huge_integers,
    no_numbers,
    keys_twice,
    other_encodings,
    zip_bombs,
    a_sparse_record,
    deep_folders,
    loops_of_links,
    names_beyond_text,
)


def _write(file: Path, record: dict) -> None:
    file.write_text(json.dumps(_sealed(record)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    stored = stored_study(tmp_path_factory.mktemp("whole"))
    for run in stored.runs:
        finish(stored, run)
        stored.files.run(run.id).params.mkdir()
    return stored.path


@pytest.fixture(scope="module")
def looking():
    """A process that looks, with limits; it lasts, since it takes long to begin."""
    with subprocess.Popen(
        [sys.executable, "-c", LOOK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def look(command: str, folder: Path) -> tuple[int, str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{command.format(folder)} {folder}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"{command} was ended by {process.wait()}"
            return tuple(json.loads(answer))

        yield look


@pytest.fixture
def place(whole) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp())  # not pytest's, which cannot remove folders as deep as some here
    stored = StudyFolder(shutil.copytree(whole, folder / "study"))
    run = stored.runs[0]
    results = {piece.kind: piece.result(stored.path) for piece in reversed(run.pieces)}
    yield Place(stored, stored.files.run(run.id), results["measure"], results["trace"])
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing.__name__)
def test_whoever_looks_at_hostile_content_answers_with_a_sentence(thing, place, looking):
    thing(place)
    for command in COMMANDS:
        status, err = looking(command, place.study.path)
        assert status in (0, 1, 2), command
        assert err.count("\n") <= 1, err
        assert err == "" or err.startswith("beliefscope: "), err
        assert err.replace("\n", "").isprintable(), err


@pytest.mark.slow
def test_a_record_that_shrinks_and_grows_while_it_is_read_is_whole_or_damaged(place, looking):
    content, stop = place.record.read_bytes(), threading.Event()

    def change() -> None:
        while not stop.is_set():
            place.record.write_bytes(content * 50)
            os.truncate(place.record, len(content) // 2)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for command in COMMANDS * 2:
            status, err = looking(command, place.study.path)
            assert status in (0, 1), err
            assert err.count("\n") <= 1, err
    finally:
        stop.set()
        changing.join()
