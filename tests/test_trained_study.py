"""A folder that `train` has made is a study of its runs: `measure` adds to it, every command that looks reads it."""

import json
import threading

import pytest
from study.tiny import TOML, definition

from beliefscope import DRQN, MeasurementSpec, StudyFolder, TMaze, TrainingSpec, measure, train
from beliefscope.cli import main
from beliefscope.pomdp import Irrelevant, MountainHike, classic, label_of, write_pomdp
from beliefscope.store import Piece, read_record, write_record
from beliefscope.store.growing_study import add_measurement
from beliefscope.study import read_study

FLAGS = "--hidden-size 4 --num-layers 1 --num-episodes 30 --checkpoint-period 20 --evaluation-episodes 2 --cell gru"
ATOMS = MeasurementSpec(estimator="atoms", num_samples=2000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    assert main(f"train t-maze --length 2 {FLAGS} --seeds 0,1 --out {folder}".split()) == 0
    return folder


def test_its_pieces_are_the_trainings_and_its_name_is_the_folders(folder, capsys):
    study = StudyFolder(folder)
    assert [run.label for run in study.runs] == ["T-Maze, L = 2, GRU, seed 0", "T-Maze, L = 2, GRU, seed 1"]
    assert (study.description["name"], study.description["settings"]) == ("first", {"made by": "train"})
    assert study.description["optimum"]["T-Maze, L = 2"] > 3
    assert main(["status", str(folder)]) == 0
    assert "first: 2 done, of 2 pieces" in capsys.readouterr().out


def test_more_seeds_are_more_runs_and_the_same_command_changes_nothing(folder, capsys):
    before = (folder / "study.json").stat().st_mtime_ns
    assert main(f"train t-maze --length 2 {FLAGS} --seeds 0 1 --out {folder}".split()) == 0
    assert (folder / "study.json").stat().st_mtime_ns == before


def test_an_environment_is_called_as_in_a_study():
    assert label_of(TMaze(50)) == "T-Maze, L = 50"
    assert label_of(Irrelevant(TMaze(7, 0.3), 2)) == "Stochastic T-Maze, L = 7, λ = 0.3 + 2 irrelevant"
    assert label_of(MountainHike()) == "Mountain Hike"
    assert label_of(Irrelevant(MountainHike(varying=True), 3)) == "Varying Mountain Hike + 3 irrelevant"


def test_other_settings_in_one_folder_have_another_name(tmp_path):
    learner = DRQN(hidden_size=4, num_layers=1, num_episodes=10, checkpoint_period=10, evaluation_episodes=2)
    specs = [TrainingSpec(pomdp=TMaze(2, horizon=horizon), learner=learner) for horizon in (6, 8)]
    train(specs, tmp_path)
    assert [run.environment for run in StudyFolder(tmp_path).runs] == ["T-Maze, L = 2", "T-Maze, L = 2 (2)"]


def test_measured_checkpoints_are_entered_once_also_by_many_at_a_time(folder, tmp_path):
    (tmp_path / "study.json").write_bytes((folder / "study.json").read_bytes())
    run = StudyFolder(folder).runs[0]
    pieces = [
        Piece(kind="measure", run=run.id, label="", episode=episode, measurement=ATOMS) for episode in (0, 20, 30)
    ]
    threads = [threading.Thread(target=add_measurement, args=(tmp_path, piece)) for piece in [*pieces, *pieces]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = StudyFolder(tmp_path).runs[0].pieces
    assert sorted(piece.name for piece in found[1:]) == sorted(piece.name for piece in pieces)


def test_what_is_added_to_a_study_stays_when_it_goes_on(tmp_path):
    described = read_study(definition(tmp_path, TOML)).describe()
    write_record(tmp_path / "study.json", described)
    run = described["runs"][0]["id"]
    piece = Piece(kind="measure", run=run, label="", episode=20, measurement=ATOMS)
    add_measurement(tmp_path, piece)
    there = read_record(tmp_path / "study.json")
    assert there["runs"][0]["pieces"][-1]["added"]
    StudyFolder(tmp_path).prepare(described)
    assert piece.name in {each.name for each in StudyFolder(tmp_path).pieces}


def test_a_study_of_run_takes_no_other_runs(tmp_path, capsys):
    write_record(tmp_path / "study.json", read_study(definition(tmp_path, TOML)).describe())
    assert main(f"train t-maze --length 2 {FLAGS} --out {tmp_path}".split()) == 2
    assert "holds the study 'tiny' of `beliefscope run`, with its own runs alone" in capsys.readouterr().err


@pytest.mark.slow
def test_train_measure_report_status_export_and_claims(folder, capsys):
    assert main(["measure", str(folder), "--estimator", "sufficiency", "--num-samples", "2000"]) == 0
    said = capsys.readouterr().out
    assert said.count("networks after 0, 20, 30 episodes\n") == 2
    assert said.count("episode 30: return ") == 2
    assert f"beliefscope report {folder}" in said
    (id, *_) = sorted(path.name for path in (folder / "runs").iterdir())
    command = ["measure", str(folder / "runs" / id), "--num-samples", "2000", "--epochs", "2", "--episodes", "0,30"]
    assert main(command) == 0
    assert main(["status", str(folder)]) == 0
    assert "10 done, of 10 pieces" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 0
    assert main(["export", str(folder)]) == 0
    assert (
        len(capsys.readouterr().out.splitlines()) == 2 + 8
    )  # the report's line, the head and a row for each checkpoint
    assert main(["claims", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    for words in ("T-Maze, L = 2", "shuffled", "untrained", "decoder"):
        assert words in page
    assert (folder / "figures").is_dir()


@pytest.mark.slow
def test_controls_are_for_the_ends_and_middle_of_what_the_run_stores_also_after_archive(tmp_path, capsys):
    learner = DRQN(hidden_size=4, num_layers=1, num_episodes=40, checkpoint_period=20, evaluation_episodes=2)
    (run,) = train([TrainingSpec(pomdp=TMaze(2), learner=learner)], tmp_path)
    assert main(["archive", str(tmp_path), "--keep-ends"]) == 0
    run.network(0)
    (run.path / "params" / "20.eqx").write_bytes((run.path / "params" / "0.eqx").read_bytes())
    (run.path / "params" / "40.eqx").unlink()
    measure(run, ATOMS)
    pieces = {piece.episode: piece.controls for piece in StudyFolder(tmp_path).pieces if piece.kind == "measure"}
    assert pieces == {0: True, 20: True}
    assert main(["measure", str(tmp_path), "--estimator", "atoms", "--num-samples", "2000"]) == 0
    assert "networks after 0, 20 episodes; not there: 40" in capsys.readouterr().out
    assert main(["measure", str(tmp_path), "--estimator", "sufficiency", "--num-samples", "2000"]) == 2
    assert "that after 40 episodes, but got 'the networks [0, 20]'; train the run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_pomdp_file_is_not_asked_for_again(tmp_path, capsys):
    file, folder = tmp_path / "my-tiger.pomdp", tmp_path / "runs"
    write_pomdp(classic("tiger"), file)
    assert main(f"train file {file} --horizon 5 {FLAGS} --seeds 0 --out {folder}".split()) == 0
    file.unlink()
    assert main(["measure", str(folder), "--estimator", "atoms", "--num-samples", "2000", "--episodes", "30"]) == 0
    assert "my-tiger, GRU, seed 0" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 0
    (run,) = StudyFolder(folder).runs
    described = json.loads((folder / "runs" / run.id / "spec.json").read_text())
    assert described["pomdp"]["initial"]["sha256"]
