"""Odd inputs, the same ones each time: readers accept or refuse them, and nothing else. `run.py` tries a million."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzz.inputs import Fuzzer, fuzzer
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefscope.pomdp.pomdp_file.read import parse_tables
from beliefscope.store import Damaged, read_record
from beliefscope.store.files import _sealed
from beliefscope.store.records import checked
from beliefscope.store.schema import BitsRecord, SharesRecord, StudyRecord, Trained

KINDS = tuple(Fuzzer(0, Path()).kinds)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@pytest.fixture(scope="module")
def inputs():
    with fuzzer(20) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_input_is_accepted_or_refused(inputs, kind):
    """For a second each; one that takes five, or a gigabyte, fails."""
    until = time.monotonic() + 1
    for _ in range(200):
        inputs.once(kind)
        if time.monotonic() > until:
            break


@pytest.mark.slow
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.dictionaries(st.text(), JSON))
def test_whatever_json_is_written_reads_back_or_is_no_record_of_any_kind(tmp_path_factory, record):
    file = tmp_path_factory.getbasetemp() / "any.json"
    record.pop("sum", None)
    file.write_text(json.dumps(_sealed(record)))  # without the flush to disk of `write_record`
    assert read_record(file) == record
    for kind in (BitsRecord, SharesRecord, StudyRecord, Trained):
        with pytest.raises(Damaged):
            checked(file, record, kind)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from(["discount:", "states:", "actions: 2\n", "T:", "0.5", "*", "\n", ":", "#", "1e9"]) | st.text()
    )
)
def test_words_of_a_pomdp_in_any_order_are_refused(words):
    with pytest.raises(ValueError, match=r".+"):
        parse_tables(" ".join(words), name="odd.pomdp")


@pytest.mark.slow
def test_a_minute_of_odd_inputs():
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("run.py"), "--minutes", "1", "--seed", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ", 0 went wrong" in ended.stdout.splitlines()[-1]
