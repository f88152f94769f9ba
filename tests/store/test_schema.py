"""Every kind of record: what it must have, and that whatever does not fit counts as damaged."""

import copy
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from report.made_up import finish, made_arrays, made_record, stored_study

from beliefscope.store import Damaged, load_arrays, save_arrays, write_record
from beliefscope.store.records import check_spec, check_trace, checked, read_trace
from beliefscope.store.schema import BitsRecord, Evaluation, StudyRecord, Trained

HERE = Path("record.json")


@pytest.fixture
def study(tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    return stored


@pytest.fixture
def record(study):
    run = study.runs[0]
    return made_record(next(piece for piece in run.pieces if piece.controls), run)


def places(value, path=()):
    """The paths of all entries."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def test_a_record_as_it_is_written_fits(record):
    assert checked(HERE, record, BitsRecord) is record


@pytest.mark.parametrize("odd", [[], {}, "text", True, float("nan"), 10**400, None, "\ud800"])
def test_an_odd_value_anywhere_is_damage_or_changes_nothing(record, odd):
    """Whatever a record has in place of an entry, it is refused, or the entry may be so."""
    refused = 0
    for path in places(record):
        altered = copy.deepcopy(record)
        inner = altered
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = odd
        try:
            checked(HERE, altered, BitsRecord)
        except Damaged:
            refused += 1
    assert refused > 20


def test_an_entry_that_is_missing_is_named(record):
    del record["belief"]["controls"]["time"]["bits"]
    with pytest.raises(Damaged, match=r"its entry belief\.controls\.time\.bits"):
        checked(HERE, record, BitsRecord)


def test_more_entries_than_the_schema_names_are_allowed(record):
    assert checked(HERE, record | {"new": 1}, BitsRecord)["new"] == 1


@pytest.mark.parametrize(
    ("interval", "fits"), [([1, 2.5], True), ([1.0, None], True), ([1.0], False), ([1, 2, 3], False)]
)
def test_an_interval_has_two_ends(record, interval, fits):
    record["belief"]["interval"] = interval
    if fits:
        assert checked(HERE, record, BitsRecord) is record
    else:
        with pytest.raises(Damaged, match=r"its entry belief\.interval is of the wrong kind"):
            checked(HERE, record, BitsRecord)


def test_an_end_of_the_wrong_kind_is_named(record):
    record["belief"]["interval"] = [1.0, "2"]
    with pytest.raises(Damaged, match=r"its entry belief\.interval\.1 is of the wrong kind"):
        checked(HERE, record, BitsRecord)


def test_what_is_no_record_at_all_is_refused():
    for kind in (BitsRecord, StudyRecord, Trained, Evaluation):
        for odd in ([], "x", 3, None):
            with pytest.raises(Damaged, match="it is of the wrong kind"):
                checked(HERE, odd, kind)


def test_a_whole_number_will_do_where_a_number_is_asked_for():
    assert checked(HERE, {"episode": 3, "return": 1}, Evaluation)
    with pytest.raises(Damaged, match="episode"):
        checked(HERE, {"episode": 3.0, "return": 1}, Evaluation)


def test_a_description_has_what_reports_read_of_it():
    spec = {"learner": {}, "seed": 0, "pomdp": {"class": "Irrelevant", "dimensions": 1}}
    with pytest.raises(Damaged, match="pomdp"):
        check_spec(HERE, spec)
    spec["pomdp"]["pomdp"] = {"class": "TMaze"}
    with pytest.raises(Damaged, match="length"):
        check_spec(HERE, spec)
    spec["pomdp"]["pomdp"]["length"] = 3
    assert check_spec(HERE, spec) is spec


@pytest.mark.parametrize("name", ["lengths", "actions", "values", "memory", "belief"])
def test_a_trace_without_an_array_or_with_another_shape_is_damaged(name, tmp_path):
    arrays = made_arrays(np.random.default_rng(0), {"class": "TMaze", "length": 3}, steps=6, memory=8)
    assert check_trace(HERE, arrays) is arrays
    for odd in (np.asarray(3), np.zeros((3, 6)), np.array(["text"] * 2)):
        save_arrays(tmp_path / "odd.npz", arrays | {name: odd})
        with pytest.raises(Damaged, match="not those of a trace"):
            read_trace(tmp_path / "odd.npz")
    with pytest.raises(Damaged, match="not those of a trace"):
        check_trace(HERE, {key: array for key, array in arrays.items() if key != name})


def npz(header: bytes, content: bytes = b"") -> bytes:
    """An archive of one array, whatever its header says."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (",
        b"(" * 900,
        b"\xff\xfe",
    ],
    ids=["terabytes", "negative", "objects", "broken", "parentheses", "no text"],
)
def test_an_array_whose_header_lies_is_damaged(header, tmp_path):
    (tmp_path / "odd.npz").write_bytes(npz(header))
    with pytest.raises(Damaged, match="it cannot be read"):
        load_arrays(tmp_path / "odd.npz")


def test_an_archive_of_more_than_any_of_ours_is_not_unpacked(tmp_path):
    size = 2**28 + 8
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},)}}".encode()
    (tmp_path / "odd.npz").write_bytes(npz(header, bytes(size)))
    assert (tmp_path / "odd.npz").stat().st_size < 2**20
    with pytest.raises(Damaged, match="it cannot be read"):
        load_arrays(tmp_path / "odd.npz")


def test_a_sealed_but_odd_study_gets_one_sentence(study):
    described = json.loads(study.files.study.read_text())
    del described["sum"]
    for name, odd in (("runs", ""), ("settings", []), ("name", 3)):
        write_record(study.files.study, described | {name: odd})
        with pytest.raises(Damaged, match=f"its entry {name} is of the wrong kind"):
            type(study)(study.path).runs  # noqa: B018
