"""A study from nothing to its table: workers, resumption after kills, failures."""

import json
import random
import time
from pathlib import Path

import numpy as np
import pytest
from study.processes import end, users
from study.tiny import TOML, beliefscope, copied, definition, go_on, run

from beliefscope import StudyFolder, read_study
from beliefscope.cli import main
from beliefscope.store import Damaged, lock, write_record
from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import count_states
from beliefscope.study import run as running
from beliefscope.study.run import run_study
from beliefscope.study.schedule import pieces_to_do
from beliefscope.study.workers.execute import Outcome


def test_the_table_has_a_row_for_each_measured_checkpoint_with_the_evaluations_return(whole):
    table = whole.table()
    assert [list(table[name]) for name in ("cell", "seed", "episode")] == [["GRU"] * 2, [0, 1], [20, 20]]
    assert list(table["epochs"]) == [2, 2]
    for identity, found in zip(table["run"], table["return"], strict=True):
        lines = (whole.path / "runs" / identity / "metrics.jsonl").read_text().splitlines()
        assert json.loads(lines[-1])["return"] == found
    assert whole.csv().count("\n") == 3
    assert np.isfinite([float(bits) for bits in table["bits"]]).all()


def test_the_folder_says_what_was_asked_for(whole):
    study = read_study(str(whole.path.parent / "tiny.toml"))
    assert [piece.name for piece in whole.pieces] == [piece.name for piece in study.pieces()]
    assert count_states(whole.states()) == "4 done"
    assert not list((whole.path / "locks").iterdir())
    (call,) = json.loads((whole.path / "manifest.json").read_text())["calls"]
    assert call["device"] == "cpu"


@pytest.mark.slow
def test_two_workers_give_the_same_table(whole, tmp_path):
    status, _, err = run("run", definition(tmp_path), "--out", tmp_path / "out", "--workers", 2)
    assert status == 0, err
    assert StudyFolder(tmp_path / "out").csv() == whole.csv()


@pytest.mark.slow
def test_a_study_killed_at_random_moments_ends_with_the_same_table(whole, tmp_path, pytestconfig):
    folder, draw, killed = tmp_path / "out", random.Random(pytestconfig.getoption("kill_seed")), []
    while len(killed) < pytestconfig.getoption("kills"):
        with beliefscope("run", definition(tmp_path), "--out", folder, "--workers", 2) as process:
            calls = _calls(folder)
            while _calls(folder) == calls and process.poll() is None:
                time.sleep(0.02)  # until its workers are ready
            time.sleep(draw.uniform(0, draw.choice([1, 4])))  # trainings are over soon, measurements take longer
            process.kill()
        time.sleep(0.2)  # for the kernel to end the workers, too
        killed.append({file.name.split("-")[0] for file in (folder / "locks").glob("*")})  # what was being done
        finished = count_states(StudyFolder(folder).states()) == "4 done"
        assert not finished or StudyFolder(folder).csv() == whole.csv()
        if finished or len(killed) % 7 == 0:  # on a busy machine measurements may never end
            for file in folder.rglob("*"):
                if file.is_file():
                    file.unlink()  # and once more from the start
    status, _, err = go_on(folder)
    assert status == 0, err
    assert StudyFolder(folder).csv() == whole.csv()
    print("killed while doing:", killed)
    if len(killed) >= 20:
        assert {"train", "measure"} <= set().union(*killed)


def _calls(folder: Path) -> int:
    file = folder / "manifest.json"
    return len(json.loads(file.read_text())["calls"]) if file.exists() else 0


def test_a_finished_study_is_not_run_again(whole, tmp_path):
    folder = copied(whole, tmp_path / "out").path
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.json")}
    status, out, _ = go_on(folder)
    assert status == 0
    assert "4 done" in out
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.json")} == before


def test_only_some_pieces_with_the_trainings_they_need(whole, tmp_path):
    empty = StudyFolder(tmp_path)
    empty.prepare(read_study(str(whole.path.parent / "tiny.toml")).describe())
    assert len(pieces_to_do(empty)) == 4
    assert [piece.kind for piece in pieces_to_do(empty, ["seed 1: measure"])] == ["train", "measure"]


def test_only_what_the_study_does_not_have_is_refused_before_anything_is_written(whole, tmp_path):
    study = read_study(str(whole.path.parent / "tiny.toml"))
    with pytest.raises(ValueError, match=r"--only names parts of titles .* but got \['LSTM'\]"):
        run_study(study, tmp_path / "out", only=["LSTM"])
    assert not list(tmp_path.iterdir())


def test_only_what_is_done_already_is_no_error(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    (file,) = (study.path / "runs" / study.runs[1].id / "measure").glob("*.json")
    file.unlink()
    assert pieces_to_do(study, ["seed 0"]) == []
    run_study(read_study(str(whole.path.parent / "tiny.toml")), study.path, only=["seed 0"])
    assert not file.exists()


@pytest.mark.slow
def test_a_study_goes_on_when_nobody_reads_what_it_says(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    (file,) = (study.path / "runs" / study.runs[1].id / "measure").glob("*.json")
    file.unlink()
    with beliefscope("run", definition(tmp_path), "--out", study.path, "--workers", 1) as process:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    assert process.returncode == 0
    assert study.csv() == whole.csv()


@pytest.mark.parametrize("there", [True, False])
def test_a_table_is_written_to_where_a_link_leads(there, whole, tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    if there:
        target.write_text("old")
    link.symlink_to(target)
    assert main(["export", str(whole.path), "--out", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_text() == whole.csv()


def test_a_table_is_not_put_in_the_place_of_a_folder_or_a_device(whole, tmp_path, capsys):
    for place in (tmp_path, Path("/dev/null")):
        assert main(["export", str(whole.path), "--out", str(place)]) == 2
        assert "--out is a file, or a path that does not exist yet, but got" in capsys.readouterr().err
    assert not Path("/dev/null").is_file()


def test_a_run_whose_evaluations_are_gone_is_left_out_of_the_table_and_named_on_standard_error(whole, tmp_path, capsys):
    study = copied(whole, tmp_path / "out")
    metrics = study.path / "runs" / study.runs[0].id / "metrics.jsonl"
    metrics.unlink()
    assert main(["export", str(study.path)]) == 0
    table, said = capsys.readouterr()
    assert [line.split(",")[3] for line in table.splitlines()[1:]] == ["1"]  # its seed; a comma is in "T-Maze, L = 3"
    assert f"1 record is damaged and left out, such as {metrics}; `beliefscope run` makes it." in said
    assert said.count("\n") == 1
    with pytest.raises(Damaged, match="it is missing; repeat `beliefscope run`"):
        study.table()
    assert [damaged.path for damaged in study.set_aside_damaged()] == [metrics]
    assert "missing" in count_states(study.states())


def test_a_diverged_run_is_told_of_and_has_no_rows(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    folder = study.path / "runs" / study.runs[0].id
    (folder / "trained.json").unlink()
    write_record(folder / "failed.json", {"episode": 3, "reason": "not finite"})
    states = list(study.states().values())
    assert states == ["diverged", "done", "done", "done"]
    assert set(study.table()["seed"]) == {1}
    status, out, _ = run("status", study.path)
    assert status == 1
    assert "diverged: T-Maze, L = 3, GRU, seed 0: not finite" in out


def test_another_study_is_not_put_into_the_same_folder(whole):
    other = whole.path.parent / "other.toml"
    other.write_text(TOML)
    with pytest.raises(ValueError, match=r"holds the study tiny quick text, .* but got 'other quick text'"):
        StudyFolder(whole.path).prepare(read_study(str(other)).describe())


def test_a_study_with_more_seeds_goes_on_in_its_folder(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    study.prepare(read_study(definition(tmp_path, TOML.replace("[0, 1]", "[0, 1, 2]"))).describe())
    assert count_states(study.states()) == "4 done, 2 missing"


def test_a_folder_may_be_named_by_a_text(whole):
    assert StudyFolder(str(whole.path)).csv() == whole.csv()


def test_a_definition_that_would_drop_finished_runs_is_refused(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    other = read_study(str(definition(tmp_path, TOML.replace("length = 3", "length = 4"))))
    with pytest.raises(ValueError, match=r"without 2 of them, such as T-Maze, L = 3, GRU, seed 0'; choose another"):
        study.prepare(other.describe())
    assert study.csv() == whole.csv()


@pytest.mark.slow
def test_two_processes_share_a_study_without_doing_a_piece_twice(whole, tmp_path):
    command = ("run", definition(tmp_path), "--out", tmp_path / "out", "--workers", 1)
    with beliefscope(*command) as first, beliefscope(*command) as second:
        ended = [(process.communicate(), process.returncode) for process in (first, second)]
    assert {status for _, status in ended} == {0}, ended  # each waits for what the other does
    stored = StudyFolder(tmp_path / "out")
    assert count_states(stored.states()) == "4 done"
    assert stored.csv() == whole.csv()


def without_a_measurement(whole: StudyFolder, folder: Path) -> tuple[StudyFolder, Piece]:
    """A study of which one measurement is to be done."""
    study = copied(whole, folder)
    piece = study.pieces[-1]
    piece.result(study.path).unlink()
    return study, piece


@pytest.mark.slow
def test_a_process_waits_for_what_another_is_doing_and_does_it_where_that_has_not(whole, tmp_path):
    study, piece = without_a_measurement(whole, tmp_path / "out")
    with beliefscope("run", definition(tmp_path), "--out", study.path, "--workers", 1) as process:
        with lock(study.files.lock(piece.name)):
            assert process.stderr is not None
            assert process.stderr.readline() == f"waiting for another process, which is doing {piece.title}\n"
            assert not study.is_done(piece)
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert err == "tiny: 1/1 pieces\n"
    assert study.csv() == whole.csv()


@pytest.mark.slow
def test_a_piece_whose_worker_is_killed_is_done_in_the_same_call(whole, tmp_path):
    study, piece = without_a_measurement(whole, tmp_path / "out")
    with beliefscope("run", definition(tmp_path), "--out", study.path, "--workers", 1) as process:
        while not (workers := users(study.files.lock(piece.name))):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        end(workers)
        _, err = process.communicate()
    assert process.returncode == 0, err
    again, last = err.splitlines()
    assert again.startswith("tried again (1 of 2 times), since its worker died (exit status -9;")
    assert last == "tiny: 1/1 pieces"
    assert study.csv() == whole.csv()
    assert not study.failures()


class Killing:
    """A backend whose only worker is killed whatever it does."""

    in_batches = False

    def __init__(self):
        self.assigned: list[str] = []
        self._is_idle = True

    def start(self, runs, folder, *, at_most):
        return 1

    def idle(self):
        return [0] if self._is_idle else []

    def assign(self, slot, pieces):
        self.assigned += [piece.kind for piece in pieces]
        self._is_idle = False

    def messages(self):
        self._is_idle = True
        yield 0, Outcome("killed", "its worker died")

    def close(self):
        pass


def test_a_piece_that_kills_three_workers_has_failed_and_is_not_counted_as_done(tmp_path, monkeypatch, capsys):
    backend = Killing()
    monkeypatch.setattr(running, "choose_backend", lambda *_, **__: backend)
    stored = run_study(read_study(definition(tmp_path)), tmp_path / "out")
    assert backend.assigned == ["train"] * 6
    assert [error for _, error in stored.failures()] == ["its worker died, 3 times"] * 2
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("tried again") for line in lines) == 4
    assert lines[-1] == "tiny: 0/4 pieces, 4 failed or left out"


class Failing(Killing):
    """A backend that fails at all it is given."""

    def messages(self):
        self._is_idle = True
        yield 0, Outcome("failed", "no such estimator")


def test_where_ten_pieces_fail_alike_the_others_of_their_kind_wait_for_the_next_call(
    whole, tmp_path, monkeypatch, capsys
):
    rates = ", ".join(f"0.{digit}" for digit in range(1, 9))
    text = TOML.replace("[measurement]", f"[measurement]\nepsilons = [{rates}]")
    folder, backend = copied(whole, tmp_path / "out"), Failing()
    monkeypatch.setattr(running, "choose_backend", lambda *_, **__: backend)
    stored = run_study(read_study(definition(tmp_path, text)), folder.path)
    assert backend.assigned == ["measure"] * 10
    assert count_states(stored.states()) == "4 done, 10 failed, 6 missing"  # what was measured for ε = 0 stays
    assert [error for _, error in stored.failures()] == ["no such estimator"] * 10
    out, err = capsys.readouterr()
    assert out.startswith("16 of 20 pieces to do: about ")
    said, last = err.splitlines()[-2:]
    assert said.startswith(
        "left out, since all of their kind have failed so far, with the same error: 6 pieces, such as "
    )
    assert last == "tiny: 0/16 pieces, 16 failed or left out"
