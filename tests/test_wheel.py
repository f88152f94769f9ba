"""The wheel holds all that is needed: in a fresh environment, away from the repository, everything works."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from study.tiny import definition

ROOT = Path(__file__).parent.parent
DATA = ("studies/demo.toml", "studies/paper/tmaze-50.toml", "pomdp/files/tiger.pomdp", "report/assets/template.html")
DATA += ("report/assets/plotly-basic.min.js", "report/assets/plotly-LICENSE.txt", "report/assets/viewer.css")


def called(*command: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built as `pip install .` builds it."""
    out = tmp_path_factory.mktemp("wheel")
    called(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--quiet", "-w", out, cwd=out)
    (built,) = out.glob("beliefscope-*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_studies_assets_files_and_licences(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for path in DATA:
        assert f"beliefscope/{path}" in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not any(name.startswith(("tests", "docs", "src")) for name in names)


@pytest.mark.slow
def test_a_fresh_environment_away_from_the_repository_runs_a_study_and_trains(wheel, tmp_path):
    fresh, elsewhere = tmp_path / "fresh", tmp_path / "elsewhere"
    elsewhere.mkdir()
    venv.create(fresh, with_pip=False)
    (packages,) = fresh.glob("lib/python*/site-packages")
    # What beliefscope needs is found where it is installed; behind the fresh environment's own packages.
    (packages / "installed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = fresh / "bin" / "python"
    called(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet", wheel, cwd=elsewhere)
    beliefscope = fresh / "bin" / "beliefscope"
    place = called(python, "-c", "import beliefscope; print(beliefscope.__file__)", cwd=elsewhere)
    assert Path(place.strip()).is_relative_to(fresh)
    assert called(beliefscope, "--version", cwd=elsewhere).startswith("beliefscope 0.")
    assert "paper/tmaze-50" in called(beliefscope, "list", cwd=elsewhere)
    assert "tiger" in called(python, "-c", "from beliefscope import classic; print(classic('tiger'))", cwd=elsewhere)
    study = definition(elsewhere)
    assert "4 done" in called(beliefscope, "run", study, "--out", "runs/tiny", "--workers", 1, cwd=elsewhere)
    assert "report.html" in called(beliefscope, "report", "runs/tiny", cwd=elsewhere)
    flags = "--length 2 --num-episodes 30 --checkpoint-period 20 --hidden-size 4 --evaluation-episodes 2 --seeds 0"
    called(beliefscope, "train", "t-maze", *flags.split(), "--out", "runs/first", cwd=elsewhere)
    how = ("--estimator", "atoms", "--num-samples", 2000, "--episodes", 30)
    assert "after 0, 20, 30 episodes" in called(beliefscope, "measure", "runs/first", *how, cwd=elsewhere)
    called(beliefscope, "report", "runs/first", cwd=elsewhere)
    assert (elsewhere / "runs" / "first" / "report.html").stat().st_size > 1e6
