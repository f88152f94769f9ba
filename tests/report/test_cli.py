"""`beliefscope report` and `claims`: on a study that was run, on one of which nothing is done, on wrong input."""

import pytest
from report.made_up import finish, stored_study
from study.tiny import TOML, definition, run

from beliefscope.cli import main
from beliefscope.store import write_record

COMMANDS = ("report", "claims")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One agent, trained and measured, with the traces of both its checkpoints."""
    folder = tmp_path_factory.mktemp("ran")
    text = TOML.replace("seeds = [0, 1]", "seeds = [0]").replace("traces = false", "")
    status, _, err = run("run", definition(folder, text), "--out", folder / "out", "--workers", 1)
    assert status == 0, err
    return folder / "out"


@pytest.mark.slow
def test_a_study_that_was_run_gets_its_report(ran, capsys):
    assert main(["report", str(ran)]) == 0
    printed = capsys.readouterr().out
    page = ran / "report.html"
    assert printed.startswith(f"{page.resolve()} (")
    assert f"figures in {ran / 'figures'}" in printed
    text = page.read_text()
    assert "T-Maze, L = 3" in text
    assert 'id="belief-viewer"' in text
    assert 'class="chart"' in text
    assert "This study is not finished" not in text


@pytest.mark.slow
def test_the_claims_of_a_small_study_lack_data(ran, capsys):
    assert main(["claims", str(ran)]) == 0
    printed = capsys.readouterr().out
    assert "not enough data" in printed
    assert "does not hold" not in printed


@pytest.mark.parametrize("command", COMMANDS)
def test_a_study_of_which_nothing_is_done_is_no_error(command, tmp_path, capsys):
    stored = stored_study(tmp_path)
    assert main([command, str(stored.path)]) == 0
    assert {"report": "report.html", "claims": "not enough data"}[command] in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nothing", "the folder of a study holds a study.json, but got"),
        ("a file", "the folder of a study holds a study.json, but got"),
        ("an empty folder", "the folder of a study holds a study.json, but got"),
        ("another format", "reads study folders of format 1, but got 'format 99"),
        ("a damaged study.json", "study.json is damaged: it is not JSON"),
    ],
)
def test_wrong_input_gets_one_sentence(command, what, words, tmp_path, capsys):
    place = tmp_path / "out"
    if what == "a file":
        place.write_text("hello")
    if what == "an empty folder":
        place.mkdir()
    if what == "another format":
        write_record(place / "study.json", {"format": 99, "runs": []})
    if what == "a damaged study.json":
        (stored_study(tmp_path).path / "study.json").write_text("{")
    assert main([command, str(place)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert words in error
    assert error.startswith("beliefscope: ")
    assert error.endswith(".\n")
    assert error.count("\n") == 1
    assert not list(tmp_path.rglob("report.html"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_record_is_left_out_and_told(command, tmp_path, capsys):
    stored = stored_study(tmp_path)
    finish(stored, stored.runs[0])
    record = next(stored.path.glob("runs/*/measure/*.json"))
    record.write_text(record.read_text().replace("2000", "2001"))
    assert main([command, str(stored.path)]) == 0
    error = capsys.readouterr().err
    assert f"1 record is damaged and left out, such as {record}" in error
    assert error.count("\n") == 1


def test_a_damaged_trace_is_left_out_and_told(tmp_path, capsys):
    stored = stored_study(tmp_path)
    finish(stored, stored.runs[0])
    trace = next(stored.path.glob("runs/*/traces/*.npz"))
    trace.write_bytes(trace.read_bytes()[:-50])
    assert main(["report", str(stored.path)]) == 0
    error = capsys.readouterr().err
    assert trace.name in error
    assert error.count("\n") == 1
    assert "1 record is damaged and left out" in (stored.path / "report.html").read_text()


def test_a_report_in_a_place_that_cannot_be_gets_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    stored = stored_study(tmp_path)
    assert main(["report", str(stored.path), "--out", str(tmp_path / "file" / "report")]) == 2
    assert capsys.readouterr().err.endswith("Not a directory; choose a place where you may read and write\n")
