"""The command line on wrong input: one sentence on standard error, exit status 2, no trace, nothing written."""

import re
import subprocess
import sys
import time
from typing import Any, cast

import pytest

import beliefscope
from beliefscope import DRQN, RunFolder, TMaze, TrainingSpec
from beliefscope.cli import main, understood
from beliefscope.progress import LogLines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train t-maze --length 0", "a T-Maze's length is a whole number of at least 1 and at most 1000000, but got 0"),
        ("train t-maze --stochasticity 1.5", "λ lies in [0, 1], but got 1.5"),
        ("train t-maze --stochasticity 1", "needs a stochasticity λ below 1, but got 1.0; the paper uses 0 and 0.3"),
        (
            "train t-maze --num-episodes 15",
            "num_episodes is a multiple of evaluation_period, here 10, but got 15; take 20",
        ),
        (
            "train t-maze --exploration-rate 2",
            "exploration_rate is a finite number of at least 0 and at most 1, but got 2.0",
        ),
        ("train t-maze --seeds 1 1", "each run is given once, but got [1, 1]; give each agent its own seed"),
        ("train t-maze --seeds -3", "a seed is a whole number from 0 to 4294967295, but got -3"),
        ("train t-maze --seeds", "--seeds takes at least one whole number, but got 'none'"),
        ("train t-maze --irrelevant -1", "irrelevant is a whole number of at least 0, but got -1"),
        ("train file nowhere.pomdp", "nowhere.pomdp'; nothing is there: correct the path."),
        ("train file /", "leads to a .pomdp file, but got '/'; that is a folder: name a file in it."),
        ("train mountain-hike --hidden-size 0", "hidden_size is a whole number of at least 1, but got 0"),
    ],
)
def test_wrong_values_get_one_sentence(arguments, words, tmp_path, capsys):
    assert main([*arguments.split(), "--out", str(tmp_path / "runs")]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("beliefscope: ")
    assert not printed.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nowhere", "a run is a folder with a spec.json, DIR/runs/<id>, but got 'nowhere'"),
        ("nowhere --epsilon 2", "epsilon lies in [0, 1], but got 2.0"),
        ("nowhere --num-samples 5", "num_samples is a whole number of at least 2000, but got 5"),
        ("nowhere --num-particles 0", "num_particles is a whole number of at least 1, but got 0"),
    ],
)
def test_what_cannot_be_measured_gets_one_sentence(arguments, words, capsys):
    assert main(["measure", *arguments.split()]) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.count("\n") == 1


def test_a_run_without_networks_or_under_another_name_gets_one_sentence(tmp_path, capsys):
    spec = TrainingSpec(pomdp=TMaze(3))
    RunFolder(tmp_path, spec).open()
    assert main(["measure", str(tmp_path / "runs" / spec.id)]) == 2
    assert "only stored networks can be measured" in capsys.readouterr().err
    renamed = (tmp_path / "runs" / spec.id).rename(tmp_path / "runs" / "mine")
    assert main(["measure", str(renamed)]) == 2
    assert f"is named runs/{spec.id}" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_gets_one_sentence(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["train", "t-maze", "--out", str(tmp_path / "taken")]) == 2
    assert "--out is a folder, or a path that does not exist yet, but got" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_damaged_description_in_the_folder_gets_one_sentence(content, tmp_path, capsys):
    file = tmp_path / "runs" / "0" / "spec.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert main(["train", "t-maze", "--out", str(tmp_path)]) == 2
    assert "spec.json describes a run as a JSON object, but got" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", ["", "train", "train t-maze", "train t-maze --cell RNN --out x", "dream"])
def test_unknown_words_and_missing_ones_end_with_status_2_and_say_what_was_expected(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", ["--help", "train --help", "train t-maze --help", "measure --help"])
def test_help_teaches(arguments, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(arguments.split())
    printed = capsys.readouterr().out
    assert "usage: beliefscope" in printed
    if "t-maze" in arguments:
        assert "the paper uses 50 and 100" in printed
        assert "--learning-rate" in printed


def test_an_interruption_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(specs, folder, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr("beliefscope.cli.train.train", interrupt)
    arguments = ["train", "t-maze", "--length", "7", "--out", str(tmp_path / "my runs")]
    assert main(arguments) == 130
    assert f"beliefscope train t-maze --length 7 --out '{tmp_path}/my runs'" in capsys.readouterr().err


def test_an_interruption_while_libraries_load_ends_the_command_at_once_without_a_word():
    code = """
import os, signal
from beliefscope.cli import _ended_by_interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
with _ended_by_interrupts():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        print("went on")
    except KeyboardInterrupt:
        print("an exception, which a library may lose")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_the_version_is_told_without_loading_anything(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"beliefscope {beliefscope.__version__}\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("train t-maze --cell gru --seeds 0,1,2", "train t-maze --cell GRU --seeds 0 1 2"),
        ("train --cell=nbrc --seeds=0,1 2 --out a,b", "train --cell NBRC --seeds 0 1 2 --out a,b"),
        ("train --cell gru t-maze --length 3", "train --cell GRU t-maze --length 3"),
        ("train --cell=gru t-maze", "train --cell GRU t-maze"),
        ("measure --episodes 0,50 runs/a,b", "measure --episodes 0 50 runs/a,b"),
        ("measure runs/a,b --episodes 0,100", "measure runs/a,b --episodes 0 100"),
        ("report a,b", "report a,b"),
    ],
)
def test_cells_in_small_letters_and_lists_with_commas_are_understood(given, words):
    assert understood(given.split()) == words.split()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete_the_options_of_every_command(shell, capsys):
    with pytest.raises(SystemExit) as ending:
        main(["--tyro-print-completion", shell])
    assert ending.value.code in (0, None)
    script = capsys.readouterr().out
    for option in ("--num-episodes", "--lengthen", "--estimator", "--keep-ends", "--scale", "NBRC"):
        assert option in script


def test_a_shell_of_python_completes_public_names_before_they_are_used():
    code = "import beliefscope; names = dir(beliefscope); assert {*beliefscope.__all__, '__version__'} <= {*names}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_name_of_a_setting_gets_a_sentence_that_names_it():
    for wrong, right in {"lr": "write learning_rate=…", "lerning_rate": "perhaps 'learning_rate' is meant"}.items():
        with pytest.raises(TypeError, match=re.escape(f"but got {wrong!r}; {right}")):
            DRQN(**cast(Any, {wrong: 1e-3}))


def test_where_no_terminal_shows_a_bar_there_are_lines(capsys):
    with LogLines(lambda: "training: 3 of 10 episodes", wanted=True, period=0.05):
        time.sleep(0.3)
    said = capsys.readouterr().err
    assert said.startswith("training: 3 of 10 episodes, 0 s so far\n")
    with LogLines(lambda: "never", wanted=False, period=0.05):
        time.sleep(0.2)
    assert "never" not in capsys.readouterr().err
