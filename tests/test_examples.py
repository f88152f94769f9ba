"""Every example runs and says something."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PROMISES = {
    "learn": ["the best possible return is 3.62", "seed 3", "How far apart"],
    "own_cell": ["seed 1: return", "no agent can do better than 3.76"],
    "picture": ["beliefs.png"],
    "own_pomdp": ["found nothing wrong", "Root mean square error"],
    "torch_agent": [
        "the best possible return is 3.27",
        "Untrained GRU: mean return",
        "Trained GRU: mean return 3.2",
        "(best bound, N = 5000); shuffled",
    ],
    "play": ["Stochastic T-Maze, L = 10", "junction", "Varying Mountain Hike, 1000 particles"],
}


def marked(path: Path):
    """Most train, compile or measure for half a minute, `torch_agent` for minutes."""
    return pytest.param(path, marks=() if path.stem == "play" else pytest.mark.slow, id=path.stem)


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_example_runs(path, tmp_path):
    command = [sys.executable, "-W", "error", path]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    for promise in PROMISES[path.stem]:
        assert promise in run.stdout


@pytest.mark.slow
def test_the_readmes_python_runs():
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "untrained: return -1.31, H(b) = 1.00 bits" in run.stdout  # it stays at the start
    returns = re.findall(r"return (-?\d+\.\d+)", run.stdout)
    assert float(returns[1]) > float(returns[0])
    assert run.stdout.count("(MINE, 100 epochs, fresh pairs, N = 4000)") == 2
    assert run.stdout.count("Given the time, the memory holds ") == 3
