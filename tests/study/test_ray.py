"""Studies on a Ray cluster of two nodes, real ones on this machine: the same table, whatever is lost on the way."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from study.processes import end, users
from study.tiny import TOML, beliefscope, definition, run

from beliefscope import StudyFolder, read_study
from beliefscope.store import lock, read_lines
from beliefscope.store.study_folder import count_states

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
LONGER = TOML.replace("num_episodes = 20", "num_episodes = 300").replace("epochs = 2", "epochs = 50")


class Cluster:
    """What cluster.py started."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process
        self.address = self._answer()
        assert self.address, "the cluster did not start"

    def obey(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        assert self._answer() == "obeyed", order

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextlib.contextmanager
def ray_settings() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder of Ray's own and the settings that say so. What still runs there at the end is killed."""
    place = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets have short names
    settings = {"RAY_TMPDIR": str(place), "TMPDIR": str(place), "RAY_USAGE_STATS_ENABLED": "0"}
    settings["RAY_worker_niceness"] = "0"  # beside other work, tasks with Ray's 15 would starve
    try:
        yield place, settings
    finally:
        end(users(place))
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        ray_settings() as (_, settings),
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "study.cluster"],
            cwd=HERE.parent,
            env={**os.environ, **settings},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        yield Cluster(process)
        process.communicate()


def on_one_machine(folder: Path, text: str) -> StudyFolder:
    status, _, err = run("run", definition(folder, text), "--out", folder / "out", "--workers", 1)
    assert status == 0, err
    return StudyFolder(folder / "out")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> StudyFolder:
    return on_one_machine(tmp_path_factory.mktemp("tiny"), TOML)


@pytest.fixture(scope="module")
def longer(tmp_path_factory) -> StudyFolder:
    """A study whose trainings take seconds, to be hit."""
    return on_one_machine(tmp_path_factory.mktemp("longer"), LONGER)


def command(folder: Path, cluster: Cluster, text: str) -> tuple[object, ...]:
    options = ("--backend", "ray", "--address", cluster.address)
    return ("run", definition(folder.parent, text), "--out", folder, *options)


@contextlib.contextmanager
def started(*order: object) -> Iterator[subprocess.Popen[str]]:
    """The command, which a test that fails does not wait for."""
    with beliefscope(*order) as process:
        try:
            yield process
        finally:
            process.kill()


def evaluations(folder: Path) -> Counter[str]:
    """How many are stored of each run."""
    return Counter({file.parent.name: len(read_lines(file)) for file in folder.glob("runs/*/metrics.jsonl")})


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 240
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
    folder = tmp_path / "out"
    with started(*command(folder, cluster, LONGER)) as process:
        wait_for(lambda: evaluations(folder).total() >= 6, process)
        cluster.obey("lose train")
        seen = [evaluations(folder)]
        cluster.obey("join")
        while seen[-1] != evaluations(longer.path):
            assert process.poll() is None, process.communicate()
            seen.append(evaluations(folder))
            time.sleep(0.05)
        assert all(now >= before for before, now in itertools.pairwise(seen))
        for order in ("lose measure", "lose measure", "join", "join"):
            cluster.obey(order)
        _, err = process.communicate()
    assert process.returncode == 0, err
    lost = [line for line in err.splitlines() if "submitted again" in line]
    assert {": train" in line for line in lost} == {True, False}, err
    check(folder, longer)


def test_a_study_whose_driver_is_killed_goes_on_where_it_was(cluster, longer, tmp_path):
    folder, order = tmp_path / "out", command(tmp_path / "out", cluster, LONGER)
    with started(*order) as process:
        wait_for(lambda: evaluations(folder).total() >= 6, process)
        process.kill()
    seen = [evaluations(folder)]
    assert "running" not in count_states(StudyFolder(folder).states())
    with started(*order) as process:
        while process.poll() is None:
            seen.append(evaluations(folder))
            time.sleep(0.1)
    assert process.returncode == 0
    assert all(now >= before for before, now in itertools.pairwise(seen))
    check(folder, longer)


def test_an_interrupted_study_keeps_what_is_finished_and_may_go_on_on_one_machine(cluster, longer, tmp_path):
    folder, order = tmp_path / "out", command(tmp_path / "out", cluster, LONGER)
    with started(*order) as process:
        wait_for(lambda: in_fits(folder), process)
        process.send_signal(signal.SIGSTOP)  # however long a look takes, no fit ends meanwhile
        looked = run("status", folder)[1]
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate()
    assert "2 done, 2 running" in looked
    assert process.returncode == 130, err
    assert "Interrupted. What is finished is saved" in err
    assert "Traceback" not in err
    assert count_states(StudyFolder(folder).states()) == "2 done, 2 missing"
    status, _, err = run("run", order[1], "--out", folder, "--workers", 1)
    assert status == 0, err
    check(folder, longer)


def test_a_piece_that_another_process_is_doing_is_waited_for_and_then_done(cluster, tmp_path):
    order = command(tmp_path / "out", cluster, TOML)
    first = read_study(str(order[1])).pieces()[0]
    held = contextlib.ExitStack()
    with held, started(*order, "--only", "seed 0: train") as process:
        held.enter_context(lock(tmp_path / "out" / "locks" / first.name))
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for another process, which is doing {first.title}\n"
        assert not list(tmp_path.glob("out/runs/*/metrics.jsonl"))
        held.close()
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert len(list(tmp_path.glob("out/runs/*/metrics.jsonl"))) == 1


def test_a_cluster_and_a_machine_share_a_study_without_doing_a_piece_twice(cluster, tiny, tmp_path):
    order = command(tmp_path / "out", cluster, TOML)
    here = ("run", order[1], "--out", tmp_path / "out", "--workers", 1)
    with started(*order) as first, started(*here) as second:
        ended = [(process.communicate(), process.returncode) for process in (first, second)]
    assert {status for _, status in ended} == {0}, ended
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


def test_the_address_local_starts_ray_on_this_machine_for_this_study_alone(tiny, tmp_path, monkeypatch):
    with ray_settings() as (place, settings), monkeypatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        order = ("run", definition(tmp_path), "--out", tmp_path / "out", "--backend", "ray", "--address", "local")
        status, out, err = run(*order)
        assert status == 0, err
        assert "4 done, of 4 pieces" in out
        assert "Warning" not in err
        check(tmp_path / "out", tiny)
        until = time.monotonic() + 60
        while users(place):
            assert time.monotonic() < until, "Ray still runs"
            time.sleep(0.1)


def test_a_ray_that_does_not_start_on_this_machine_is_told_of_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / ("long" * 20)))
    status, _, err = run(
        "run", definition(tmp_path), "--out", tmp_path / "out", "--backend", "ray", "--address", "local"
    )
    assert status == 2
    assert err.startswith("beliefscope: the address 'local' starts Ray on this machine, but it does not start (")
    assert err.endswith("; leave --backend and --address out: the cores of one machine need no Ray.\n")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_cannot_be_reached_is_told_of_in_one_sentence_and_nothing_is_written(tmp_path):
    order = ("run", definition(tmp_path), "--out", tmp_path / "out", "--backend", "ray", "--address")
    with socket.create_server(("127.0.0.1", 0)) as other:
        beyond = other.getsockname()[1] + 2**16
        for address in ("127.0.0.1:1", "nowhere", f"127.0.0.1:{beyond}"):
            status, _, err = run(*order, address)
            assert status == 2
            assert err.startswith(f"beliefscope: a Ray cluster answers at HOST:PORT, but '{address}' does not")
            assert err.count("\n") == 1
    status, _, err = run(*order, "ray://127.0.0.1:10001")
    assert status == 2
    assert "the study runs on a node of the cluster" in err
    assert not (tmp_path / "out").exists()
