"""A training process that is killed, or interrupted from the keyboard, and started again. Slow: four processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SETTINGS = "train t-maze --length 3 --num-episodes 20 --evaluation-period 2 --checkpoint-period 10 --seeds 0 1"


def command(out: Path) -> list[str]:
    program = "import sys; from beliefscope.cli import main; sys.exit(main())"
    return [sys.executable, "-c", program, *SETTINGS.split(), "--out", str(out)]


def stop_in_the_middle(out: Path, with_signal: signal.Signals) -> subprocess.CompletedProcess:
    """Start training, and send the signal as soon as one agent has been stored once more."""

    def states() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in out.glob("runs/*/resume.eqx")}

    before = states()
    process = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while states() == before:
        time.sleep(0.005)
        assert process.poll() is None
    process.send_signal(with_signal)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def stored(out: Path) -> dict[str, bytes]:
    return {str(file.relative_to(out)): file.read_bytes() for file in out.glob("runs/**/*") if file.is_file()}


@pytest.mark.slow
def test_killed_and_interrupted_runs_end_bit_identical_to_one_that_was_let_alone(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole), check=True, capture_output=True)
    assert stop_in_the_middle(broken, signal.SIGKILL).returncode == -signal.SIGKILL
    assert not list(broken.glob("runs/*/params/20.eqx"))
    interrupted = stop_in_the_middle(broken, signal.SIGINT)
    assert interrupted.returncode == 130
    assert f"beliefscope {SETTINGS} --out {broken}" in interrupted.stderr
    subprocess.run(command(broken), check=True, capture_output=True)
    assert stored(broken) == stored(whole)
