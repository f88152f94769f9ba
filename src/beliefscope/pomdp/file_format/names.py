"""The names of a file's states, actions or observations: from a word to an index and back."""

import re
from dataclasses import dataclass

_PREAMBLE_WORDS = ("discount", "values", "reward", "cost", "states", "actions", "observations")
_START_WORDS = ("start", "include", "exclude")
_BODY_WORDS = ("T", "O", "R", "uniform", "identity", "reset")
RESERVED = frozenset((*_PREAMBLE_WORDS, *_START_WORDS, *_BODY_WORDS))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


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
        """The index that a name or an integer stands for, if it does."""
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
