"""Readers that anybody's input may reach, and inputs for them: whole ones that are altered at random.

A reader may accept an input, or refuse it by a `ValueError` (`Damaged` is one). Whatever else it raises is a mistake.
"""

import contextlib
import io
import json
import os
import random
import resource
import signal
import string
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from report.made_up import TOML, finish, stored_study
from study.fault_kinds import ODD, altered, mutate

from beliefscope import ExactFilter, TMaze, pairs_from_trajectories
from beliefscope.claims import as_text, ledger
from beliefscope.cli import main
from beliefscope.pomdp.pomdp_file.read import classic_text, parse_pomdp, parse_tables
from beliefscope.results.curves import panels
from beliefscope.results.table import read_csv
from beliefscope.store import StudyFolder, load_arrays, read_lines, read_record, save_arrays
from beliefscope.store.files import _sealed
from beliefscope.store.study_folder import read_trace
from beliefscope.study import read_study

SECONDS = 5  # of processor time that an input may take
MEMORY = 1e9  # bytes that the inputs may add to the process
CLASSICS = ("tiger", "tiger", "crying-baby", "cheese-maze")
WORDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R", ":", "*", "0.5", "uniform")
OPTIONS = ("--out", "--check", "--format", "csv", "--keep-ends", "--help", "-x", "", "\0", "é", "\udc80", "../..", "0")


class Fuzzer:
    """Makes inputs and gives them to readers, a kind at a time; `counts` says how many."""

    def __init__(self, seed: int, place: Path):
        self.draw, self.place = random.Random(seed), place
        self.kinds: dict[str, Callable[[], Any]] = {
            "pomdp": self.pomdp,
            "toml": self.toml,
            "record": self.record,
            "lines": self.lines,
            "npz": self.npz,
            "trajectories": self.trajectories,
            "csv": self.csv,
            "study": self.study_folder,
            "command": self.command,
        }
        self._memory = _memory()

    def once(self, kind: str) -> bool:
        """One input: was it accepted? Raises what is no refusal."""
        seed = self.draw.getrandbits(63)
        self.draw = random.Random(seed)
        try:
            with limited(SECONDS):
                self.kinds[kind]()
        except ValueError:
            return False
        except BaseException as error:
            error.add_note(f"the {kind} of seed {seed}")
            raise
        finally:
            assert _memory() - self._memory < MEMORY, f"the {kind} of seed {seed} took too much memory"
        return True

    def pomdp(self) -> None:
        text = self.draw.choice(self._pomdps)
        for _ in range(self.draw.randint(1, 3)):
            text = self._altered_text(text, WORDS)
        if self.draw.random() < 0.03:
            parse_pomdp(text, horizon=3, name="odd.pomdp")
        else:
            parse_tables(text, name="odd.pomdp")  # all but the making of JAX's arrays

    def toml(self) -> None:
        text = TOML
        for _ in range(self.draw.randint(1, 3)):
            text = self._altered_text(text, ("= ", "[[", "]]", '"', "1e999", "irrelevant = 99", "[training]", "true"))
        file = self.place / "odd.toml"
        file.write_text(text, "utf-8", errors="ignore")
        read_study(str(file))

    def record(self) -> None:
        file = self._copy(self.draw.choice(self._records[-40:]))  # study.json is large, and read with its folder
        if self.draw.random() < 0.5:
            file.write_bytes(mutate(self.draw, file.read_bytes()))
        else:
            record = json.loads(file.read_text())
            record.pop("sum", None)
            file.write_text(json.dumps(_sealed(altered(self.draw, record))))
        read_record(file)

    def lines(self) -> None:
        file = self._copy(self._metrics)
        file.write_bytes(mutate(self.draw, file.read_bytes()))
        read_lines(file)

    def npz(self) -> None:
        file = self._copy(self._trace)
        if self.draw.random() < 0.7:
            file.write_bytes(mutate(self.draw, file.read_bytes()))
        else:
            arrays = load_arrays(file)
            save_arrays(file, arrays | {self.draw.choice([*arrays, "more"]): self._odd_array()})
        read_trace(file)

    def trajectories(self) -> None:
        whole = {
            "memory": np.zeros((3, 4, 2)),
            "actions": np.zeros((3, 4), int),
            "observations": np.zeros((3, 4), int),
            "lengths": np.full(3, 4),
        }
        name = self.draw.choice(list(whole))
        odd = self._odd_array() if self.draw.random() < 0.7 else self.draw.choice([*ODD, [1, "x"], [[1], [2, 3]]])
        pairs_from_trajectories(jax.random.key(0), self._maze, ExactFilter(self._maze), **(whole | {name: odd}))

    def csv(self) -> None:
        content = self._table
        for _ in range(self.draw.randint(1, 3)):
            content = mutate(self.draw, content) if self.draw.random() < 0.5 else self._altered_cell(content)
        file = self.place / "odd.csv"
        file.write_bytes(content)
        table = read_csv(file)
        if self.draw.random() < 0.1:
            as_text(ledger(panels(table)))

    def study_folder(self) -> None:
        """A folder one of whose records is sealed and odd, or altered."""
        file = self.draw.choice(self._records)
        before = file.read_bytes()
        record = json.loads(before)
        record.pop("sum", None)
        try:
            file.write_text(json.dumps(_sealed(altered(self.draw, record))))
            stored = StudyFolder(self.study.path)
            stored.states()
            stored.csv()
        finally:
            file.write_bytes(before)

    def command(self) -> None:
        """A command line that looks; in this process."""
        words = [self.draw.choice(("status", "export", "claims", "list", "archive", "", "stat"))]
        places = (str(self.study.path), str(self.place / "odd.csv"), str(self.place / "nowhere"), str(self.place))
        words += [self.draw.choice((*places, *OPTIONS, self._text(6))) for _ in range(self.draw.randint(0, 3))]
        if "archive" in words and str(self.study.path) in words:
            words.append("--not-in-earnest")
        words = ["elsewhere" if before == "--out" else word for before, word in zip(["", *words], words, strict=False)]
        with _quiet() as said:
            try:
                status = main(words)
            except SystemExit as ended:  # tyro, for words that it does not know
                status = ended.code
        assert status in (0, 1, 2, None), (words, status)
        assert "Traceback" not in said.getvalue(), words

    @cached_property
    def study(self) -> StudyFolder:
        folder = self.place / "study"
        folder.mkdir()
        stored = stored_study(folder)
        for run in stored.runs:
            finish(stored, run)
        return stored

    @cached_property
    def _records(self) -> list[Path]:
        return [file for file in sorted(self.study.path.rglob("*.json")) if file.name != "spec.json"]

    @cached_property
    def _metrics(self) -> Path:
        return next(self.study.path.rglob("metrics.jsonl"))

    @cached_property
    def _trace(self) -> Path:
        return next(self.study.path.rglob("*.npz"))

    @cached_property
    def _table(self) -> bytes:
        return self.study.csv().encode()

    @cached_property
    def _maze(self) -> TMaze:
        return TMaze(3)

    @cached_property
    def _pomdps(self) -> list[str]:
        return [classic_text(name) for name in CLASSICS]

    def _copy(self, file: Path) -> Path:
        there = self.place / f"odd{file.suffix}"
        there.write_bytes(file.read_bytes())
        return there

    def _altered_text(self, text: str, words: tuple[str, ...]) -> str:
        if self.draw.random() < 0.5:
            return mutate(self.draw, text.encode()).decode("utf-8", "replace")
        start, length = self.draw.randrange(len(text) + 1), self.draw.choice([0, 1, 5, 30])
        odd = self.draw.choice((*words, *map(str, ODD), "-1", "nan", "1e999", "9" * 30, self._text(8)))
        return text[:start] + odd + text[start + length :]

    def _altered_cell(self, content: bytes) -> bytes:
        lines = content.decode("utf-8", "replace").splitlines()
        if not lines:
            return b""
        row = self.draw.randrange(len(lines))
        cells = lines[row].split(",")
        cells[self.draw.randrange(len(cells))] = str(
            self.draw.choice((*ODD, "nan", "inf", "9" * 30, '"', self._text(4)))
        )
        lines[row] = ",".join(cells)
        return "\n".join(lines).encode("utf-8", "replace")

    def _text(self, most: int) -> str:
        letters = string.printable + "é√\u202e\ud800\x00"
        return "".join(self.draw.choices(letters, k=self.draw.randint(0, most)))

    def _odd_array(self) -> np.ndarray:
        shape = self.draw.choice([(), (3,), (3, 4), (3, 4, 2), (0,), (3, 0, 2), (2, 6), (1, 1, 1, 1, 1)])
        kind = self.draw.choice(["f4", "f8", "i4", "u1", "?", "U3", "c8", "M8[s]"])
        value = self.draw.choice([0, 1, 3, 4, -1, 100])
        array = np.full(shape, value).astype(kind)
        if array.size and kind[0] == "f" and self.draw.random() < 0.3:
            array.flat[0] = self.draw.choice([np.nan, np.inf, -np.inf])
        return array


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """An input that takes more processor time than this has found a hang."""

    def end(number: int, frame: Any) -> None:
        raise TimeoutError(f"an input took more than {seconds} seconds")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def fuzzer(seed: int) -> Iterator[Fuzzer]:
    """In a folder of its own, in memory where there is some."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        os.chdir(place)  # for files that commands are told to write
        try:
            made = Fuzzer(seed, Path(place))
            made.study  # noqa: B018
            made._memory = _memory()
            yield made
        finally:
            os.chdir(here)


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


def _memory() -> float:
    """The most that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
