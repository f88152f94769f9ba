"""The live display on a terminal, and the lines of a log."""

import io

import pytest
from rich.console import Console

import beliefscope.study.run as run_module


@pytest.fixture
def seen(monkeypatch, request):
    text = io.StringIO()
    console = Console(file=text, force_terminal=request.param, no_color=True, width=120)
    monkeypatch.setattr(run_module, "Console", lambda stderr: console)
    return text


def show():
    with run_module.ProgressDisplay("a study [/x]", total=100.0, pieces=3, workers=2) as shown:
        shown.begin(0, "seed 0: train", 50.0)
        shown.update(0, 0.5)
        shown.wait(1)
        shown.end(0, done=1)
        shown.print("failed: [seed 1]: no memory")
        shown.begin(1, "seed 1: train", 25.0)
        shown.put_back(1)
        shown.begin(1, "seed 1: train", 25.0)
        shown.end(1, done=0, not_done=2, left_out=25.0)


@pytest.mark.parametrize("seen", [True], indirect=True)
def test_a_terminal_shows_the_study_and_its_workers(seen):
    show()
    text = seen.getvalue()
    for words in (
        "a study [/x]",
        "1/3 pieces, 2 failed or left out",
        "worker 1",
        "seed 0: train",
        "failed: [seed 1]: no memory",
        "left",
    ):
        assert words in text, words


@pytest.mark.parametrize("seen", [False], indirect=True)
def test_a_log_has_a_line_at_the_end_which_does_not_count_what_failed_as_done(seen):
    show()
    assert seen.getvalue() == "failed: [seed 1]: no memory\na study [/x]: 1/3 pieces, 2 failed or left out\n"


def test_a_line_of_a_log_says_how_long_it_will_take(monkeypatch):
    """Half of the work in 10 minutes: the other half takes as long."""
    now, seen = [0.0], io.StringIO()
    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(run_module, "Console", lambda stderr: Console(file=seen, get_time=lambda: now[0]))
    with run_module.ProgressDisplay("a study", total=100.0, pieces=4, workers=1) as shown:
        for _ in range(2):
            shown.begin(0, "seed 0: train", 25.0)
            now[0] += 300.0
            shown.end(0, done=1)
    assert seen.getvalue().splitlines()[-1] == "a study: 2/4 pieces, about 10 minutes left"


@pytest.mark.parametrize("seen", [False], indirect=True)
def test_pieces_that_another_process_has_done_count_as_done(seen):
    with run_module.ProgressDisplay("a study", total=100.0, pieces=2, workers=1) as shown:
        shown.begin(0, "seed 0: train", 50.0)
        shown.end(0, done=1)
        shown.add(done=1, seconds=50.0)
    assert seen.getvalue() == "a study: 2/2 pieces\n"
