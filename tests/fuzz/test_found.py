"""What fuzzing found once: each of these inputs ended with something else than a sentence."""

import io
import shutil
import zipfile
from pathlib import Path

import jax
import numpy as np
import polars
import pytest

from beliefscope import ExactFilter, TMaze, pairs_from_trajectories
from beliefscope.auditing import logs
from beliefscope.auditing.logs import read_log
from beliefscope.cli import main
from beliefscope.store.files import read_record, write_record
from beliefscope.store.study_folder import StudyFolder


def test_an_array_whose_header_does_not_end_is_refused(tmp_path, capsys):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((3, 2)))
    (tmp_path / "x.npy").write_bytes(buffer.getvalue().replace(b"}", b" "))
    assert main(["bits", str(tmp_path / "x.npy"), str(tmp_path / "x.npy")]) == 2
    err = capsys.readouterr().err
    assert "an array is an .npy file of numbers" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("of_entry", "odd"),
    [
        (10, (99).to_bytes(2, "little")),  # how it is packed
        (6, (123).to_bytes(2, "little")),  # which version unpacks it
        (42, b"\xff\xff\xff\x7f"),  # where it begins
    ],
)
def test_a_log_that_is_packed_in_an_unknown_way_is_refused(of_entry, odd, tmp_path):
    file = tmp_path / "log.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("actions.npy", b"")
    content = bytearray(file.read_bytes())
    start = content.index(b"PK\x01\x02") + of_entry
    content[start : start + len(odd)] = odd
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"an \.npz file holds arrays of numbers"):
        read_log(file, TMaze(3))


def test_a_parquet_file_at_which_polars_aborts_is_refused(tmp_path, monkeypatch):
    polars.DataFrame({"episode": [0]}).write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(logs, "_TRY", "import os; os.abort()")
    with pytest.raises(ValueError, match=r"a \.parquet file can be read by Polars, .* write it again"):
        read_log(tmp_path / "log.parquet", TMaze(3))


@pytest.mark.parametrize("odd", [np.inf, -np.inf, 1e30, 2.0**31])
def test_observations_that_no_integer_can_be_are_refused(odd):
    observations = np.zeros((3, 4))
    observations[1, 2] = odd
    given = {"memory": np.zeros((3, 4, 2)), "actions": np.zeros((3, 4), int), "lengths": np.full(3, 4)}
    maze = TMaze(3)
    with pytest.raises(ValueError, match=r"an observation of TMaze is .* in episode 1 at step 2"):
        pairs_from_trajectories(jax.random.key(0), maze, ExactFilter(maze), observations=observations, **given)


def test_a_record_with_controls_and_without_the_bits_given_the_time_has_a_row(tmp_path):
    shutil.copytree(Path(__file__).parents[1] / "store" / "folder-of-format-1", tmp_path / "study")
    stored = StudyFolder(tmp_path / "study")
    given = stored.table()["given_time"]
    piece = next(piece for piece in stored.pieces if piece.measurement is not None and piece.controls)
    record = read_record(piece.result(stored.path))
    del record["belief"]["given time"]
    write_record(piece.result(stored.path), record)
    assert stored.table()["given_time"].null_count() == given.null_count() + 1
