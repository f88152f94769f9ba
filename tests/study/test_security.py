"""A study's folder may come from anybody: opening it reads JSON and arrays in that folder, and nothing else."""

import ast
import json
import os
from pathlib import Path

import numpy as np
import pytest
from report.made_up import finish, stored_study

from beliefscope.cli import main
from beliefscope.store import read_record, write_record

SOURCE = Path(__file__).parents[2] / "src" / "beliefscope"
COMMANDS = ("status", "export", "claims", "report")


def made(folder: Path) -> Path:
    stored = stored_study(folder)
    for run in stored.runs:
        finish(stored, run)
    return stored.path


def edited(path: Path, change) -> None:
    """study.json with other content, and the checksum that belongs to it."""
    content = {name: value for name, value in read_record(path / "study.json").items() if name != "sum"}
    change(content)
    write_record(path / "study.json", content)


def test_nothing_reads_pickles_but_what_ray_sends():
    for file in SOURCE.rglob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
        assert not names & {"pickle", "cloudpickle", "dill", "joblib"} or file.name == "ray.py", file
        assert "allow_pickle=True" not in file.read_text(), file


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("episode", ["../../../../outside", "0", 1.5, True, None])
def test_an_episode_that_is_no_number_leads_nowhere(command, episode, tmp_path, capsys):
    path = made(tmp_path)
    np.savez(tmp_path / "outside.npz", secret=np.ones(3))

    def change(content):
        (trace, *_) = (piece for piece in content["runs"][0]["pieces"] if piece["kind"] == "trace")
        trace["episode"] = episode

    edited(path, change)
    assert main([command, str(path)]) == 2
    error = capsys.readouterr().err
    assert "study.json" in error
    assert "`beliefscope run`" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("id", ["../../outside", "0123456789abcde/", "", "0123456789ABCDEF"])
def test_a_run_that_is_called_otherwise_leads_nowhere(command, id, tmp_path, capsys):
    path = made(tmp_path)
    edited(path, lambda content: content["runs"][0].update(id=id))
    assert main([command, str(path)]) == 2
    assert "16 hexadecimal digits" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["runs", "figures", "report.html", "runs/{run}/metrics.jsonl", "manifest.json"])
def test_links_in_the_folder_are_refused(command, name, tmp_path, capsys):
    path, outside = made(tmp_path), tmp_path / "outside"
    link = path / name.format(run=read_record(path / "study.json")["runs"][0]["id"])
    if link.exists():
        link.rename(outside)
    else:
        outside.write_text("mine")
    link.symlink_to(outside)
    before = outside.stat().st_mtime_ns
    assert main([command, str(path)]) == 2
    assert "is a symbolic link" in capsys.readouterr().err
    assert outside.stat().st_mtime_ns == before


def test_the_folder_itself_may_be_a_link(tmp_path, capsys):
    path = made(tmp_path)
    (tmp_path / "link").symlink_to(path)
    assert main(["export", str(tmp_path / "link")]) == 0
    assert capsys.readouterr().out.count("\n") > 1


def test_a_run_in_a_folder_with_links_begins_nothing(tmp_path, capsys):
    folder, outside = tmp_path / "new", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "runs").symlink_to(outside)
    assert main(["run", "demo", "--out", str(folder)]) == 2
    assert "is a symbolic link" in capsys.readouterr().err
    assert not list(outside.iterdir())


def test_a_stored_report_has_the_mode_that_the_umask_leaves(tmp_path, capsys):
    path, before = made(tmp_path), os.umask(0o027)
    try:
        assert main(["report", str(path)]) == 0
    finally:
        os.umask(before)
    assert (path / "report.html").stat().st_mode & 0o777 == 0o640


def test_a_description_nested_beyond_reason_is_refused(tmp_path, capsys):
    path = made(tmp_path)
    (path / "study.json").write_text("[" * 100_000 + "]" * 100_000)
    assert main(["status", str(path)]) == 2
    assert json.dumps(str(path))[1:-1] in capsys.readouterr().err
