"""The wheel holds all that is needed: away from the repository the README and the first hour work word by word."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from study.tiny import TOML

ROOT = Path(__file__).parent.parent
DATA = ("studies/demo.toml", "studies/paper/tmaze-50.toml", "pomdp/files/tiger.pomdp", "report/assets/template.html")
DATA += ("report/assets/plotly-basic.min.js", "report/assets/plotly-LICENSE.txt", "report/assets/viewer.css")
STARTS = ("--version", "list", "measure runs/small", "status runs/small", "measure runs/rooms", "show mine.toml")
STARTS += ("run mine.toml", "bits memory.npy")


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


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory) -> Path:
    """The `bin` of an environment that has nothing but the wheel; its shipped studies are cut to seconds."""
    place = tmp_path_factory.mktemp("fresh")
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    # What beliefscope needs is found where it is installed; behind the fresh environment's own packages.
    (packages / "installed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = place / "bin" / "python"
    called(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet", wheel, cwd=place)
    for study in ("demo", "paper/tmaze-50"):
        (packages / "beliefscope" / "studies" / f"{study}.toml").write_text(f'description = "cut"\n{TOML}')
    return place / "bin"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """The blocks of a page in order: the file that the sentence before names, the language, the text."""
    text = (ROOT / page).read_text("utf-8")
    name = r"(?:Write this to `([\w.-]+)`(?:(?!```).)*?)?"
    return re.findall(name + r"```(\w*)\n(.*?)```\n", text, re.DOTALL)


def followed(page: str, fresh: Path, folder: Path) -> dict[str, str]:
    """What each command of a page prints, done word by word: files are written, programs and commands run."""
    printed = {}
    for file, language, text in blocks(page):
        if file:
            (folder / file).write_text(text)
        elif language == "python":
            printed["python"] = called(fresh / "python", "-W", "error", "-c", text, cwd=folder)
        elif language == "sh":
            for line in text.splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == "beliefscope" or line.split("#")[0].strip() == "pip install .", line
                if command == "beliefscope":
                    printed[" ".join(arguments)] = called(fresh / command, *arguments, cwd=folder)
    return printed


@pytest.mark.slow
def test_the_readme_and_the_first_hour_work_word_by_word_away_from_the_repository(fresh, tmp_path):
    place = called(fresh / "python", "-c", "import beliefscope; print(beliefscope.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(fresh.parent)

    readme = followed("README.md", fresh, tmp_path)
    assert list(readme) == ["run demo --out runs/demo", "report runs/demo", "run paper/tmaze-50", "python"]
    assert "4 done, of 4 pieces" in readme["run demo --out runs/demo"]
    assert (tmp_path / "runs" / "demo" / "report.html").stat().st_size > 1e6
    assert (tmp_path / "runs" / "paper-tmaze-50-quick-text" / "study.json").is_file()
    trained, untrained = re.findall(r"Given the time, the memory holds (\d+)% \[", readme["python"])
    assert int(trained) > int(untrained)
    assert "(best bound, N = 2000)" in readme["python"]

    page = followed("docs/first-hour.md", fresh, tmp_path)
    said = {start: next(text for line, text in page.items() if line.startswith(start)) for start in STARTS}
    assert said["--version"].startswith("beliefscope 0.")
    assert "paper/tmaze-50" in said["list"]
    assert "networks after 0, 100, 150 episodes" in said["measure runs/small"]
    assert "episode 150: return " in said["measure runs/small"]
    assert "small: 4 done, of 4 pieces" in said["status runs/small"]
    assert len((tmp_path / "small.csv").read_text().splitlines()) == 1 + 3
    assert "two-rooms, GRU, seed 0" in said["measure runs/rooms"]
    assert "two-rooms" in said["show mine.toml"]
    assert "of 10 pieces in runs/mine" in said["run mine.toml"]
    for name in ("small", "rooms", "mine"):
        assert "Given the time, " in (tmp_path / "runs" / name / "report.html").read_text("utf-8")
    bits = re.match(r"([\d.]+) ± [\d.]+ bits", said["bits memory.npy"])
    assert bits is not None, said["bits memory.npy"]
    assert abs(float(bits[1]) - 2) < 0.1


def test_the_pages_are_read_in_order():
    assert [language for _, language, _ in blocks("README.md")] == ["sh", "python", "bibtex"]
    files = [file for file, _, _ in blocks("docs/first-hour.md") if file]
    assert files == ["two-rooms.pomdp", "mine.toml"]
