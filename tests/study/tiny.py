"""A study of seconds: T-Maze L = 3, two agents of 20 episodes, two fits."""

import subprocess
import sys
from pathlib import Path
from typing import IO

from beliefscope import StudyFolder

TOML = """
cells = ["GRU"]
seeds = [0, 1]
traces = false
[[environments]]
pomdp = "t-maze"
length = 3
[training]
num_episodes = 20
checkpoint_period = 20
evaluation_episodes = 5
hidden_size = 8
[measurement]
estimators = ["mine"]
num_samples = 2000
epochs = 2
checkpoints = "last"
controls = "none"
"""


def definition(folder: Path, text: str = TOML) -> Path:
    file = folder / "tiny.toml"
    file.write_text(text)
    return file


def beliefscope(*arguments: object, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    code = "import sys; from beliefscope.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        text=True,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    with beliefscope(*arguments) as process:
        out, err = process.communicate()
        return process.returncode, out, err


def copied(whole: StudyFolder, folder: Path) -> StudyFolder:
    """A copy of a study in another folder."""
    for file in whole.path.rglob("*"):
        if file.is_file():
            there = folder / file.relative_to(whole.path)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(file.read_bytes())
    return StudyFolder(folder)


def go_on(folder: Path, *options: object) -> tuple[int, str, str]:
    return run("run", definition(folder.parent), "--out", folder, "--workers", 1, *options)
