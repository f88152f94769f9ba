"""Every example runs and says something."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PROMISES = {
    "picture": ["beliefs.png"],
    "own_pomdp": ["found nothing wrong", "Root mean square error"],
    "play": ["Stochastic T-Maze, L = 10", "junction", "Varying Mountain Hike, 1000 particles"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    command = [sys.executable, "-W", "error", path]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    for promise in PROMISES[path.stem]:
        assert promise in run.stdout
