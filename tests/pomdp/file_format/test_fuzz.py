"""Whatever a file holds, it becomes a POMDP or a `PomdpFileError`, never anything else."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.file_format import CLASSICS, PomdpFileError, read_pomdp
from beliefscope.pomdp.file_format.classics import classic_text
from beliefscope.pomdp.file_format.names import RESERVED
from beliefscope.pomdp.file_format.reader import parse_tables
from beliefscope.pomdp.tabular import TabularPOMDP

SNIPPETS = [
    *sorted(RESERVED),
    ":",
    "*",
    "0",
    "1",
    "-1",
    "0.5",
    "1e999",
    "- 1",
    "7777777",
    "x",
    "\n",
    "#",
    "é",
    "\0",
    "1e-400",
    ".",
]


def outcome(text):
    try:
        return parse_tables(text)
    except PomdpFileError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return error


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from(SNIPPETS), max_size=40).map(" ".join))
def test_random_text_is_read_or_refused(text):
    outcome(text)


@st.composite
def mutated(draw):
    """A shipped file with some bytes or words changed, removed, repeated or exchanged."""
    text = classic_text(draw(st.sampled_from(CLASSICS)))
    pieces = list(text) if draw(st.booleans()) else re.findall(r"\s+|[^\s:]+|:", text)
    for _ in range(draw(st.integers(1, 4))):
        here, there = draw(st.integers(0, len(pieces) - 1)), draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["replace", "remove", "repeat", "swap", "cut"])):
            case "replace":
                pieces[here] = draw(st.sampled_from(SNIPPETS) | st.characters())
            case "remove":
                pieces[here] = ""
            case "repeat":
                pieces[here] = pieces[here] * 2
            case "swap":
                pieces[here], pieces[there] = pieces[there], pieces[here]
            case "cut":
                pieces[min(here, there) : min(here, there) + 12] = [""]
    return "".join(pieces)


@settings(max_examples=200, deadline=None)
@given(mutated())
def test_damaged_files_are_read_or_refused(text):
    outcome(text)


@settings(max_examples=30, deadline=None)
@given(content=st.binary() | mutated().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_damaged_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "some.pomdp"
    path.write_bytes(content)
    try:
        assert isinstance(read_pomdp(path, horizon=3), TabularPOMDP)
    except PomdpFileError as error:
        assert "some.pomdp" in str(error)  # noqa: PT017


@pytest.mark.parametrize("text", [piece * 10_000 for piece in (":", "(", "T ", "1 ", "#", "- ")])
def test_long_monotony_is_refused(text):
    assert isinstance(outcome(text), PomdpFileError)
    assert isinstance(outcome(f"discount: 1 states: 2 actions: 1 observations: 1 T: 0 {text}"), PomdpFileError)
