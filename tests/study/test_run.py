"""A study from nothing to its table: workers, resumption after kills, damage, failures."""

import json
import random
import time
from pathlib import Path

import numpy as np
import pytest
from study.processes import end, users
from study.tiny import TOML, beliefscope, copied, definition, run

from beliefscope import RunFolder, StudyFolder, read_study
from beliefscope.cli import main
from beliefscope.store import Damaged, lock, read_lines, read_record, write_lines, write_record
from beliefscope.store.manifest import write_manifest
from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import count_states
from beliefscope.study import run as running
from beliefscope.study.run import restore_descriptions, run_study
from beliefscope.study.schedule import pieces_to_do
from beliefscope.study.workers.execute import Outcome


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> StudyFolder:
    """The study, run by one worker without a break."""
    folder = tmp_path_factory.mktemp("whole")
    status, out, err = run("run", definition(folder), "--out", folder / "out", "--workers", 1)
    assert status == 0, err
    assert "4 done, of 4 pieces" in out
    return StudyFolder(folder / "out")


def go_on(folder: Path, *options: object) -> tuple[int, str, str]:
    return run("run", definition(folder.parent), "--out", folder, "--workers", 1, *options)


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


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["params/20.eqx", "metrics.jsonl", "measure/*.json", "trained.json"])
def test_what_is_damaged_is_set_aside_and_made_again(name, whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    run_folder = study.path / "runs" / study.runs[1].id
    (file,) = run_folder.glob(name)
    content = file.read_bytes()
    damage(file)
    others = {path: path.stat().st_mtime_ns for path in (study.path / "runs" / study.runs[0].id).rglob("*.*")}
    status, out, err = go_on(study.path)
    assert status == 0, err
    assert f"set aside, to be made again: {file}" in out
    assert file.read_bytes() == content
    assert list((study.path / "quarantine").glob(f"*/{file.name}")) or list(
        (study.path / "quarantine").rglob(file.name)
    )
    assert study.csv() == whole.csv()
    assert others == {path: path.stat().st_mtime_ns for path in others}


def test_a_damaged_piece_is_never_read_as_data(whole, tmp_path, capsys):
    study = copied(whole, tmp_path / "out")
    (file,) = (study.path / "runs" / study.runs[0].id / "measure").glob("*.json")
    file.write_text(file.read_text().replace('"bits": ', '"bits": 1'))
    with pytest.raises(ValueError, match=f"{file.name} is damaged: its checksum"):
        study.table()


@pytest.mark.slow
def test_a_truncated_state_of_an_unfinished_training_is_set_aside_and_the_training_begun_again(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    folder = study.path / "runs" / study.runs[0].id
    (folder / "trained.json").unlink()
    state = (folder / "resume.eqx").read_bytes()
    (folder / "resume.eqx").write_bytes(state[:1000])
    status, _, err = go_on(study.path)
    assert status == 0, err
    assert study.csv() == whole.csv()
    assert (folder / "resume.eqx").read_bytes() == state


@pytest.mark.slow
def test_a_description_edited_by_hand_is_set_aside_and_written_again_and_its_training_goes_on(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    folder = study.path / "runs" / study.runs[0].id
    (folder / "trained.json").unlink()
    spec = (folder / "spec.json").read_text()
    (folder / "spec.json").write_text(edited := spec.replace('"seed": 0', '"seed": 5'))
    status, out, err = go_on(study.path)
    assert status == 0, err
    assert "4 done" in out
    assert (folder / "spec.json").read_text() == spec
    assert [kept.read_text() for kept in (study.path / "quarantine").rglob("spec.json")] == [edited]
    assert study.csv() == whole.csv()


def test_a_run_that_was_begun_and_lost_its_description_gets_it_back(tmp_path):
    study = read_study(definition(tmp_path))
    begun, other = (tmp_path / "runs" / run.id for run in study.runs)
    begun.mkdir(parents=True)
    restore_descriptions(study, tmp_path)
    assert (begun / "spec.json").read_text() == study.runs[0].training.canonical_json()
    assert not other.exists()


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
        assert "--out is a file, or nothing yet, but got" in capsys.readouterr().err
    assert not Path("/dev/null").is_file()


def test_a_run_whose_evaluations_are_gone_is_left_out_of_the_table_and_named_on_standard_error(whole, tmp_path, capsys):
    study = copied(whole, tmp_path / "out")
    metrics = study.path / "runs" / study.runs[0].id / "metrics.jsonl"
    metrics.unlink()
    assert main(["export", str(study.path)]) == 0
    table, said = capsys.readouterr()
    assert [line.split(",")[3] for line in table.splitlines()[1:]] == ["1"]  # its seed; a comma is in "T-Maze, L = 3"
    assert f"1 records are damaged and left out, such as {metrics}; `beliefscope run` makes them." in said
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "study.json").unlink(), "the folder of a study holds a study.json"),
        (lambda folder: damage(folder / "study.json"), "study.json is damaged"),
        (lambda folder: _with_format(folder, 99), "reads study folders of format 1, but got 'format 99"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_in_one_sentence(change, words, whole, tmp_path, capsys):
    study = copied(whole, tmp_path / "out")
    change(study.path)
    for command in ("status", "export"):
        assert main([command, str(study.path)]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def _with_format(folder: Path, number: int) -> None:
    write_record(folder / "study.json", {**read_record(folder / "study.json"), "format": number})


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


def test_a_whole_record_in_the_place_of_another_is_not_read(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    first, second = (next((study.path / "runs" / run.id / "measure").glob("*")) for run in study.runs)
    second.write_bytes(first.read_bytes())
    with pytest.raises(Damaged, match="the record of another measurement"):
        study.table()
    (damaged,) = study.set_aside_damaged()
    assert damaged.path == second
    assert count_states(study.states()) == "3 done, 1 missing"


def test_evaluations_and_descriptions_other_than_the_run_was_finished_with_are_not_read(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    metrics = study.path / "runs" / study.runs[0].id / "metrics.jsonl"
    lines, content = read_lines(metrics), metrics.read_bytes()
    write_lines(metrics, [{**line, "return": 99.0} for line in lines])
    with pytest.raises(Damaged, match=r"metrics\.jsonl"):
        study.table()
    metrics.write_bytes(content)
    assert study.csv() == whole.csv()
    spec = metrics.with_name("spec.json")
    spec.write_text(spec.read_text().replace("8", "9"))
    with pytest.raises(Damaged, match=r"spec\.json"):
        study.table()


def test_a_stray_failure_does_not_hide_a_run(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    failed = study.path / "runs" / study.runs[0].id / "failed.json"
    failed.write_text("{}")
    assert count_states(study.states()) == "4 done"
    assert study.csv() == whole.csv()
    assert [damaged.path for damaged in study.set_aside_damaged()] == [failed]
    assert not failed.exists()


def test_a_training_without_one_of_its_networks_is_not_called_finished(whole, tmp_path):
    study, spec = copied(whole, tmp_path / "out"), read_study(str(whole.path.parent / "tiny.toml")).runs[0].training
    run_folder = RunFolder(study.path, spec)
    (run_folder.path / "params" / "0.eqx").unlink()
    with pytest.raises(Damaged, match=r"0\.eqx .* it is missing"):
        run_folder.finish()


def test_a_definition_that_would_drop_finished_runs_is_refused(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    other = read_study(str(definition(tmp_path, TOML.replace("length = 3", "length = 4"))))
    with pytest.raises(ValueError, match=r"without 2 of them, such as T-Maze, L = 3, GRU, seed 0'; choose another"):
        study.prepare(other.describe())
    assert study.csv() == whole.csv()


def test_a_damaged_list_of_pieces_is_written_anew_and_an_old_manifest_does_not_stand_in_the_way(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    damage(study.path / "study.json")
    study = StudyFolder(study.path)
    study.prepare(read_study(str(whole.path.parent / "tiny.toml")).describe())
    assert study.csv() == whole.csv()
    (study.path / "manifest.json").write_text("x")
    write_manifest(study.path, "cpu")
    assert len(read_record(study.path / "manifest.json")["calls"]) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda runs: runs[0].update(id="../../../etc"),
        lambda runs: runs[0].pop("id"),
        lambda runs: runs[0].update(id=3),
        lambda runs: runs[0]["pieces"][1].update(measurement={"odd": 1}),
        lambda runs: runs.append(3),
    ],
)
def test_a_list_of_pieces_that_was_rewritten_is_refused_in_one_sentence(change, whole, tmp_path, capsys):
    study = copied(whole, tmp_path / "out")
    described = read_record(study.path / "study.json")
    change(described["runs"])
    write_record(study.path / "study.json", described)
    assert main(["status", str(study.path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"beliefscope: {study.path / 'study.json'} ")
    assert "`beliefscope run`" in error


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
