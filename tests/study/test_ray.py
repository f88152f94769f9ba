"""Studies on a Ray cluster of two nodes, real ones on this machine: the same table, whatever is lost on the way."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from study.tiny import TOML, beliefscope, definition, run

from beliefscope import StudyFolder, read_study
from beliefscope.storage import lock, read_lines
from beliefscope.study.folder import count_states

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'beliefscope[ray]'"
    ),
]
HERE = Path(__file__).parent
LONGER = TOML.replace("num_episodes = 20", "num_episodes = 200").replace("epochs = 2", "epochs = 300")
XLA = str(HERE.parents[1] / ".pytest_cache" / "xla")


class Cluster:
    """What cluster.py started."""

    def __init__(self, process: subprocess.Popen[str], place: Path):
        self._process, self._place = process, place
        self.address = self._answer()

    def obey(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        assert self._answer() == "obeyed"

    def is_fitting(self, since: float) -> bool:
        """Has a task taken up a measurement after that time?"""
        taken = self._place.glob(f"beliefscope-{os.getuid()}/*/locks/measure-*")
        return any(file.stat().st_mtime > since for file in taken)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    place = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # sockets have short names
    settings = {"RAY_TMPDIR": place, "TMPDIR": place, "RAY_USAGE_STATS_ENABLED": "0", "JAX_COMPILATION_CACHE_DIR": XLA}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", HERE / "cluster.py"],
        env={**os.environ, **settings},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield Cluster(process, Path(place))
        process.communicate()
    shutil.rmtree(place, ignore_errors=True)


def on_one_machine(folder: Path, text: str) -> StudyFolder:
    status, _, err = run("run", definition(folder, text), "--out", folder / "out", "--workers", 1)
    assert status == 0, err
    return StudyFolder(folder / "out")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> StudyFolder:
    return on_one_machine(tmp_path_factory.mktemp("tiny"), TOML)


@pytest.fixture(scope="module")
def longer(tmp_path_factory) -> StudyFolder:
    """A study whose trainings and fits take seconds, to be hit."""
    return on_one_machine(tmp_path_factory.mktemp("longer"), LONGER)


def command(folder: Path, cluster: Cluster, text: str) -> tuple[object, ...]:
    options = ("--backend", "ray", "--address", cluster.address)
    return ("run", definition(folder.parent, text), "--out", folder, *options)


def lines(folder: Path) -> int:
    """How many evaluations of the study's runs are stored."""
    return sum(len(read_lines(file)) for file in folder.glob("runs/*/metrics.jsonl"))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


def in_fits(folder: Path) -> bool:
    return len(list((folder / "locks").glob("measure-*"))) == 2


def check(folder: Path, whole: StudyFolder) -> None:
    """The study is done, each file as it would be on one machine."""
    stored = StudyFolder(folder)
    assert count_states(stored.states()) == "4 done"
    assert stored.csv() == whole.csv()
    for pattern in ("runs/*/metrics.jsonl", "runs/*/params/*", "runs/*/measure/*", "runs/*/resume.eqx"):
        found = {file.relative_to(folder): file.read_bytes() for file in folder.glob(pattern)}
        assert found == {file.relative_to(whole.path): file.read_bytes() for file in whole.path.glob(pattern)}
    assert not list(folder.glob("runs/*/failures/*"))
    assert not list((folder / "locks").iterdir())


def test_a_cluster_gives_the_table_of_one_machine(cluster, tiny, tmp_path):
    status, out, err = run(*command(tmp_path / "out", cluster, TOML))
    assert status == 0, err
    assert "4 done, of 4 pieces" in out
    assert "Traceback" not in err
    check(tmp_path / "out", tiny)


def test_a_node_lost_in_training_and_all_nodes_lost_in_fits_cost_nothing_that_was_stored(cluster, longer, tmp_path):
    folder, start = tmp_path / "out", time.time()
    with beliefscope(*command(folder, cluster, LONGER)) as process:
        wait_for(lambda: lines(folder) >= 6, process)
        before = lines(folder)
        cluster.obey("lose")
        cluster.obey("join")
        assert lines(folder) >= before
        wait_for(lambda: cluster.is_fitting(since=start), process)
        for order in ("lose", "lose", "join", "join"):
            cluster.obey(order)
        _, err = process.communicate()
    assert process.returncode == 0, err
    lost = [line for line in err.splitlines() if "sent out again" in line]
    assert {": train" in line for line in lost} == {True, False}, err
    check(folder, longer)


def test_a_study_whose_driver_is_killed_goes_on_where_it_was(cluster, longer, tmp_path):
    folder, order = tmp_path / "out", command(tmp_path / "out", cluster, LONGER)
    with beliefscope(*order) as process:
        wait_for(lambda: lines(folder) >= 6, process)
        process.kill()
    stored = lines(folder)
    assert "running" not in count_states(StudyFolder(folder).states())
    with beliefscope(*order) as process:
        seen = set()
        while process.poll() is None:
            seen.add(lines(folder))
            time.sleep(0.1)
    assert process.returncode == 0
    assert min(seen) >= stored
    check(folder, longer)


def test_an_interrupted_study_keeps_what_is_finished_and_may_go_on_on_one_machine(cluster, longer, tmp_path):
    folder, order = tmp_path / "out", command(tmp_path / "out", cluster, LONGER)
    with beliefscope(*order) as process:
        wait_for(lambda: in_fits(folder), process)
        assert "2 done, 2 running" in run("status", folder)[1]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Interrupted. What is finished is saved" in err
    assert "Traceback" not in err
    assert count_states(StudyFolder(folder).states()) == "2 done, 2 missing"
    status, _, err = run("run", order[1], "--out", folder, "--workers", 1)
    assert status == 0, err
    check(folder, longer)


def test_a_piece_that_another_process_does_is_left_to_it(cluster, tmp_path):
    order = command(tmp_path / "out", cluster, TOML)
    first = read_study(str(order[1])).pieces()[0]
    with lock(tmp_path / "out" / "locks" / first.name):
        status, _, err = run(*order, "--only", "seed 0: train")
    assert status == 0, err
    assert f"left to the process that does it: {first.title}" in err
    assert not list(tmp_path.glob("out/runs/*/metrics.jsonl"))


def test_a_cluster_and_a_machine_share_a_study_without_doing_a_piece_twice(cluster, tiny, tmp_path):
    order = command(tmp_path / "out", cluster, TOML)
    here = ("run", order[1], "--out", tmp_path / "out", "--workers", 1)
    with beliefscope(*order) as first, beliefscope(*here) as second:
        ended = [(process.communicate(), process.returncode) for process in (first, second)]
    assert {status for _, status in ended} <= {0, 1}, ended  # 1: something was left to the other
    assert run(*order)[0] == 0
    check(tmp_path / "out", tiny)


def test_a_full_disk_of_the_driver_stops_the_study_and_it_goes_on_afterwards(cluster, tiny, tmp_path, monkeypatch):
    order = command(tmp_path / "out", cluster, TOML)
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE / "faults"), prepend=os.pathsep)
        patch.setenv("FAULT", "ENOSPC:2:resume.eqx")
        status, _, err = run(*order)
    assert status == 2
    assert err.splitlines()[-1].startswith("beliefscope: ")
    assert err.splitlines()[-1].endswith("resume.eqx: No space left on device")
    assert run(*order)[0] == 0
    check(tmp_path / "out", tiny)


def test_pieces_that_always_fail_are_recorded_and_do_not_stop_the_rest(cluster, tmp_path):
    script = [sys.executable, "-W", "ignore", HERE / "always_failing.py", tmp_path / "out", cluster.address]
    ended = subprocess.run(
        script, env={**os.environ, "NPROC": "1"}, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    stored = StudyFolder(tmp_path / "out")
    assert list(stored.states().values()) == ["failed", "failed", "done"]
    raised, died = (error for _, error in stored.failures())
    assert raised == "this maze has no floor"
    assert died.startswith("its task was lost on the cluster (WorkerCrashedError, 3 of 3 times")


def test_a_cluster_that_cannot_be_reached_is_told_of_in_one_sentence_and_nothing_is_written(tmp_path):
    order = ("run", definition(tmp_path), "--out", tmp_path / "out", "--backend", "ray", "--address")
    for address in ("127.0.0.1:1", "nowhere", "127.0.0.1:99999"):
        status, _, err = run(*order, address)
        assert status == 2
        assert err.startswith(f"beliefscope: a Ray cluster answers at HOST:PORT, but '{address}' does not")
        assert err.count("\n") == 1
    status, _, err = run(*order, "ray://127.0.0.1:10001")
    assert status == 2
    assert "the study runs on a node of the cluster" in err
    assert not (tmp_path / "out").exists()
