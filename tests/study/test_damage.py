"""A study whose files are damaged, forged or gone: what is set aside, made again or refused."""

from pathlib import Path

import pytest
from study.tiny import copied, definition, go_on

from beliefscope import RunFolder, StudyFolder, read_study
from beliefscope.cli import main
from beliefscope.store import Damaged, read_lines, read_record, write_lines, write_record
from beliefscope.store.manifest import write_manifest
from beliefscope.store.study_folder import count_states
from beliefscope.study.run import restore_descriptions


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
