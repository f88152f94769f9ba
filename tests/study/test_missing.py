"""Finished runs whose networks are gone stay finished; where something new is asked of them, they are trained again."""

from pathlib import Path

import pytest
from study.tiny import TOML, copied, definition, run

from beliefscope import StudyFolder, read_study, run_study
from beliefscope.store import Damaged, read_record, write_record
from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import archive, count_states
from beliefscope.study.schedule import describe_trained_again, pieces_to_do, set_aside_trainings

MORE = TOML.replace("estimators =", "epsilons = [0.0, 0.2]\nestimators =")
AGAIN = "trained again, since measurements that are asked for need its networks: T-Maze, L = 3, GRU, seed {}"


@pytest.fixture
def archived(whole, tmp_path) -> StudyFolder:
    """The study without its networks."""
    study = copied(whole, tmp_path / "out")
    assert archive(study, keep_ends=False)[0] == 2
    assert not list(study.path.rglob("*.eqx"))
    return study


def contents(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def run_more(study: StudyFolder, *options: object) -> tuple[str, str]:
    """The study with another ε: what it prints."""
    status, out, err = run("run", definition(study.path.parent, MORE), "--out", study.path, "--workers", 1, *options)
    assert status == 0, err
    return out, err


def old_rows(study: StudyFolder) -> list[str]:
    """Those of ε = 0, as text."""
    return [line for line in StudyFolder(study.path).csv().splitlines() if ",0.2," not in line]


def test_a_study_without_its_networks_is_finished_and_run_again_does_nothing(archived, tmp_path, capsys):
    before = contents(archived.path)
    stored = run_study(read_study(definition(tmp_path)), archived.path, workers=1)
    assert count_states(stored.states()) == "4 done"
    assert contents(archived.path) == before
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_where_more_is_asked_for_a_run_is_trained_again_and_the_user_told(archived, whole):
    out, err = run_more(archived, "--only", "seed 0")
    assert out.count("trained again") == 1
    assert AGAIN.format(0) in out.splitlines()
    assert "another result" not in err
    assert old_rows(archived) == whole.csv().splitlines()
    first, second = (archived.files.run(run.id) for run in whole.runs)
    assert (first.networks(), second.networks()) == ([0, 20], [])
    assert first.network(20).read_bytes() == whole.files.run(whole.runs[0].id).network(20).read_bytes()
    assert StudyFolder(archived.path).table()["epsilon"].to_list() == [0.0, 0.2, 0.0]


@pytest.mark.slow
def test_what_was_measured_of_other_networks_is_set_aside_and_measured_again(archived, whole):
    trained = archived.files.run(whole.runs[1].id).trained
    record = read_record(trained)
    write_record(trained, {**record, "files": {**record["files"], "params/20.eqx": "0" * 64}})
    out, err = run_more(archived, "--only", "seed 1")
    assert AGAIN.format(1) in out.splitlines()
    assert err.count("trained again with another result: T-Maze, L = 3, GRU, seed 1; what was measured") == 1
    kept = [row for row in whole.csv().splitlines() if whole.runs[1].id not in row]
    assert old_rows(archived) == kept != whole.csv().splitlines()
    out, err = run_more(archived, "--only", "seed 1")
    assert "trained again" not in out + err
    assert old_rows(archived) == whole.csv().splitlines()


def test_of_many_runs_the_number_and_the_first_are_named(archived, tmp_path):
    archived.prepare(read_study(definition(tmp_path, MORE)).describe())
    runs = set_aside_trainings(archived, pieces_to_do(archived))
    assert describe_trained_again(runs).endswith("need their networks: 2 runs, such as T-Maze, L = 3, GRU, seed 0")
    assert [piece.kind for piece in pieces_to_do(archived)] == ["train", "measure"] * 2
    assert set_aside_trainings(archived, pieces_to_do(archived)) == []  # they are to be trained already


def test_a_run_that_has_the_networks_which_are_needed_is_not_trained_again(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    archive(study, keep_ends=True)
    study.prepare(read_study(definition(tmp_path, MORE)).describe())
    before = contents(study.path)
    assert set_aside_trainings(study, pieces_to_do(study)) == []
    assert contents(study.path) == before


def test_an_altered_network_is_damage_and_one_that_is_gone_is_not(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    first = study.files.run(study.runs[0].id)
    training = Piece(kind="train", run=study.runs[0].id, label="")
    first.network(0).unlink()
    study.check(training)
    first.network(20).write_bytes(b"other")
    with pytest.raises(Damaged, match=r"20\.eqx"):
        study.check(training)


def test_what_is_done_stays_when_the_definition_no_longer_asks_for_it(whole, tmp_path):
    study = copied(whole, tmp_path / "out")
    before = study.csv()
    study.prepare(read_study(definition(tmp_path, TOML.replace('controls = "none"', 'controls = "all"'))).describe())
    assert count_states(study.states()) == "4 done, 2 missing"
    assert StudyFolder(study.path).csv() == before
    study.prepare(read_study(definition(tmp_path)).describe())
    assert count_states(StudyFolder(study.path).states()) == "4 done"
