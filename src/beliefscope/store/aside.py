"""What is put aside: files that are damaged, and whatever else stands in the place of a file or a folder of ours.

A pipe, a socket or a folder in a file's place can be neither read nor written over, so `run` moves it to `quarantine/`.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from beliefscope.store.layout import RunFiles, StudyFiles, is_there


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
    runs = study.run("").folder
    yield runs
    for run in _inside(runs):
        yield run
        yield from _folders_of_run(RunFiles(run))


def _files(study: StudyFiles) -> Iterator[Path]:
    """The places of files."""
    yield from (study.study, study.manifest)
    yield from _inside(study.locks)
    for run in map(RunFiles, _inside(study.run("").folder)):
        yield from (run.spec, run.metrics, run.resume, run.failed, run.trained)
        for folder in _folders_of_run(run):
            yield from _inside(folder)


def _folders_of_run(run: RunFiles) -> tuple[Path, ...]:
    return (run.params, run.failures, run.measurement("").parent, run.trace(0).parent)


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
