"""Every example runs and says something."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PROMISES = {
    "audit_own_environment": [
        "counts the sounds in TabularPOMDP, N = 1800",
        "sufficiency, given the time",
        "report.html",
    ],
    "audit_recurrent_ppo": [
        "RecurrentPPO in T-Maze, L = 4, N = 600",
        "of critic.h alone",
        "DRQN, GRU in T-Maze, L = 4, N = 600",
        "control: untrained twin",
    ],
    "audit_torch_gru": ["GRU in T-Maze, L = 10", "untrained twin", "Verdict: readable and used.", "report.html"],
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
LEARNERS = {"audit_recurrent_ppo": 2, "audit_torch_gru": 1}  # how many agents come near the optimum in them


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
    returns = re.findall(r"return +([\d.]+) ± [\d.]+, the most is ([\d.]+)", run.stdout)
    assert len(returns) == LEARNERS.get(path.stem, len(returns))
    for mean, most in returns if path.stem in LEARNERS else ():
        assert float(mean) > 0.95 * float(most)
