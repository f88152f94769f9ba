"""The text of a `.pomdp` file as a stream of words, names and numbers; every error names the file and the line.

Words are cut out one at a time, runs of numbers all at once: a dense matrix of millions never becomes a Python list.

Wildcard statements, such as `T: * : 3 : 4 0.5`, are kept in the order of the file. A table over k axes (T: action,
state, next state) is given by statements "every cell that agrees with these indices holds this value", where an index
may be left open and later statements override earlier ones. A cell, and likewise a statement, is one integer: its
indices in mixed radix, the last axis fastest, open axes as 0. Statements with the same axes open form a layer, in which
only the latest of each key counts.

`Table` gives the result of all statements: the value of any cell, and the cells that are not zero. A cell is looked up
by one binary search per layer. The cost grows with the number of statements and of non-zero cells, never with the size
of the table.
"""

import difflib
import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

_WORD = re.compile(r"\s*+(:|\*|[^\s:*]++|)", re.ASCII)
_UNSIGNED = r"(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?![A-Za-z0-9_.+-])"
_NUMBER = re.compile(rf"\s*+([+-]?+)\s*+({_UNSIGNED})", re.ASCII)
_NUMBERS = re.compile(rf"(?:\s*+[+-]?+\s*+{_UNSIGNED})*+", re.ASCII)
_LONE_SIGN = re.compile(r"([+-])\s+", re.ASCII)
_COMMENT = re.compile(r"#[^\n]*+")
_PREAMBLE_WORDS = ("discount", "values", "reward", "cost", "states", "actions", "observations")
_START_WORDS = ("start", "include", "exclude")
_BODY_WORDS = ("T", "O", "R", "uniform", "identity", "reset")
RESERVED = frozenset((*_PREAMBLE_WORDS, *_START_WORDS, *_BODY_WORDS))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NAMES_TO_COMPARE = 10_000  # a suggestion is not worth comparing a misspelt word with a million names


class PomdpFileError(ValueError):
    """One sentence: the file, the line where there is one, what was expected and what was found."""


class Numbers(NamedTuple):
    """A run of numbers and where in the text it starts."""

    start: int
    values: Float64[np.ndarray, " numbers"]


class Scanner:
    """Reads from left to right; `word` is the next word, "" at the end of the file."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._text = text
        if "\0" in text:
            raise self.complaint("the file is binary: it holds a NUL character", text.index("\0"))
        # Line breaks stay, so that lines can be counted later.
        self._text = _COMMENT.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
        self._move_to(0)

    def take(self) -> str:
        """The next word, stepping over it."""
        word = self.word
        self._move_to(self._end)
        return word

    def accept(self, symbol: str) -> bool:
        """Step over the next word if it is this one."""
        found = self.word == symbol
        if found:
            self._move_to(self._end)
        return found

    def expect(self, *symbols: str) -> str:
        """The next word, which must be one of these."""
        if self.word not in symbols:
            raise self.unexpected(either(*map(repr, symbols)), near=symbols)
        return self.take()

    def number(self, *, low: float, high: float) -> float:
        """One number in [low, high]."""
        match = _NUMBER.match(self._text, self._start)
        value = float(match[1] + match[2]) if match else np.nan
        if match is None or not low <= value <= high:
            raise self.unexpected(_range(low, high))
        self._move_to(match.end())
        return value

    def numbers(self) -> Numbers:
        """As many numbers as there are."""
        start = self._start
        end = _NUMBERS.match(self._text, start).end()  # pyright: ignore[reportOptionalMemberAccess] (matches nothing)
        run = _LONE_SIGN.sub(r"\1", self._text[start:end])
        self._move_to(end)
        return Numbers(start, np.fromstring(run, dtype=np.float64, sep=" "))

    def check(
        self, numbers: Numbers, *, count: int, low: float, high: float, expected: str = "", near: Sequence[str] = ()
    ) -> Float64[np.ndarray, " count"]:
        """The run's values: `count` of them, all in [low, high]."""
        start, values = numbers
        expected = expected or f"{count} numbers"
        if len(values) == 0:
            raise self.unexpected(expected, near=near)
        if len(values) < count:
            raise self.complaint(f"expected {expected}, but found only {len(values)} before {self._shown()}")
        if len(values) > count:
            raise self.complaint(f"expected {expected}, but found {len(values)}", self._place(start, count)[0])
        wrong = np.flatnonzero(~((values >= low) & (values <= high)))
        if wrong.size:
            place, found = self._place(start, int(wrong[0]))
            raise self.complaint(f"expected {_range(low, high)}, but found {found!r}", place)
        return values

    def unexpected(self, expected: str, *, near: Sequence[str] = ()) -> PomdpFileError:
        """The error that something else was expected than the next word, with the nearest word of `near`."""
        nearest = difflib.get_close_matches(self.word[:80], near[:_NAMES_TO_COMPARE], n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        return self.complaint(f"expected {expected}, but found {self._shown()}{hint}")

    def complaint(self, sentence: str, place: int | None = None) -> PomdpFileError:
        """An error at the next word, or at another place of the text."""
        line = self._text.count("\n", 0, self._start if place is None else place) + 1
        return PomdpFileError(f"{self._name}, line {line}: {sentence}")

    def _move_to(self, position: int) -> None:
        match = _WORD.match(self._text, position)
        assert match is not None  # the empty word matches everywhere
        self.word, self._start, self._end = match[1], match.start(1), match.end(1)

    def _shown(self) -> str:
        word = self.word if len(self.word) <= 80 else self.word[:80] + "…"
        return repr(word) if word else "the end of the file"

    def _place(self, start: int, number: int) -> tuple[int, str]:
        """Where a run's n-th number stands, and how it is written."""
        match = next(islice(_NUMBER.finditer(self._text, start), number, None))
        return match.start(1), (match[1] + match[2])[:80]


def is_name(word: str) -> bool:
    """May this word name a state, an action or an observation?"""
    return word not in RESERVED and _NAME.fullmatch(word) is not None


@dataclass(frozen=True)
class Names:
    """`count` things of one kind; `names` is None where the file gives only their number."""

    kind: str  # "state", "action" or "observation"
    count: int
    names: tuple[str, ...] | None
    index: dict[str, int]

    def find(self, word: str) -> int | None:
        """The index that a name or an integer means, or None."""
        position = self.index.get(word)
        if position is None and word.isascii() and word.isdigit() and len(word) <= 9 and int(word) < self.count:
            return int(word)
        return position

    def label(self, index: int) -> str:
        """How the file calls it."""
        return str(index) if self.names is None else self.names[index]


def make_names(kind: str, count: int, names: tuple[str, ...] | None) -> Names:
    """Names of one kind with their reverse look-up."""
    return Names(kind, count, names, {} if names is None else {name: index for index, name in enumerate(names)})


def either(*choices: str) -> str:
    """`a, b or c`."""
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def _range(low: float, high: float) -> str:
    return f"a number from {low:.4g} to {high:.4g}"


MAX_CELLS = 30_000_000
ANY = -1  # the index of an open axis
_CHUNK = 1 << 20  # cells looked up at a time, which bounds the memory of intermediate results
_TINY = 1e-45  # what single precision, in which POMDPs are stored, just tells from 0


class Layer(NamedTuple):
    """The statements that leave the same axes open: ascending keys, and for each its latest statement."""

    open_axes: tuple[int, ...]
    keys: Int64[np.ndarray, " statements"]
    order: Int64[np.ndarray, " statements"]  # place in the file: the higher one wins
    values: Float64[np.ndarray, " statements"]


class Statements:
    """Collects statements in the order of the file; `sizes` are the lengths of the table's axes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.strides = tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
        self._patterns = array("b")  # bit k: axis k is open
        self._keys = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._keys)

    def set(self, indices: Sequence[int], value: float) -> None:
        """Every cell that begins with these indices, `ANY` agreeing with all, holds the value."""
        pattern, key = self._code(indices)
        self._patterns.append(pattern | (1 << len(self.sizes)) - (1 << len(indices)))
        self._keys.append(key)
        self._values.append(value)

    def set_block(
        self, indices: Sequence[int], places: Int64[np.ndarray, " cells"], values: Float64[np.ndarray, " cells"]
    ) -> None:
        """Of the cells that begin with these indices, those at the given flat places hold the values, the rest 0."""
        self.set(indices, 0.0)
        pattern, key = self._code(indices)
        self._patterns.frombytes(np.full(len(places), pattern, np.int8).tobytes())
        self._keys.frombytes((places.astype(np.int64) + key).tobytes())
        self._values.frombytes(values.astype(np.float64).tobytes())

    def layers(self) -> list[Layer]:
        """The statements that count, by which axes they leave open."""
        patterns = np.frombuffer(self._patterns, np.int8)
        keys, values = np.frombuffer(self._keys, np.int64), np.frombuffer(self._values, np.float64)
        members = {pattern: np.flatnonzero(patterns == pattern) for pattern in range(1 << len(self.sizes))}
        return [self._layer(pattern, order, keys, values) for pattern, order in members.items() if order.size]

    def _code(self, indices: Sequence[int]) -> tuple[int, int]:
        pattern = key = 0
        for axis, index in enumerate(indices):
            if index == ANY:
                pattern |= 1 << axis
            else:
                key += index * self.strides[axis]
        return pattern, key

    def _layer(
        self,
        pattern: int,
        order: Int64[np.ndarray, " some"],
        keys: Int64[np.ndarray, " all"],
        values: Float64[np.ndarray, " all"],
    ) -> Layer:
        order = order[np.argsort(keys[order], kind="stable")]
        ordered = keys[order]
        latest = np.append(ordered[1:] != ordered[:-1], True)
        order = order[latest]
        open_axes = tuple(axis for axis in range(len(self.sizes)) if pattern >> axis & 1)
        return Layer(open_axes, ordered[latest], order, np.where(np.abs(values[order]) < _TINY, 0.0, values[order]))


class Cells(NamedTuple):
    """Some cells of a table in ascending order and what they hold."""

    keys: Int64[np.ndarray, " cells"]
    values: Float64[np.ndarray, " cells"]


class Table:
    """The values of all cells, 0 where no statement sets one."""

    def __init__(self, statements: Statements) -> None:
        self.sizes = statements.sizes
        self._strides = statements.strides
        self._layers = statements.layers()

    def at(self, indices: Sequence[np.ndarray]) -> Float64[np.ndarray, " cells"]:
        """The values at arrays of indices, one array an axis."""
        keys = sum(index.astype(np.int64) * stride for index, stride in zip(indices, self._strides, strict=True))
        return self.look_up(np.asarray(keys, np.int64))

    def look_up(self, keys: Int64[np.ndarray, " cells"]) -> Float64[np.ndarray, " cells"]:
        """The values of these cells."""
        result = np.zeros(len(keys))
        for first in range(0, len(keys), _CHUNK):
            result[first : first + _CHUNK] = self._look_up_chunk(keys[first : first + _CHUNK])
        return result

    def count_candidates(self) -> int:
        """At least as many as there are non-zero cells; found without touching them."""
        return sum(
            int(np.count_nonzero(layer.values)) * math.prod(self.sizes[axis] for axis in layer.open_axes)
            for layer in self._layers
        )

    def nonzero(self) -> Cells:
        """All cells that do not hold 0."""
        keys = np.concatenate([np.empty(0, np.int64), *(self._agreeing(layer) for layer in self._layers)])
        keys.sort(kind="stable")  # several times as fast here as np.unique, because most runs are ascending already
        keys = keys[np.diff(keys, prepend=-1) > 0]
        values = self.look_up(keys)
        return Cells(keys[values != 0], values[values != 0])

    def _look_up_chunk(self, keys: Int64[np.ndarray, " cells"]) -> Float64[np.ndarray, " cells"]:
        values = np.zeros(len(keys))
        latest = np.full(len(keys), -1)
        for layer in self._layers:
            wanted = keys.copy()
            for axis in layer.open_axes:
                wanted -= keys // self._strides[axis] % self.sizes[axis] * self._strides[axis]
            place = np.minimum(np.searchsorted(layer.keys, wanted), len(layer.keys) - 1)
            wins = (layer.keys[place] == wanted) & (layer.order[place] > latest)
            latest[wins], values[wins] = layer.order[place[wins]], layer.values[place[wins]]
        return values

    def _agreeing(self, layer: Layer) -> Int64[np.ndarray, " cells"]:
        """Every cell that one of the layer's non-zero statements speaks of."""
        keys = layer.keys[layer.values != 0]
        for axis in layer.open_axes:
            keys = np.add.outer(keys, np.arange(self.sizes[axis]) * self._strides[axis]).ravel()
        return keys
