"""The workers without a cluster: which backend is chosen, a shared GPU, the files and folders of Ray tasks."""

import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax
import pytest

from beliefscope import StudyFolder
from beliefscope.store import Busy, write_atomic
from beliefscope.store.pieces import Piece
from beliefscope.study import devices
from beliefscope.study.devices import first_compiles_alone
from beliefscope.study.workers import choose_backend, local
from beliefscope.study.workers.ray import ChangedFiles, files_needed, private_folder, write_files

RUN = "0123456789abcdef"
TRAINING = Piece(kind="train", run=RUN, label="a run")
TRACE = Piece(kind="trace", run=RUN, label="a run", episode=20)


def write(folder, *names: str) -> None:
    for name in names:
        write_atomic(folder / "runs" / RUN / name, name.encode())


def test_a_machine_without_ray_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs Ray, .*; pip install 'beliefscope\[ray\]'"):
        choose_backend("ray", address="here:6379", workers=None)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="on the backend 'local' or 'ray', but got 'slurm'"):
        choose_backend("slurm", address=None, workers=None)


def test_the_local_backend_does_not_import_ray():
    code = "import sys; from beliefscope.study.workers import choose_backend; from beliefscope import run_study; "
    code += "choose_backend('local', address=None, workers=1); sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_worker_is_born_on_one_core_with_one_thread_for_numpy_and_its_parent_stays_as_it_was(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)  # which the tests themselves are started with
    born, before = [], (os.sched_getaffinity(0), dict(os.environ))
    core = min(before[0])

    def started(process):
        code = "import os; print(os.sched_getaffinity(0), os.environ['OPENBLAS_NUM_THREADS'])"
        born.append(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    monkeypatch.setattr(multiprocessing.get_context("spawn").Process, "start", started)
    monkeypatch.setattr(local, "has_gpu", lambda: False)
    local.Local(1).start({}, Path(), at_most=1)
    assert born == [f"{{{core}}} 1\n"]
    assert (os.sched_getaffinity(0), dict(os.environ)) == before


def test_a_machine_that_pins_no_process_has_a_worker_for_each_core(monkeypatch):
    started = []
    monkeypatch.setattr(multiprocessing.get_context("spawn").Process, "start", lambda process: started.append(process))
    monkeypatch.setattr(local, "has_gpu", lambda: False)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert local.Local(None).start({}, Path(), at_most=9) == len(started) == 3


@pytest.fixture
def with_gpu(monkeypatch, tmp_path):
    """A machine with a GPU, whose commands write down how they are called; workers are not started."""
    started = []
    monkeypatch.setattr(
        multiprocessing.get_context("spawn").Process, "start", lambda _: started.append(dict(os.environ))
    )
    monkeypatch.setattr(local, "has_gpu", lambda: True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(devices, "_mps_is_running", lambda: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def command(name: str, script: str) -> None:
        write_atomic(tmp_path / "bin" / name, f"#!/bin/sh\n{script}\n".encode())
        (tmp_path / "bin" / name).chmod(0o755)

    command("nvidia-smi", "echo 142000")
    return command, started, tmp_path


CONTROL = 'echo "$@ $CUDA_MPS_PIPE_DIRECTORY" >> "$(dirname "$0")/calls"; cat >> "$(dirname "$0")/calls"'


def test_workers_share_a_gpu_by_mps_which_ends_with_the_study(with_gpu, capfd):
    command, started, folder = with_gpu
    command("nvidia-cuda-mps-control", CONTROL)
    backend = local.Local(None)
    assert backend.start({}, Path(), at_most=99) == 10
    (pipe,) = folder.glob("beliefscope-mps-*")
    assert {each["CUDA_MPS_PIPE_DIRECTORY"] for each in started} == {str(pipe)}
    assert [float(each["XLA_PYTHON_CLIENT_MEM_FRACTION"]) for each in started] == pytest.approx(10 * [0.075])
    backend._workers.clear()
    backend.close()
    assert (folder / "bin" / "calls").read_text() == f"-d {pipe}\n {pipe}\nquit\n"
    assert not pipe.exists()
    assert capfd.readouterr().err == ""


def test_workers_are_fewer_where_memory_is_scarce_and_as_many_as_asked_for(with_gpu):
    command, started, _ = with_gpu
    command("nvidia-cuda-mps-control", CONTROL)
    command("nvidia-smi", "echo 24000")
    assert local.Local(None).start({}, Path(), at_most=99) == 2
    assert local.Local(3).start({}, Path(), at_most=99) == 3
    assert [each["XLA_PYTHON_CLIENT_MEM_FRACTION"] for each in started] == 2 * ["0.375"] + 3 * ["0.25"]
    command("nvidia-smi", "exit 9")
    assert local.Local(None).start({}, Path(), at_most=99) == 1


def test_without_mps_one_line_says_so(with_gpu, capfd):
    command, started, folder = with_gpu
    command("nvidia-cuda-mps-control", "echo An instance of this daemon is already running; exit 1")
    assert local.Local(None).start({}, Path(), at_most=99) == 4
    (line,) = capfd.readouterr().err.splitlines()
    assert "in turn" in line
    assert "status 1 (An instance of this daemon is already running)" in line
    assert not list(folder.glob("beliefscope-mps-*"))
    assert "CUDA_MPS_PIPE_DIRECTORY" not in started[0]
    assert local.Local(1).start({}, Path(), at_most=99) == 1
    assert capfd.readouterr().err == ""  # one worker shares with nobody


@pytest.fixture
def on_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("on_gpu")
def test_the_first_worker_of_a_kind_compiles_alone():
    order, entered = [], threading.Event()

    def second():
        entered.wait()
        with first_compiles_alone("a kind"):
            order.append("second")

    other = threading.Thread(target=second)
    other.start()
    with first_compiles_alone("a kind"):
        entered.set()
        with first_compiles_alone("another kind"):
            order.append("another")
        time.sleep(0.2)
        order.append("first")
    other.join()
    assert order == ["another", "first", "second"]


@pytest.mark.usefixtures("on_gpu")
def test_what_fails_alone_is_left_to_the_next(tmp_path):
    with pytest.raises(ValueError, match="no floor"), first_compiles_alone("a kind"):
        raise ValueError("no floor")
    assert not list(tmp_path.glob("kinds/*.done"))
    with first_compiles_alone("a kind"):
        pass
    assert list(tmp_path.glob("kinds/*.done"))


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_piece_recorded_as_failed_when_it_has_killed_three(tmp_path):
    script = [sys.executable, Path(__file__).with_name("always_failing.py"), tmp_path / "out"]
    ended = subprocess.run(script, capture_output=True, text=True, check=True)
    assert ended.stderr.count("tried again") == 2
    assert ended.stderr.splitlines()[-1] == "mazes: 1/3 pieces, 2 failed or left out"
    stored = StudyFolder(tmp_path / "out")
    assert list(stored.states().values()) == ["failed", "failed", "done"]
    raised, died = (error for _, error in stored.failures())
    assert raised == "this maze has no floor"
    assert died == "its worker died (exit status 1; -9 is often a lack of memory), 3 times"


def test_a_state_to_resume_from_comes_after_its_metrics_and_networks_and_the_end_comes_last(tmp_path):
    write(tmp_path, "trained.json", "resume.eqx", "params/20.eqx", "metrics.jsonl", "params/0.eqx", "spec.json")
    names = [name.removeprefix(f"runs/{RUN}/") for name in files_needed([TRAINING], tmp_path)]
    assert names == ["params/0.eqx", "params/20.eqx", "spec.json", "metrics.jsonl", "resume.eqx", "trained.json"]


def test_a_trace_of_a_checkpoint_needs_the_description_and_that_network_alone(tmp_path):
    write(tmp_path, "trained.json", "resume.eqx", "params/20.eqx", "metrics.jsonl", "params/0.eqx", "spec.json")
    assert list(files_needed([TRACE], tmp_path)) == [f"runs/{RUN}/params/20.eqx", f"runs/{RUN}/spec.json"]


def test_a_file_is_sent_once_for_each_time_it_is_written(tmp_path):
    write(tmp_path, "metrics.jsonl", "spec.json")
    changes = ChangedFiles([TRAINING], tmp_path)
    assert changes.take() == {}
    write(tmp_path, "params/0.eqx", "metrics.jsonl", "failures/x.json")
    assert list(changes.take()) == [f"runs/{RUN}/params/0.eqx", f"runs/{RUN}/metrics.jsonl"]
    assert changes.take() == {}


def test_what_a_task_leaves_of_another_piece_is_not_sent(tmp_path):
    changes = ChangedFiles([TRACE], tmp_path)
    write(tmp_path, "traces/20.npz", "traces/0.npz", "params/20.eqx", "trained.json")
    assert list(changes.take()) == [f"runs/{RUN}/traces/20.npz"]


def test_files_that_are_written_elsewhere_are_the_same(tmp_path):
    write(tmp_path / "here", "params/0.eqx", "metrics.jsonl", "spec.json")
    sent = files_needed([TRAINING], tmp_path / "here")
    write_files(sent, tmp_path / "there")
    assert files_needed([TRAINING], tmp_path / "there") == sent


def test_tasks_at_the_same_time_have_numbers_and_empty_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_folder() as first:
        (first.path / "file").write_text("of a task that was killed")
        with private_folder() as second:
            assert (first.number, second.number) == (0, 1)
            assert not list(second.path.iterdir())
    assert not first.path.exists()
    first.path.mkdir()
    (first.path / "left").write_text("by a task that was killed")
    with private_folder() as third:
        assert third.number == 0
        assert not list(third.path.iterdir())


def test_an_error_in_a_task_frees_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Busy), private_folder() as first:
        raise Busy(first.path)
    with private_folder() as again:
        assert again.number == 0


def test_a_process_is_pinned_to_one_core_and_may_be_pinned_to_another_later():
    code = "import os; from beliefscope.study.workers.ray import pin_to_core\n"
    code += "for number in range(4): pin_to_core(number); print(*os.sched_getaffinity(0))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    cores = sorted(os.sched_getaffinity(0))
    assert printed.split() == [str(cores[number % len(cores)]) for number in range(4)]
