"""A folder in which anything may stand in place of anything: looking answers with a sentence, and `run` repairs."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from report.made_up import diverge, fail, finish, stored_study

from beliefscope.cli import main
from beliefscope.store import Damaged, StudyFolder, read_record, save_arrays, write_record
from beliefscope.store.manifest import write_manifest
from beliefscope.study import read_study
from beliefscope.study.run import restore_descriptions

COMMANDS = ("status", "status --check", "export", "claims")


@pytest.fixture
def study(tmp_path) -> StudyFolder:
    """Finished but for one piece that failed and one run that diverged, with a file of every kind."""
    stored = stored_study(tmp_path)
    for run in stored.runs[:-1]:
        finish(stored, run)
        for episode in (0, 10):
            save_arrays(stored.files.run(run.id).network(episode), {})
    failed = stored.runs[0].pieces[1]
    failed.result(stored.path).unlink()
    fail(stored, failed, "no reason")
    diverge(stored, stored.runs[-1], "too wild")
    write_manifest(stored.path, "CPU")
    stored.files.locks.mkdir()
    (stored.files.locks / "train-0123456789abcdef").touch()
    return stored


def put(kind: str, path: Path) -> None:
    """Something of this kind in place of a file or folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_bytes(b"")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        before = os.getcwd()
        os.chdir(path.parent)  # a socket's path has at most 108 characters
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(before)


@contextlib.contextmanager
def seconds(most: int):
    """Whatever blocks is ended."""

    def end(number, frame):
        raise TimeoutError(f"it took more than {most} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(most)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kinds_of_files(study: StudyFolder) -> list[Path]:
    """One file of each kind, of the first run that has it."""
    found: dict[str, Path] = {}
    for file in sorted(study.path.rglob("*")):
        kind = (
            file.parent.name if file.parent.name in ("params", "measure", "traces", "failures", "locks") else file.name
        )
        if file.is_file() and not file.name.startswith("."):
            found.setdefault(kind, file)
    return list(found.values())


def said(capsys, command: str, path: Path) -> tuple[int, str]:
    with seconds(20):
        status = main([*command.split(), str(path)])
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert err.count("\n") <= 1
    return status, err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_looking_answers_with_a_sentence_whatever_stands_in_place_of_a_file(study, kind, capsys):
    files = kinds_of_files(study)
    assert len(files) == 11
    for file in files:
        content = file.read_bytes()
        put(kind, file)
        for command in COMMANDS:
            status, err = said(capsys, command, study.path)
            refused = kind == "device" or file.name == "study.json"
            assert status in ((2,) if refused else (0, 1)), (file, command, err)
        file.rmdir() if kind == "folder" else file.unlink()
        file.write_bytes(content)


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_run_sets_aside_what_stands_in_place_of_a_file(study, kind, tmp_path):
    described = read_study(str(tmp_path / "made-up.toml"))
    files = kinds_of_files(study)
    for file in files:
        put(kind, file)
    with seconds(20):
        study.prepare(described.describe())
        restore_descriptions(described, study.path)
        study.set_aside_damaged()
        write_manifest(study.path, "CPU")
    for file in files:
        assert not os.path.lexists(file) or file.is_file(), file
    again = StudyFolder(study.path)
    assert "missing" in again.states().values()
    for piece in again.pieces:
        if again.is_done(piece):
            again.check(piece)


@pytest.mark.parametrize(
    "name", ["runs", "locks", "quarantine", "runs/{run}", "runs/{run}/measure", "runs/{run}/params"]
)
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_run_sets_aside_what_stands_in_place_of_a_folder(study, kind, name, tmp_path, capsys):
    place = study.path / name.format(run=study.runs[0].id)
    place.mkdir(exist_ok=True)
    put(kind, place)
    for command in COMMANDS:
        assert said(capsys, command, study.path)[0] in (0, 1)
    described = read_study(str(tmp_path / "made-up.toml"))
    study.prepare(described.describe())
    restore_descriptions(described, study.path)
    study.set_aside_damaged()
    assert not os.path.lexists(place) or place.is_dir()


def test_run_sets_aside_what_stands_in_place_of_a_runs_pomdp(study, tmp_path):
    place = study.files.run(study.runs[0].id).pomdp
    place.mkdir()
    study.prepare(read_study(str(tmp_path / "made-up.toml")).describe())
    assert not os.path.lexists(place)


def test_run_writes_a_description_anew_that_is_another_one(study, tmp_path):
    described = read_study(str(tmp_path / "made-up.toml"))
    file = study.files.run(study.runs[0].id).spec
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"0", b"1"))
    restore_descriptions(described, study.path)
    assert file.read_bytes() == whole
    assert len(list(study.path.glob("quarantine/spec-*/spec.json"))) == 1
    assert study.set_aside_damaged() == []


@pytest.mark.parametrize("change", [{"runs": ""}, {"runs": [{}]}, {"settings": 3}, {"name": None}, {"format": None}])
def test_run_writes_a_sealed_but_odd_study_anew(study, change, tmp_path):
    described = read_study(str(tmp_path / "made-up.toml")).describe()
    write_record(study.files.study, read_record(study.files.study) | change)
    again = StudyFolder(study.path)
    again.prepare(described)
    assert again.description == described
    assert (study.path / "quarantine" / "study.json.0" / "study.json").is_file()


def test_a_sealed_record_without_the_part_that_was_measured_is_damaged(study):
    file = next(piece for piece in study.pieces if piece.kind == "measure" and study.is_done(piece)).result(study.path)
    record = read_record(file)
    del record["belief"]
    for odd in (record, record | {"relevant": None}):
        write_record(file, odd)
        assert [each.path for each in study.set_aside_damaged()] == [file]


def test_run_does_not_touch_a_study_of_another_format(study, tmp_path):
    write_record(study.files.study, read_record(study.files.study) | {"format": 2})
    before = study.files.study.read_bytes()
    with pytest.raises(ValueError, match="format 2"):
        StudyFolder(study.path).prepare(read_study(str(tmp_path / "made-up.toml")).describe())
    assert study.files.study.read_bytes() == before


@pytest.mark.parametrize("calls", ["", 3, [3], [{}]])
def test_an_odd_manifest_does_not_stand_in_the_way(study, calls):
    write_record(study.files.manifest, {"calls": calls})
    write_manifest(study.path, "CPU")
    assert len(study.manifest()) == 1


@pytest.mark.parametrize("name", ["/etc/hostname", "../../../secret", "params/../../../../secret"])
def test_a_training_cannot_name_a_file_outside_its_folder(study, name, tmp_path):
    (tmp_path / "secret").write_text("mine")
    training = study.runs[0].pieces[0]
    file = training.result(study.path)
    record = read_record(file)
    write_record(file, record | {"files": record["files"] | {name: "0" * 64}})
    with pytest.raises(Damaged, match="outside its folder"):
        study.check(training)


def test_names_of_networks_that_are_no_numbers_are_passed_over(study):
    files = study.files.run(study.runs[0].id)
    for name in ("3².eqx", "٣.eqx", "1" * 200 + ".eqx", "5"):
        (files.params / name).touch()
    os.mkfifo(files.network(7))
    assert files.networks() == [0, 10]
    record = read_record(files.trained)
    more = {f"params/{name}.eqx": "" for name in ("3²", "9" * 5000)}
    write_record(files.trained, record | {"files": record["files"] | more})
    assert study.lacking(study.runs[0].pieces[1]) == set()


def test_a_sparse_file_of_a_terabyte_is_damaged_and_not_read(study, capsys):
    for file in kinds_of_files(study):
        content = file.read_bytes()
        os.truncate(file, 2**40)
        for command in COMMANDS:
            assert said(capsys, command, study.path)[0] in (0, 1, 2)
        file.write_bytes(content)


def test_a_name_with_what_a_terminal_obeys_is_printed_without_it(study, capsys):
    (study.path / "a\x1b]0;owned\x07b").symlink_to("/")
    status, err = said(capsys, "status", study.path)
    assert status == 2
    assert "is a symbolic link" in err
    assert err.replace("\n", "").isprintable()


def test_what_interrupted_writes_leave_is_cleared_in_the_whole_folder(study, tmp_path):
    """Also that of a process whose number another one has now."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    run = study.files.run(study.runs[0].id)
    left = [study.files.manifest, study.files.study, run.spec, run.network(0), run.measurement("a"), run.trace(0)]
    left = [file.with_name(f".{file.name}.{number}.tmp") for file in left for number in (gone.pid, os.getpid())]
    for file in left:
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (1e9, 1e9))
    study.prepare(read_study(str(tmp_path / "made-up.toml")).describe())
    assert not list(study.path.rglob(".*.tmp"))


@pytest.mark.parametrize("name", [".notes.tmp", "thesis/.draft.1.tmp", ".git/.lock.tmp", "runs/notes.txt", "runs/.x"])
def test_run_leaves_the_files_of_others_where_they_are(name, study, tmp_path):
    file = study.path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    os.utime(file, (1e9, 1e9))
    study.prepare(read_study(str(tmp_path / "made-up.toml")).describe())
    assert file.read_text() == "mine"


def test_a_pipe_where_a_file_is_written_first_does_not_block(study):
    file = study.files.manifest
    os.mkfifo(file.with_name(f".{file.name}.{os.getpid()}.tmp"))
    with seconds(5):
        write_record(file, {"calls": []})
    assert json.loads(file.read_text())["calls"] == []


def test_a_pipe_that_is_called_a_table_does_not_block(tmp_path, capsys):
    os.mkfifo(tmp_path / "table.csv")
    for command in ("export", "claims"):
        status, err = said(capsys, command, tmp_path / "table.csv")
        assert status == 2
        assert "table.csv" in err


@pytest.mark.parametrize("where", ["name", "environment"])
def test_a_name_of_more_than_200_characters_is_refused_when_it_is_read(study, where, capsys):
    record = read_record(study.files.study)
    (record if where == "name" else record["runs"][0])[where] = "x" * 201
    write_record(study.files.study, record)
    for command in COMMANDS:
        status, err = said(capsys, command, study.path)
        assert status == 2, command
        assert len(err) < 1000


def test_export_makes_no_folder_for_its_table(study, tmp_path, capsys):
    assert main(["export", str(study.path), "--out", str(tmp_path / "new" / "table.csv")]) == 2
    assert "--out is a file in a folder that exists" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_status_names_what_is_damaged_only_when_it_is_asked_to_check(study, capsys):
    file = next(study.path.glob("runs/*/traces/*.npz"))
    file.write_bytes(file.read_bytes()[:-9])
    main(["status", str(study.path)])
    assert "damaged" not in capsys.readouterr().out
    assert main(["status", str(study.path), "--check"]) == 1
    out = capsys.readouterr().out
    assert f"  damaged: {file}: it cannot be read" in out
    assert "1 of the files that are done are damaged" in out
