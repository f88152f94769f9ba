"""Words of the command line that are understood in more than one form: `--cell gru`, `--seeds 0,1,2`."""

from collections.abc import Sequence

_CAPITALS = ("--cell",)  # options whose values are names in capitals
_LISTS = ("--seeds", "--episodes")  # options whose values may be apart by commas


def understood(given: Sequence[str]) -> list[str]:
    """The words of a command in the form that its options have."""
    words, option = [], ""
    for word in given:
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            words += [option, *_values(option, value)] if equals and option in (*_CAPITALS, *_LISTS) else [word]
        else:
            words += _values(option, word)
    return words


def _values(option: str, word: str) -> list[str]:
    if option in _CAPITALS:
        return [word.upper()]
    return [part.strip() for part in word.split(",") if part.strip()] if option in _LISTS else [word]
