"""The head of a `.pomdp` file: discount, values, states, actions, observations and start, in any order."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from beliefscope.pomdp.file_format.names import RESERVED, Names, is_name, make_names
from beliefscope.pomdp.file_format.scanner import Scanner
from beliefscope.pomdp.file_format.statements import MAX_CELLS
from beliefscope.pomdp.tables import ROW_SUM_TOLERANCE

# A single probability may exceed 1 by as much as a row's sum may.
MAX_PROBABILITY = 1 + ROW_SUM_TOLERANCE
MAX_COUNTS = {"states": 1_000_000, "actions": 10_000, "observations": 1_000_000}
_REQUIRED = ("discount", "states", "actions", "observations")
_ENTRIES = (*_REQUIRED, "values", "start")


class Preamble(NamedTuple):
    """All that a file says before its first statement."""

    discount: float
    rewards_are_costs: bool
    states: Names
    actions: Names
    observations: Names
    initial: Float64[np.ndarray, " states"]


def read_preamble(scanner: Scanner) -> Preamble:
    """Everything up to the first `T`, `O` or `R`."""
    found: dict[str, Any] = {}
    while scanner.word not in ("T", "O", "R", ""):
        if scanner.word in found:
            raise scanner.unexpected(f"{scanner.word!r} only once")
        keyword = scanner.expect(*_ENTRIES)
        found[keyword] = _read_entry(scanner, keyword, found)
    missing = [keyword for keyword in _REQUIRED if keyword not in found]
    if missing:
        raise scanner.unexpected(f"{missing[0]!r} in the preamble, before all statements")
    states, actions, observations = found["states"], found["actions"], found["observations"]
    _check_size(scanner, states=states.count, actions=actions.count, observations=observations.count)
    return Preamble(
        discount=found["discount"],
        rewards_are_costs=found.get("values") == "cost",
        states=states,
        actions=actions,
        observations=observations,
        initial=found.get("start", np.full(states.count, 1 / states.count)),
    )


def _read_entry(scanner: Scanner, keyword: str, found: dict[str, Any]) -> Any:
    if keyword == "start":
        return _read_start(scanner, found.get("states"))
    scanner.expect(":")
    if keyword == "discount":
        return scanner.number(low=0.0, high=1.0)
    if keyword == "values":
        return scanner.expect("reward", "cost")
    return _read_names(scanner, keyword)


def _read_names(scanner: Scanner, keyword: str) -> Names:
    kind, most = keyword.removesuffix("s"), MAX_COUNTS[keyword]
    word = scanner.word
    if word.isascii() and word.isdigit():
        if len(word) > 9 or not 1 <= int(word) <= most:
            raise scanner.unexpected(f"a number of {keyword} from 1 to {most}")
        scanner.take()
        return make_names(kind, int(word), None)
    names: dict[str, int] = {}
    while is_name(scanner.word):
        if scanner.word in names:
            raise scanner.unexpected(f"distinct names of {keyword}")
        names[scanner.take()] = len(names)
    if not names or not _at_keyword(scanner):
        raise scanner.unexpected(f"the number of {keyword} or their names (a letter, then letters, digits, '_' or '-')")
    if len(names) > most:
        raise scanner.complaint(f"expected at most {most} {keyword}, but found {len(names)}")
    return Names(kind, len(names), tuple(names), names)


def _read_start(scanner: Scanner, states: Names | None) -> Float64[np.ndarray, " states"]:
    if states is None:
        raise scanner.complaint("expected 'states' before 'start'")
    how = scanner.take() if scanner.word in ("include", "exclude") else None
    scanner.expect(":")
    if how is not None:
        return _spread_evenly(_read_chosen(scanner, states) ^ (how == "exclude"), scanner)
    if scanner.accept("uniform"):
        return np.full(states.count, 1 / states.count)
    if scanner.word in states.index:
        return np.eye(1, states.count, states.index[scanner.take()])[0]
    index = states.find(scanner.word)
    numbers = scanner.numbers()
    if index is not None and states.count > 1 and len(numbers.values) == 1:
        return np.eye(1, states.count, index)[0]
    expected = f"{states.count} probabilities, a state or 'uniform'"
    near = ("uniform", *(states.names or ()))
    row = scanner.check(numbers, count=states.count, low=0.0, high=MAX_PROBABILITY, expected=expected, near=near)
    if not abs(row.sum() - 1) <= ROW_SUM_TOLERANCE:
        raise scanner.complaint(f"start sums to {row.sum():.9g}, but expected 1", numbers.start)
    return row


def _read_chosen(scanner: Scanner, states: Names) -> Bool[np.ndarray, " states"]:
    chosen = np.zeros(states.count, bool)
    while (index := states.find(scanner.word)) is not None:
        chosen[index] = True
        scanner.take()
    if not chosen.any() or not _at_keyword(scanner):
        raise scanner.unexpected(f"a state's name or an index below {states.count}", near=states.names or ())
    return chosen


def _spread_evenly(chosen: Bool[np.ndarray, " states"], scanner: Scanner) -> Float64[np.ndarray, " states"]:
    if not chosen.any():
        raise scanner.complaint("expected at least one state to start from, but found all of them excluded")
    return chosen / chosen.sum()


def _at_keyword(scanner: Scanner) -> bool:
    """Does a list of names end here?"""
    return scanner.word in RESERVED or scanner.word == ""


def _check_size(scanner: Scanner, *, states: int, actions: int, observations: int) -> None:
    """Refuse what would not fit into memory (one entry a row) or into 64-bit keys."""
    rows = max(actions * states, actions * observations)
    cells = actions * states * states * observations
    if rows > MAX_CELLS or cells >= 1 << 62:
        counts = f"{states} states, {actions} actions and {observations} observations"
        raise scanner.complaint(f"expected a POMDP of at most {MAX_CELLS} table rows, but found {counts}")
