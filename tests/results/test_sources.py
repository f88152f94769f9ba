"""Several folders and exported tables as one: the union of runs, each once; what disagrees is refused by name."""

import csv
import hashlib
import io
import json
import os
import shutil

import polars
import pytest
from report.made_up import diverge, fail, finish, made_record, stored_study

from beliefscope.cli import main
from beliefscope.results import as_csv, read_results, read_table
from beliefscope.results.table import read_csv
from beliefscope.store import StudyFolder, lock, read_record, write_record
from beliefscope.store.study_folder import archive


@pytest.fixture
def whole(tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    return stored


def part_of(whole: StudyFolder, folder, *, runs=(), without=()) -> StudyFolder:
    """A copy with some of the runs, and without some results."""
    shutil.copytree(whole.path, folder)
    part = StudyFolder(folder)
    for run in part.runs:
        if run.id not in runs:
            shutil.rmtree(part.files.run(run.id).folder)
    for piece in without:
        piece.result(folder).unlink()
    return part


def test_two_halves_of_a_study_are_the_whole(whole, tmp_path):
    ids = [run.id for run in whole.runs]
    first = part_of(whole, tmp_path / "first", runs=ids[:2])
    second = part_of(whole, tmp_path / "second", runs=ids[1:], without=[whole.runs[1].pieces[2]])
    found = read_table([first.path, second.path])
    assert found.sort("run", "episode").equals(whole.table().sort("run", "episode"))
    results = read_results([first.path, second.path])
    assert set(results.states.values()) == {"done"}
    assert sum(len(each) for each in results.returns.values()) == len(ids)
    assert [run.id for run in results.runs] == ids


def test_a_setting_is_named_once_however_many_folders_have_it(whole, tmp_path):
    folders = [part_of(whole, tmp_path / str(number)) for number in range(3)]
    for folder, scale in zip(folders, ("quick", "small", "small"), strict=True):
        write_record(folder.files.study, folder.description | {"settings": {"scale": scale}})
    assert read_results([folder.path for folder in folders]).settings == {"scale": "quick, small"}


def test_the_same_folder_twice_counts_once(whole):
    assert as_csv(read_table([whole.path, whole.path])) == whole.csv()


def test_a_measurement_that_differs_is_refused_by_name(whole, tmp_path):
    run = whole.runs[0]
    other = part_of(whole, tmp_path / "other", runs=[run.id])
    piece = next(piece for piece in run.pieces if piece.kind == "measure")
    record = made_record(piece, run)
    record["belief"]["bits"] += 0.5
    write_record(piece.result(other.path), record)
    with pytest.raises(ValueError, match=f"hold the same result, but '{piece.title}' differs") as error:
        read_table([whole.path, other.path])
    assert str(other.path) in str(error.value)


def test_versions_do_not_make_a_result_another_one(whole, tmp_path):
    run = whole.runs[0]
    other = part_of(whole, tmp_path / "other", runs=[run.id])
    piece = next(piece for piece in run.pieces if piece.kind == "measure")
    write_record(piece.result(other.path), made_record(piece, run) | {"made_with": {"jax": "another"}})
    assert as_csv(read_table([whole.path, other.path])) == whole.csv()


def test_a_table_has_the_interval_of_a_record_that_has_one(whole):
    run = whole.runs[0]
    one, other = [piece for piece in run.pieces if piece.kind == "measure"][:2]
    for piece, interval in ((one, [0.25, 0.75]), (other, [0.5, None])):  # the other's is not bounded above
        record = made_record(piece, run)
        record["belief"]["interval"] = interval
        write_record(piece.result(whole.path), record)
    rows = {(row["run"], row["episode"]): (row["bits_low"], row["bits_high"]) for row in whole.table().to_dicts()}
    assert rows.pop((run.id, one.episode)) == (0.25, 0.75)
    assert rows.pop((run.id, other.episode)) == (0.5, None)
    assert set(rows.values()) == {(None, None)}


def test_an_exported_table_reads_back_as_it_was(whole, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(whole.csv())
    assert read_csv(file).equals(whole.table())
    assert as_csv(read_table([file])) == whole.csv()
    assert as_csv(read_table([file, whole.path])) == as_csv(read_table([whole.path]))


def test_a_table_from_before_estimators_had_their_names_is_understood(whole, tmp_path):
    head, *rows = csv.reader(io.StringIO(whole.csv()))
    for row in rows:
        row[head.index("N")] = str(int(row[head.index("N")]) // 2)
        row[head.index("estimator")] = "text"
    with (tmp_path / "old.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    assert read_csv(tmp_path / "old.csv").equals(whole.table())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "has the columns that"),
        ("", "has the columns that"),
        ("\xff", "cannot be read"),
        ("bits", "has values of its kind"),
    ],
)
def test_a_file_that_is_no_exported_table_gets_one_sentence(whole, tmp_path, text, words, capsys):
    file = tmp_path / "odd.csv"
    content = whole.csv().replace("belief", "belief").replace(",0.1,", ",x,") if text == "bits" else text
    file.write_bytes(content.encode("latin-1", "replace"))
    assert main(["claims", str(file)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert words in error
    assert error.count("\n") == 1


def test_the_commands_take_several_folders(whole, tmp_path, capsys):
    ids = [run.id for run in whole.runs]
    parts = [part_of(whole, tmp_path / str(number), runs=[id]) for number, id in enumerate(ids)]
    given = [str(part.path) for part in parts]
    assert main(["export", *given]) == 0
    out, error = capsys.readouterr()
    assert (out, error) == (whole.csv(), "")
    assert main(["claims", *given]) == 0
    assert main(["report", *given]) == 2
    assert "has a folder of its own" in capsys.readouterr().err
    assert main(["report", *given, "--out", str(tmp_path / "joint")]) == 0
    assert (tmp_path / "joint" / "report.html").is_file()
    assert not (parts[0].path / "report.html").exists()


def test_what_is_missing_is_said_on_standard_error(whole, capsys):
    whole.runs[0].pieces[1].result(whole.path).unlink()
    assert main(["export", str(whole.path)]) == 0
    out, error = capsys.readouterr()
    assert out == StudyFolder(whole.path).csv()
    assert error == "beliefscope: 1 piece is missing; `beliefscope run` makes it.\n"


@pytest.fixture
def with_networks(whole):
    """The same, with networks that are no networks."""
    for run in whole.runs:
        files, digests = whole.files.run(run.id), {}
        files.params.mkdir()
        for episode in (0, 10, 20):
            files.network(episode).write_bytes(b"x" * 100)
            digests[f"params/{episode}.eqx"] = hashlib.sha256(b"x" * 100).hexdigest()
        files.resume.write_bytes(b"x" * 1000)
        trained = read_record(files.trained)
        write_record(files.trained, trained | {"files": trained["files"] | digests})
    return whole


def test_an_archive_keeps_results_and_drops_networks(with_networks, capsys):
    whole, before = with_networks, with_networks.csv()
    files = whole.files.run(whole.runs[0].id)
    files.network(7).write_bytes(b"of a user")
    assert main(["archive", str(whole.path), "--keep-ends"]) == 0
    assert "dropped the networks of 4 finished runs, and kept the first and the last" in capsys.readouterr().out
    assert files.networks() == [0, 7, 20]
    assert not files.resume.exists()
    assert archive(whole, keep_ends=False) == (4, 4 * 200, 0)
    assert main(["archive", str(whole.path)]) == 0
    assert capsys.readouterr().out == "nothing was dropped: there is no finished run with networks to drop\n"
    assert files.networks() == [7]
    files.network(7).unlink()
    assert whole.csv() == before
    assert set(whole.states().values()) == {"done"}
    assert whole.set_aside_damaged() == []


def test_an_archive_keeps_what_missing_failed_and_running_pieces_need(with_networks, capsys):
    whole = with_networks
    missing, failed, running, done = whole.runs
    for run in (missing, failed, running):
        run.pieces[1].result(whole.path).unlink()
    fail(whole, failed.pieces[1], "no reason")
    with lock(whole.files.lock(running.pieces[1].name)):
        assert main(["archive", str(whole.path)]) == 0
    said = capsys.readouterr().out
    assert "dropped the networks of 1 finished run: " in said
    assert "kept all networks of 3 runs, since pieces that are not done need them" in said
    assert [whole.files.run(run.id).networks() for run in (missing, failed, running, done)] == [[0, 10, 20]] * 3 + [[]]


def test_while_a_run_is_trained_again_its_results_stay(whole):
    before = whole.csv()
    run = whole.runs[0]
    for _ in range(2):
        finish(whole, run)
        whole.set_aside(run.pieces[0])
        assert not whole.files.run(run.id).trained.exists()
        assert whole.csv() == before
    assert len(read_results([whole.path]).returns["T-Maze, L = 3", "GRU"]) == 2
    diverge(whole, run, "no reason")
    assert run.id not in whole.csv()


@pytest.mark.parametrize("damaged", ["metrics", "trained", "measurement"])
def test_a_damaged_file_gives_way_to_an_intact_copy_in_another_folder(whole, tmp_path, damaged):
    run = whole.runs[0]
    copy = part_of(whole, tmp_path / "copy", runs=[run.id])
    files = copy.files.run(run.id)
    measured = next(piece for piece in run.pieces if piece.kind == "measure").result(copy.path)
    with {"metrics": files.metrics, "trained": files.trained, "measurement": measured}[damaged].open("a") as file:
        file.write("{")
    for paths in ([whole.path, copy.path], [copy.path, whole.path]):
        said = []
        assert read_table(paths, said).sort("run", "episode").equals(whole.table().sort("run", "episode"))
        assert said == []
        assert len(read_results(paths).damaged) == 0


def test_what_a_table_lacks_is_taken_from_another(whole, tmp_path):
    older, doubled = tmp_path / "older.csv", tmp_path / "doubled.csv"
    older.write_text(as_csv(whole.table().drop("control_time")))
    doubled.write_text(whole.csv() + "".join(whole.csv().splitlines(keepends=True)[1:]))
    for paths in ([older, whole.path], [whole.path, older], [doubled], [older, doubled, older]):
        assert as_csv(read_table(paths)) == whole.csv()


def test_tables_that_differ_are_refused_by_name(whole, tmp_path, capsys):
    bits = as_csv(whole.table().with_columns(bits=polars.col("bits") + 1))
    (tmp_path / "other.csv").write_text(bits)
    assert main(["claims", str(whole.path), str(tmp_path / "other.csv")]) == 2
    error = capsys.readouterr().err
    title = "T-Maze, L = 3, GRU, seed 0, episode 0, mine"
    assert f"but of {title}, bits is 0.0 in {whole.path} and 1.0 in {tmp_path / 'other.csv'}; leave" in error
    twice = tmp_path / "twice.csv"
    twice.write_text(whole.csv().replace("exact_0.1", "bits", 1))
    assert main(["export", str(twice)]) == 2
    assert "has each column once" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["study.json", "manifest.json", "runs/new.csv", "locks/new.csv"])
def test_a_table_is_not_written_over_the_study(whole, name, capsys):
    before = whole.files.study.read_bytes()
    assert main(["export", str(whole.path), "--out", str(whole.path / name)]) == 2
    assert "not written over what a study's folder holds" in capsys.readouterr().err
    assert whole.files.study.read_bytes() == before


def test_what_failed_in_one_folder_and_is_done_in_another_has_not_failed(whole, tmp_path):
    part = part_of(whole, tmp_path / "part", runs=[whole.runs[0].id])
    piece = part.runs[0].pieces[1]
    piece.result(part.path).unlink()
    fail(part, piece, "no reason")
    assert read_results([part.path]).failures == [(piece.title, "no reason")]
    assert read_results([part.path, whole.path]).failures == []


def test_a_network_with_other_bytes_is_damage_and_a_missing_one_is_not(whole):
    piece = whole.runs[0].pieces[0]
    files = whole.files.run(piece.run)
    trained = json.loads(files.trained.read_text())
    del trained["sum"]
    write_record(files.trained, trained | {"files": trained["files"] | {"params/0.eqx": "0" * 64}})
    whole.check(piece)
    files.params.mkdir()
    files.network(0).write_bytes(b"other")
    assert [error.path for error in whole.set_aside_damaged()] == [files.network(0)]


@pytest.mark.parametrize("kind", ["fifo", "folder"])
@pytest.mark.parametrize("name", ["measure", "trained", "metrics", "spec", "trace", "manifest"])
def test_what_is_no_file_neither_hangs_nor_breaks_looking(whole, kind, name, capsys, monkeypatch):
    """Figures are drawn, but not written as images: that no longer depends on the files."""
    monkeypatch.setattr("beliefscope.report.figures.rendered", lambda figure, kind: b"")
    run = whole.runs[0]
    files = whole.files.run(run.id)
    pieces = {piece.kind: piece for piece in run.pieces}
    path = {
        "measure": pieces["measure"].result(whole.path),
        "trained": files.trained,
        "metrics": files.metrics,
        "spec": files.spec,
        "trace": pieces["trace"].result(whole.path),
        "manifest": whole.files.manifest,
    }[name]
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    for command in ("status", "export", "claims", "report"):
        assert main([command, str(whole.path)]) == 0
    assert "Traceback" not in capsys.readouterr().err
