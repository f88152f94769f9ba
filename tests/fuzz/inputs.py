"""Readers that anybody's input may reach, and inputs for them: whole ones that are altered at random.

A reader may accept an input, or refuse it by a `ValueError` (`Damaged` is one). Whatever else it raises is a mistake.
"""

import contextlib
import io
import json
import os
import random
import string
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars
from fuzz.limits import MEMORY, SECONDS, limited, memory_used, no_more_memory, quiet
from report.made_up import TOML, finish, stored_study
from study.fault_kinds import ODD, altered, mutate

from beliefscope import ExactFilter, TMaze, pairs_from_trajectories
from beliefscope.auditing.logs import read_log
from beliefscope.claims import as_text, ledger
from beliefscope.cli import main
from beliefscope.cli.audit import _array as read_array
from beliefscope.pomdp.pomdp_file.read import classic_text, parse_pomdp, parse_tables
from beliefscope.results.curves import panels
from beliefscope.results.table import read_csv
from beliefscope.store import StudyFolder, load_arrays, read_lines, read_record, save_arrays
from beliefscope.store.files import _sealed
from beliefscope.store.pieces import Piece
from beliefscope.store.records import checked, read_measurement, read_trace, read_trained
from beliefscope.store.schema import Evaluation
from beliefscope.study import read_study

SERIES = (
    polars.Series([1, 2, None, 4, 5, 6]),
    polars.Series(["x"] * 6),
    polars.Series([[1], [2, 3], None, [], [1], [1]]),
    polars.Series([{"a": 1}] * 6),
    polars.Series([True] * 6),
    polars.Series([b"x"] * 6),
    polars.Series([None] * 6),
    polars.Series([2**63] * 6, dtype=polars.UInt64),
    polars.Series([float("nan")] * 6),
    polars.Series([1, 2, 3, 4, 5, 6]).cast(polars.Datetime),
    polars.Series(["x"] * 6, dtype=polars.Categorical),
    polars.Series([[[0.5]]] * 6),
)
CLASSICS = ("tiger", "tiger", "crying-baby", "cheese-maze")
WORDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R", ":", "*", "0.5", "uniform")
OPTIONS = ("--out", "--check", "--format", "csv", "--keep-ends", "--help", "-x", "", "\0", "é", "\udc80", "../..", "0")


class Fuzzer:
    """Makes inputs and gives them to readers, a kind at a time; `counts` says how many."""

    def __init__(self, seed: int, place: Path):
        self.draw, self.place = random.Random(seed), place
        self._contents: dict[Path, bytes] = {}  # of whole files
        self._parts: dict[Path, Any] = {}
        self.kinds: dict[str, Callable[[], Any]] = {
            "pomdp": self.pomdp,
            "toml": self.toml,
            "record": self.record,
            "lines": self.lines,
            "npz": self.npz,
            "log": self.log,
            "parquet": self.parquet,
            "array": self.array,
            "trajectories": self.trajectories,
            "csv": self.csv,
            "study": self.study_folder,
            "report": self.report,
            "command": self.command,
        }
        self._memory = memory_used()

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
            assert memory_used() - self._memory < MEMORY, f"the {kind} of seed {seed} took too much memory"
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
        piece = self.draw.choice(self._pieces)
        file = self._spoiled_copy(piece.result(self.study.path))
        read_trained(file) if piece.kind == "train" else read_measurement(piece, file)

    def lines(self) -> None:
        file = self._spoiled_copy(self._metrics)
        for line in read_lines(file):
            checked(file, line, Evaluation)

    def npz(self) -> None:
        read_trace(self._spoiled_copy(self._trace))

    def log(self) -> None:
        """A file of recorded episodes."""
        name = self.draw.choice(("padded.npz", "ragged.npz"))
        file = self.place / name
        if self.draw.random() < 0.6:
            file.write_bytes(mutate(self.draw, self._logs[name]))
        else:
            with np.load(io.BytesIO(self._logs[name])) as whole:
                arrays = dict(whole)
            odd = self.draw.choice([*arrays, "memory.h", "sees_actions"])
            np.savez(file, allow_pickle=False, **(arrays | {odd: self._odd_array()}))
        read_log(file, self._maze)

    def parquet(self) -> None:
        """The same as Parquet, which is slow, since another process tries it first."""
        file = self.place / "log.parquet"
        if self.draw.random() < 0.6:
            file.write_bytes(mutate(self.draw, self._logs["log.parquet"]))
        else:
            columns = {**self._columns, self.draw.choice([*self._columns, "reward"]): self.draw.choice(SERIES)}
            polars.DataFrame(columns, strict=False).write_parquet(file)
        read_log(file, self._maze)

    def array(self) -> None:
        """An array for `beliefscope bits`."""
        file, buffer = self.place / "odd.npy", io.BytesIO()
        np.save(buffer, self._odd_array())
        file.write_bytes(mutate(self.draw, buffer.getvalue()))
        read_array(file)

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
        with self._one_odd(self._records):
            stored = StudyFolder(self.study.path)
            stored.states()
            stored.csv()

    def report(self) -> None:
        """The report of such a folder, or of something that is none."""
        with self._one_odd([*self._records, *self._records, self._trace, self._metrics]):
            where = self.study.path if self.draw.random() < 0.95 else self.place / "odd.csv"
            self._main(["report", str(where), "--out", str(self.place / "report")])

    def command(self) -> None:
        """A command line that looks; in this process."""
        words = [self.draw.choice(("status", "export", "claims", "list", "archive", "", "stat"))]
        places = (str(self.study.path), str(self.place / "odd.csv"), str(self.place / "nowhere"), str(self.place))
        words += [self.draw.choice((*places, *OPTIONS, self._text(6))) for _ in range(self.draw.randint(0, 3))]
        if "archive" in words and str(self.study.path) in words:
            words.append("--not-in-earnest")
        words = ["elsewhere" if before == "--out" else word for before, word in zip(["", *words], words, strict=False)]
        self._main(words)

    def _main(self, words: list[str]) -> None:
        with quiet() as said:
            try:
                status = main(words)
            except SystemExit as ended:  # tyro, for words that it does not know
                status = ended.code
        assert status in (0, 1, 2, None), (words, status)
        assert "Traceback" not in said.getvalue(), words

    @contextlib.contextmanager
    def _one_odd(self, files: list[Path]) -> Iterator[None]:
        """One of these files is odd for a while."""
        file = self.draw.choice(files)
        before = self._content(file)
        file.write_bytes(self._spoiled(file))
        try:
            yield
        finally:
            file.write_bytes(before)

    def _spoiled_copy(self, file: Path) -> Path:
        there = self.place / f"odd{file.suffix}"
        there.write_bytes(self._spoiled(file))
        return there

    def _spoiled(self, file: Path) -> bytes:
        """What the file holds with its bytes altered, or with something odd in it and sealed again."""
        if self.draw.random() < 0.3:
            return mutate(self.draw, self._content(file))
        if file.suffix == ".npz":
            arrays, odd = self._parsed(file), self.place / "sealed.npz"
            save_arrays(odd, arrays | {self.draw.choice([*arrays, "more"]): self._odd_array()})
            return odd.read_bytes()
        if file.suffix == ".jsonl":
            lines = [altered(self.draw, line) if self.draw.random() < 0.5 else line for line in self._parsed(file)]
            return "".join(json.dumps(_sealed(line)) + "\n" for line in lines).encode()
        record = altered(self.draw, self._parsed(file))
        if record and self.draw.random() < 0.3:
            record = altered(self.draw, record)
        return json.dumps(_sealed(record)).encode()

    def _content(self, file: Path) -> bytes:
        if file not in self._contents:
            self._contents[file] = file.read_bytes()
        return self._contents[file]

    def _parsed(self, file: Path) -> Any:
        """Its arrays, lines or record, without sums."""
        if file not in self._parts:
            readers = {".npz": load_arrays, ".jsonl": read_lines, ".json": read_record}
            self._parts[file] = readers[file.suffix](file)
        return self._parts[file]

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
    def _pieces(self) -> list[Piece]:
        return [piece for piece in self.study.pieces if piece.kind != "trace"]

    @cached_property
    def _columns(self) -> dict[str, Any]:
        """Six steps of two episodes."""
        return {
            "episode": [0, 0, 0, 1, 1, 1],
            "observation": [0, 1, 2, 1, 2, 0],
            "action": [0, 0, 1, 0, 0, 2],
            "memory": [[0.5, 0.0]] * 6,
        }

    @cached_property
    def _logs(self) -> dict[str, bytes]:
        """Whole files of recorded episodes, by name."""
        _, *rest = self._columns.values()
        rows = dict(zip(("observations", "actions", "memory"), map(np.array, rest), strict=True))
        padded = {name: array.reshape(2, 3, *array.shape[1:]) for name, array in rows.items()}
        buffers = {name: io.BytesIO() for name in ("padded.npz", "ragged.npz", "log.parquet")}
        np.savez(
            buffers["padded.npz"], allow_pickle=False, **padded, lengths=np.array([3, 2]), rewards=np.zeros((2, 3))
        )
        np.savez(
            buffers["ragged.npz"],
            allow_pickle=False,
            **rows,
            episode_ends=np.array([0, 0, 1, 0, 0, 1]),
            states=np.zeros(6),
        )
        polars.DataFrame(self._columns).write_parquet(buffers["log.parquet"])
        return {name: buffer.getvalue() for name, buffer in buffers.items()}

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
def fuzzer(seed: int) -> Iterator[Fuzzer]:
    """In a folder of its own, in memory where there is some."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        os.chdir(place)  # for files that commands are told to write
        try:
            made = Fuzzer(seed, Path(place))
            for kind in ("pomdp", "trajectories", "report"):  # so that all is imported
                made.once(kind)
            made._memory = memory_used()
            with no_more_memory():
                yield made
        finally:
            os.chdir(here)
