"""Where files lie in a study's folder, and what is put aside there. No other module builds these paths.

DIR/study.json                          which runs and pieces there are
DIR/manifest.json                       with what, where and when they were made
DIR/locks/<piece>                       held while a piece is worked on
DIR/quarantine/<piece>.<number>/        what was found damaged
DIR/report.html, correlations.csv, interventions.csv, figures/
DIR/runs/<id>/spec.json                 what is trained
DIR/runs/<id>/pomdp.pomdp               the POMDP, where it consists of tables
DIR/runs/<id>/metrics.jsonl             one line per evaluation
DIR/runs/<id>/params/<episode>.eqx      the network after that many episodes
DIR/runs/<id>/resume.eqx                the state to resume from, or the final state
DIR/runs/<id>/failed.json               exists if a parameter or the loss became not finite
DIR/runs/<id>/trained.json              exists if the last episode is done
DIR/runs/<id>/measure/<measurement>.json
DIR/runs/<id>/traces/<episode>.npz
DIR/runs/<id>/interventions/<episode>.json
DIR/runs/<id>/failures/<piece>.json     why a piece could not be done

Put aside are files that are damaged, and whatever else stands in the place of a file or a folder of ours. A pipe, a
socket or a folder in a file's place can be neither read nor written over, so `run` moves it to `quarantine/`.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class StudyFiles(NamedTuple):
    """The files of a study."""

    folder: Path

    @property
    def study(self) -> Path:
        return self.folder / "study.json"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def correlations(self) -> Path:
        return self.folder / "correlations.csv"

    @property
    def interventions(self) -> Path:
        return self.folder / "interventions.csv"

    @property
    def figures(self) -> Path:
        return self.folder / "figures"

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    def lock(self, piece: str) -> Path:
        return self.locks / piece

    def aside(self, name: str, number: int) -> Path:
        """Where a damaged piece is moved for the `number`-th time."""
        return self.folder / "quarantine" / f"{name}.{number}"

    def run(self, id: str) -> "RunFiles":
        return RunFiles(self.folder / "runs" / id)

    def runs(self) -> list["RunFiles"]:
        """The runs that were begun."""
        return [RunFiles(spec.parent) for spec in sorted(self.folder.glob("runs/*/spec.json"))]

    @property
    def folders(self) -> list[Path]:
        """All folders in which files of a study are written."""
        return [self.folder, self.figures, *_folders(self)]


class RunFiles(NamedTuple):
    """The files of one run."""

    folder: Path  # DIR/runs/<id>
    aside: Path | None = None  # where metrics.jsonl and trained.json are, of a training that was set aside

    @property
    def study(self) -> StudyFiles:
        return StudyFiles(self.folder.parent.parent)

    @property
    def spec(self) -> Path:
        return self.folder / "spec.json"

    @property
    def pomdp(self) -> Path:
        return self.folder / "pomdp.pomdp"

    @property
    def metrics(self) -> Path:
        return (self.aside or self.folder) / "metrics.jsonl"

    @property
    def resume(self) -> Path:
        return self.folder / "resume.eqx"

    @property
    def failed(self) -> Path:
        return self.folder / "failed.json"

    @property
    def trained(self) -> Path:
        return (self.aside or self.folder) / "trained.json"

    @property
    def params(self) -> Path:
        return self.folder / "params"

    @property
    def failures(self) -> Path:
        return self.folder / "failures"

    @property
    def folders(self) -> list[Path]:
        """All folders in which files of a run are written."""
        return [self.folder, *_folders_of_run(self)]

    @property
    def of_training(self) -> tuple[Path, ...]:
        """All that a training writes but its description, in the order in which it may be copied."""
        return (self.params, self.metrics, self.resume, self.failed, self.trained)

    def network(self, episode: int) -> Path:
        return self.params / f"{episode}.eqx"

    def networks(self) -> list[int]:
        """The episodes after which a network is stored, in order."""
        found = (episode_of(file) for file in self.params.glob("[0-9]*.eqx") if is_file(file))
        return sorted(episode for episode in found if episode is not None)

    def measurement(self, name: str) -> Path:
        return self.folder / "measure" / f"{name}.json"

    def trace(self, episode: int) -> Path:
        return self.folder / "traces" / f"{episode}.npz"

    def interventions(self, episode: int) -> Path:
        return self.folder / "interventions" / f"{episode}.json"

    def failure(self, piece: str) -> Path:
        return self.failures / f"{piece}.json"


def is_run_id(name: str) -> bool:
    """Is this the form of a run's id? Whatever else is in runs/ is not ours."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def episode_of(network: str | Path) -> int | None:
    """The episode that a network's file is named after, or None."""
    name = Path(network).name
    return int(name.removesuffix(".eqx")) if re.fullmatch(r"[0-9]{1,15}\.eqx", name) else None


def is_file(path: Path) -> bool:
    """Is this a regular file, and neither a link, a folder nor a pipe?"""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Is there anything of this name?"""
    return os.path.lexists(path)


def move_aside(study: StudyFiles, name: str, paths: Iterable[Path]) -> None:
    """Move these, where they are there, to a new folder in `quarantine/` that is called by this name."""
    number = 0
    while is_there(aside := study.aside(name, number)):
        number += 1
    aside.mkdir(parents=True)
    for path in paths:
        if is_there(path):
            shutil.move(path, aside / path.name)


def move_odd_aside(study: StudyFiles) -> list[Path]:
    """Move aside what is no folder where a folder belongs, or no regular file where a file belongs; say what it was."""
    quarantine = study.aside("", 0).parent
    if _is_odd(quarantine, stat.S_ISDIR):  # it cannot be moved into itself
        quarantine.rename(_free(quarantine))
    found = []
    for folder in _folders(study):
        if _is_odd(folder, stat.S_ISDIR):
            found.append(folder)
            move_aside(study, "odd", [folder])
    for file in _files(study):
        if _is_odd(file, stat.S_ISREG):
            found.append(file)
            move_aside(study, "odd", [file])
    return found


def _folders(study: StudyFiles) -> Iterator[Path]:
    """The places of folders, the outer ones first."""
    yield study.locks
    yield study.run("").folder
    for run in _runs(study):
        yield from run.folders


def _files(study: StudyFiles) -> Iterator[Path]:
    """The places of files."""
    yield from (study.study, study.manifest)
    yield from _inside(study.locks)
    for run in _runs(study):
        yield from (run.spec, run.pomdp, run.metrics, run.resume, run.failed, run.trained)
        for folder in _folders_of_run(run):
            yield from _inside(folder)


def _runs(study: StudyFiles) -> list[RunFiles]:
    return [RunFiles(path) for path in _inside(study.run("").folder) if is_run_id(path.name)]


def _folders_of_run(run: RunFiles) -> tuple[Path, ...]:
    made = (run.measurement(""), run.trace(0), run.interventions(0))
    return (run.params, run.failures, *(file.parent for file in made))


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_odd(path: Path, is_right: Callable[[int], bool]) -> bool:
    """Is there something, and of another kind?"""
    try:
        return not is_right(os.lstat(path).st_mode)
    except OSError:
        return False


def _free(path: Path) -> Path:
    """A name like this one that nothing has."""
    number = 0
    while is_there(there := path.with_name(f"{path.name}.{number}")):
        number += 1
    return there
