"""A folder and a table that were written before this version, and what it said of them: read as then."""

import csv
import io
import shutil
from pathlib import Path

import pytest

from beliefscope.cli import main
from beliefscope.results import read_table

HERE = Path(__file__).parent
FOLDER = HERE / "folder-of-format-1"
NEWER = ("given_time_error", "bits_low", "bits_high")  # columns that the older table did not have
RESULTS = HERE.parent.parent / "results"


def test_the_table_of_an_older_folder_is_the_same_to_the_last_byte(capsys):
    assert main(["export", str(FOLDER)]) == 0
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    kept = [place for place, name in enumerate(head) if name not in NEWER]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row[place] for place in kept] for row in [head, *rows])
    assert text.getvalue() == (HERE / "folder-of-format-1.csv").read_text()


def test_the_claims_of_an_older_folder_are_the_same(capsys):
    assert main(["claims", str(FOLDER)]) == 0
    assert capsys.readouterr().out == (HERE / "folder-of-format-1.claims.txt").read_text()


def test_an_older_folder_is_whole_and_has_a_report(tmp_path, capsys, monkeypatch):
    """Its figures are drawn, but not written as images: that does not depend on the folder."""
    monkeypatch.setattr("beliefscope.report.figures.rendered", lambda figure, kind: b"")
    shutil.copytree(FOLDER, tmp_path / "study")
    assert main(["status", str(tmp_path / "study"), "--check"]) == 0
    assert "0 of the files that are done are damaged" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "study")]) == 0


TABLES = [
    pytest.param(file, id=file.parent.name, marks=[pytest.mark.slow] * (file.parent.name != "paper-tmaze-50"))
    for file in sorted(RESULTS.glob("paper-*/table.csv"))
]


@pytest.mark.parametrize("file", TABLES)
def test_the_verdicts_on_a_committed_table_are_those_beside_it(file, capsys):
    assert main(["claims", str(file)]) == 0
    found, stored = capsys.readouterr().out, (file.parent / "claims.txt").read_text()

    def verdicts(text: str) -> list[str]:
        return [line.split("=>")[1].split(".")[0].strip() for line in text.splitlines() if "=>" in line]

    assert verdicts(found) == verdicts(stored)
    with file.open() as lines:
        assert len(next(csv.reader(lines))) > 20


def test_the_committed_bits_of_the_default_estimator_lie_in_their_intervals():
    rows = read_table([RESULTS / "beyond-best-bound" / "table.csv"]).to_dicts()
    assert {row["episode"] for row in rows} == {0, 5000}
    assert all(row["bits_low"] <= row["bits"] for row in rows)
    upper = [(row["bits"], row["bits_high"]) for row in rows if row["bits_high"] is not None]
    assert 0.8 * len(rows) < len(upper) < len(rows)  # where the true value may be infinite, there is none
    assert all(bits <= high for bits, high in upper)
