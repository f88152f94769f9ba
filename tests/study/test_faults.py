"""Disks that fail under a study: an error that names the file, nothing lost, and after the repair it goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from study.tiny import definition, run

from beliefscope import StudyFolder

pytestmark = pytest.mark.slow
FAULTS = Path(__file__).parent / "faults"


@pytest.fixture
def table(whole) -> str:
    """That of a run without faults."""
    return whole.csv()


def go(folder: Path) -> tuple[int, str, str]:
    return run("run", definition(folder.parent), "--out", folder, "--workers", 1)


@pytest.mark.parametrize(
    ("fault", "file"),
    [
        ("ENOSPC:0:study.json", "study.json"),
        ("ENOSPC:2:resume.eqx", "resume.eqx"),
        ("ENOSPC:0:trained.json", "trained.json"),
        ("EROFS:1:metrics.jsonl", "metrics.jsonl"),
        ("EIO:1:20.eqx", "20.eqx"),
    ],
)
def test_a_disk_that_fails_stops_the_study_with_the_files_name_and_it_goes_on_afterwards(
    fault, file, table, tmp_path, monkeypatch
):
    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FAULTS), prepend=os.pathsep)
        patch.setenv("FAULT", fault)
        status, _, err = go(folder)
    assert status == 2
    assert err.splitlines()[-1].startswith("beliefscope: ")
    assert file in err.splitlines()[-1]
    assert "Traceback" not in err
    status, _, err = go(folder)
    assert status == 0, err
    assert StudyFolder(folder).csv() == table


@pytest.mark.parametrize("fault", ["short:0:", "delay:0:"])
def test_a_disk_that_takes_little_at_a_time_or_is_slow_changes_nothing(fault, table, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(FAULTS), prepend=os.pathsep)
    monkeypatch.setenv("FAULT", fault)
    status, _, err = go(tmp_path / "out")
    assert status == 0, err
    assert StudyFolder(tmp_path / "out").csv() == table


def test_minutes_of_faults_lose_nothing():
    """`make faults` takes an hour of them."""
    suite = subprocess.run(
        [sys.executable, Path(__file__).with_name("fault_suite.py"), "--minutes", "1.5", "--faults", "150"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert suite.returncode == 0, suite.stdout + suite.stderr
    assert suite.stdout.splitlines()[-1].endswith("completed, 0 lost, 0 differing, 0 tracebacks, 0 hangs")


def test_a_full_disk_stops_the_study_and_more_room_lets_it_go_on(table, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        status, _, err = go(disk / "out")
        assert status == 2
        assert "No space left on device" in err
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
        status, _, err = go(disk / "out")
        assert status == 0, err
        assert StudyFolder(disk / "out").csv() == table
    finally:
        subprocess.run(["umount", disk], check=True)
