"""The commands of studies: what they print, and one sentence for what is wrong."""

import pytest
from study.tiny import beliefscope

from beliefscope.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run paper/tmaze-5", "paper/tmaze-50"),
        ("show nowhere.toml", "nowhere.toml"),
        ("status nowhere", "the folder of a study holds a study.json, but got 'nowhere'"),
        ("export nowhere", "the folder of a study holds a study.json, but got 'nowhere'"),
        ("run paper/tmaze-50 --only nope", "--only names parts of titles such as"),
        ("run paper/tmaze-50 --workers 0", "the number of workers is a whole number of at least 1, but got 0"),
        ("run paper/tmaze-50 --backend ray", "the backend 'ray' needs the address of a cluster, but got None"),
        ("run paper/tmaze-50 --address here:1", "an address is that of a Ray cluster, but got 'here:1'"),
    ],
)
def test_wrong_input_gets_one_sentence(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_list_names_studies_cells_and_estimators(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("paper/generalisation", "NBRC", "best-bound", "mountain-hike"))


def test_show_counts_runs_and_fits(capsys):
    assert main(["show", "paper/tmaze-50"]) == 0
    assert "10 runs, 0 fits and 48 sufficiencies on 576,000 pairs" in capsys.readouterr().out


def test_full_scale_says_what_it_costs_and_does_not_start_without_yes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "paper/tmaze-50", "--scale", "full"]) == 0
    printed = capsys.readouterr().out
    assert "1,584 fits and 1,224 sufficiencies" in printed
    assert "add --yes" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", ["list", "show paper/tmaze-50"])
def test_a_reader_who_leaves_early_is_no_error(arguments):
    with beliefscope(*arguments.split()) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_output_that_finds_no_room_is_told_of():
    with open("/dev/full", "w") as full, beliefscope("list", stdout=full) as process:
        assert process.stderr is not None
        assert process.stderr.read() == "beliefscope: [Errno 28] No space left on device\n"
    assert process.returncode == 2
