"""Files that are wrong, too large or damaged: refused in one sentence, with the line, without taking memory."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.pomdp_file import CLASSICS, PomdpFileError, parse_pomdp, read_pomdp
from beliefscope.pomdp.pomdp_file.read import classic_text, parse_tables
from beliefscope.pomdp.pomdp_file.scan import RESERVED
from beliefscope.pomdp.tabular import TabularPOMDP

HEAD = "discount: 0.9\nstates: left right\nactions: listen open walk\nobservations: 2\n"
BODY = "T: * identity\nO: * uniform\n"

# What is wrong: the text, and the sentence that refuses it, where … stands for anything.
WRONG = {
    "an empty file": ("", "line 1: expected 'discount' in the preamble, before all statements, but found the end of"),
    "only comments": ("# nothing\n# here", "line 2: expected 'discount'"),
    "an unknown keyword": ("disount: 0.9", "line 1: expected 'discount', … found 'disount'; did you mean 'discount'?"),
    "a missing colon": ("discount 0.9", "line 1: expected ':', but found '0.9'"),
    "a missing entry": (
        "discount: 1\nstates: 2\nT: * identity",
        "line 3: expected 'actions' in the preamble…found 'T'",
    ),
    "an entry given twice": ("discount: 1\ndiscount: 1", "line 2: expected 'discount' only once, but found 'discount'"),
    "a late entry": (
        HEAD + BODY + "discount: 1",
        "line 7: expected 'T', 'O', 'R' or the end of the file, but found 'disc",
    ),
    "a discount above 1": ("discount: 1.5", "line 1: expected a number from 0 to 1, but found '1.5'"),
    "a discount that is a word": ("discount: high", "expected a number from 0 to 1, but found 'high'"),
    "unknown values": ("values: costs", "expected 'reward' or 'cost', but found 'costs'; did you mean 'cost'?"),
    "no states": ("states: 0", "expected a number of states from 1 to 1000000, but found '0'"),
    "too many states": ("states: 1000001", "expected a number of states from 1 to 1000000, but found '1000001'"),
    "endless digits": ("states: " + "9" * 10_000, "expected a number of states from 1 to 1000000, but found '999"),
    "a fractional count": ("states: 2.5", "expected the number of states or their names…found '2.5'"),
    "negative states": ("states: -2", "expected the number of states or their names…found '-2'"),
    "nameless states": ("states: actions: 2", "expected the number of states or their names…found 'actions'"),
    "a bad name": ("states: a b_1 c+d", "expected the number of states or their names…found 'c+d'"),
    "a number among names": ("states: a 2", "expected the number of states or their names…found '2'"),
    "a name used twice": ("states: a b\nc a", "line 2: expected distinct names of states, but found 'a'"),
    "a start before the states": ("start: uniform", "expected 'states' before 'start'"),
    "a short start": (
        HEAD + "start: 0.5\n" + BODY,
        "line 6: expected 2 probabilities, a state or 'uniform', but found only 1",
    ),
    "a long start": (HEAD + "start: 0.5 0.5\n0 " + BODY, "line 6: expected 2 probabilities… but found 3"),
    "a start that is no distribution": (HEAD + "start: 0.5 0.4\n" + BODY, "line 5: start sums to 0.9, but expected 1"),
    "an unknown start": (
        HEAD + "start: lft " + BODY,
        "expected 2 probabilities, a state or 'uniform'…did you mean 'left'",
    ),
    "a start index too high": (HEAD + "start: 2 " + BODY, "line 5: expected 2 probabilities, a state or 'uniform'"),
    "nobody included": (HEAD + "start include: " + BODY, "expected a state's name or an index below 2, but found 'T'"),
    "all excluded": (HEAD + "start exclude: left right\n" + BODY, "expected at least one state to start from"),
    "unknown states excluded": (HEAD + "start exclude: left rigth", "found 'rigth'; did you mean 'right'?"),
    "an unknown action": (
        HEAD + "\nT: lisen identity",
        "line 6: expected an action name, an index below 3 or '*', but found 'lisen'; did you mean 'listen'?",
    ),
    "an unknown state": (
        HEAD + "T: listen : 2 uniform",
        "expected a state name, an index below 2 or '*', but found '2'",
    ),
    "an unknown observation": (
        HEAD + "O: * : * : quiet 1",
        "expected an observation name, an index below 2 or '*', but found 'quiet'",
    ),
    "a negative index": (HEAD + "T: -1 identity", "found '-1'"),
    "an endless index": (HEAD + f"T: {'1' * 10_000} identity", "line 5: expected an action name, an index below 3"),
    "an unfinished statement": (HEAD + "T: listen :", "expected a state name…found the end of the file"),
    "a statement without a number": (
        HEAD + "T: listen : left : left\n" + BODY,
        "line 6: expected a number from 0 to 1… found 'T'",
    ),
    "a probability above 1": (HEAD + "T: * : * : left 1.5", "line 5: expected a number from 0 to 1… but found '1.5'"),
    "a probability below 0": (HEAD + "T: * : * : left - 0.5", "line 5: expected a number from 0 to 1"),
    "a bad number in a row": (HEAD + "T: * : * 0.5\n-.5", "line 6: expected a number from 0 to 1… but found '-.5'"),
    "an infinite number in a matrix": (
        HEAD + "O: * 1 0\n1e999 0",
        "line 6: expected a number from 0 to 1… but found '1e999'",
    ),
    "an infinite reward": (
        HEAD + BODY + "R: * : * : * : * 1e999",
        "line 7: expected a number from -1e+38 to 1e+38, but found",
    ),
    "a reward beyond single precision": (HEAD + BODY + "R: * : * 1 1 1 -1e300", "found '-1e300'"),
    "nan": (HEAD + "T: * : * nan nan", "expected 2 numbers, 'uniform' or 'reset', but found 'nan'"),
    "glued numbers": (HEAD + "T: * : * 0.5.5", "found '0.5.5'"),
    "too few numbers in a row": (
        HEAD + "T: * : left 1\n" + BODY,
        "line 6: expected 2 numbers…, but found only 1 before 'T'",
    ),
    "too many numbers in a row": (HEAD + "T: * : left 1 0\n0\n" + BODY, "line 6: expected 2 numbers…, but found 3"),
    "too few numbers in a matrix": (HEAD + "T: * 1 0 1\n", "expected 4 numbers…, but found only 3 before the end of"),
    "too many numbers in a matrix": (HEAD + "O: * 1 0 1 0\n1", "line 6: expected 4 numbers or 'uniform', but found 5"),
    "too many rewards": (HEAD + "R: * : * : * 1 2 3", "expected 2 numbers, but found 3"),
    "too many numbers in a cell": (
        HEAD + "T: * : * : left 1 1",
        "expected 'T', 'O', 'R' or the end of the file, but found '1'",
    ),
    "an identity row": (
        HEAD + "T: * : left identity",
        "expected 2 numbers, 'uniform' or 'reset', but found 'identity'",
    ),
    "a reset matrix": (HEAD + "T: * reset", "expected 4 numbers, 'uniform' or 'identity', but found 'reset'"),
    "a reset observation": (HEAD + "O: * : * reset", "expected 2 numbers or 'uniform', but found 'reset'"),
    "a uniform reward": (HEAD + "R: * : * : * uniform", "expected 2 numbers, but found 'uniform'"),
    "a misspelt word": (HEAD + "T: * identiy", "found 'identiy'; did you mean 'identity'?"),
    "a reward for an action alone": (HEAD + "R: listen 5", "expected ':', but found '5'"),
    "one index too many": (HEAD + "T: * : * : * : 0 1", "expected a number from 0 to 1…, but found ':'"),
    "a row that does not sum to 1": (
        HEAD + BODY + "T: open : right : right 0.9",
        "<text>: T : open : right sums to 0.9, but expected 1",
    ),
    "an observation row that does not sum to 1": (
        HEAD + "T: * identity O: * : left uniform",
        "<text>: O : listen : right sums to 0,",
    ),
    "no statements": (HEAD, "T : listen : left sums to 0, but expected 1"),
    "a NUL character": ("discount: 1\n# \0", "line 2: the file is binary"),
    "a stray symbol": (HEAD + BODY + "§", "line 7: expected 'T', 'O', 'R' or the end of the file, but found '§'"),
}


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_refused_in_one_sentence(text, sentence):
    pattern = ".*".join(re.escape(part) for part in sentence.split("…"))
    with pytest.raises(PomdpFileError, match=pattern) as error:
        parse_tables(text)
    assert str(error.value).startswith("<text>")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PomdpFileError, match=r"absent\.pomdp: expected a \.pomdp file, but there is no such file"):
        read_pomdp(tmp_path / "absent.pomdp", horizon=1)
    with pytest.raises(PomdpFileError, match="no such file"):
        read_pomdp(tmp_path, horizon=1)
    with pytest.raises(PomdpFileError, match="no such file"):
        read_pomdp("nul\0character", horizon=1)


def test_a_name_too_long_for_the_system_is_refused():
    with pytest.raises(PomdpFileError, match=r"expected a readable file, but got|no such file"):
        read_pomdp("x" * 10_000, horizon=1)


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path):
    path = tmp_path / "bad.pomdp"
    path.write_bytes(b"discount: 1\nstates: \xff")
    with pytest.raises(PomdpFileError, match=r"bad\.pomdp, line 2: expected UTF-8 text"):
        read_pomdp(path, horizon=1)


def test_a_byte_order_mark_and_accents_in_comments_are_harmless(tmp_path):
    path = tmp_path / "marked.pomdp"
    path.write_text("\ufeff# déjà vu\n" + HEAD + BODY, encoding="utf-8")
    assert read_pomdp(path, horizon=1).num_states == 2


def test_a_bad_horizon_is_refused():
    with pytest.raises(PomdpFileError, match="a horizon is a whole number of at least 1"):
        parse_pomdp(HEAD + BODY, horizon=0)


# Sizes are checked before memory is taken, and large files are read in memory that follows their non-zeros.
ABSURD = {
    "rows": "states: 1000000 actions: 31 observations: 1 T: * identity O: * uniform",
    "observation columns": "states: 2 actions: 31 observations: 1000000 T: * identity O: * : * : 0 1",
    "keys": "states: 1000000 actions: 20 observations: 1000000 T: * identity O: * : * : 0 1",
    "uniform transitions": "states: 100000 actions: 1 observations: 1 T: * uniform O: * uniform",
    "uniform observations": "states: 100000 actions: 1 observations: 1000 T: * identity O: * uniform",
    "many small statements": "states: 20000 actions: 1 observations: 1" + " T: * : 3 reset" * 2000,
}


@pytest.mark.parametrize("text", ABSURD.values(), ids=ABSURD.keys())
def test_absurd_sizes_are_refused_without_taking_memory(text, monkeypatch):
    if "reset" in text:
        monkeypatch.setattr("beliefscope.pomdp.pomdp_file.read.MAX_CELLS", 300_000)
    tracemalloc.start()
    try:
        with pytest.raises(PomdpFileError, match=r"expected at most|more than 30000000 non-zero|table rows"):
            parse_tables("discount: 1 " + text)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_rewards_for_too_many_observations_are_refused(monkeypatch):
    monkeypatch.setattr("beliefscope.pomdp.pomdp_file.read.MAX_CELLS", 10_000)
    text = "discount: 1 states: 50 actions: 1 observations: 50 T: * uniform O: * uniform R: * : * : * : 0 1"
    with pytest.raises(
        PomdpFileError, match=r"expected at most 10000 pairs of a transition and an observation.*125000"
    ):
        parse_tables(text)


def test_a_dense_matrix_takes_little_more_memory_than_its_numbers():
    states = 400
    row = " ".join(["0.0025"] * states)
    text = f"discount: 1 states: {states} actions: 1 observations: 1 O: * uniform T: 0 " + "\n".join([row] * states)
    tracemalloc.start()
    try:
        tables = parse_tables(text)
        assert tracemalloc.get_traced_memory()[1] < 120 * states**2  # a list of words alone would take 64 bytes each
    finally:
        tracemalloc.stop()
    assert tables.moves.nnz == states**2


@pytest.mark.slow
def test_a_sparse_file_of_two_thousand_states_is_read_as_written():
    rng = np.random.default_rng(0)
    actions, states, observations, successors = 5, 2000, 50, 5
    targets = rng.permuted(np.tile(np.arange(states), (actions * states, 1)), axis=1)[:, :successors]
    lines = [
        f"{letter}: {row // states} : {row % states} : {target % width} 0.2"
        for letter, width in (("T", states), ("O", observations))
        for row in range(actions * states)
        for target in (targets[row] if letter == "T" else range(row, row + successors))
    ]
    head = f"discount: 0.95 states: {states} actions: {actions} observations: {observations}\n"
    pomdp = parse_pomdp(head + "\n".join(lines), horizon=10)
    np.testing.assert_array_equal(
        np.asarray(pomdp.successors.column)[: targets.size].reshape(targets.shape), np.sort(targets, axis=1)
    )


# Whatever a file holds, it becomes a POMDP or a `PomdpFileError`, never anything else.
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
