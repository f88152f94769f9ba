"""The studies that beliefscope ships, as TOML files in this package, and how studies are named.

A shipped study goes by its name, such as `paper/tmaze-50`, a user's own by a path that ends in `.toml`.
"""

import importlib.resources
import tomllib
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

from beliefscope.errors import nearest, require


def shipped_studies() -> dict[str, str]:
    """The studies that come with beliefscope: name and description."""
    return {name: tomllib.loads(file.read_text("utf-8"))["description"] for name, file in _shipped().items()}


def user_text(path: Path) -> str:
    """What a user's file says."""
    require(
        path.is_file(),
        rule="a study whose name ends in .toml is a file",
        received=str(path),
        advice="check the path, or name a shipped study: `beliefscope list` shows all",
    )
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"a study is a text file that can be read, but got {str(path)!r} ({error}); save it as UTF-8."
        ) from error


def shipped_text(name: str) -> str:
    """The definition of a shipped study."""
    shipped = _shipped()
    require(
        name in shipped,
        rule="a study is one of the shipped ones or a file that ends in .toml",
        received=name,
        advice=nearest(name, shipped, otherwise="choose a shipped one") + ": `beliefscope list` shows all",
    )
    return shipped[name].read_text("utf-8")


def _shipped() -> dict[str, Traversable]:
    root = importlib.resources.files("beliefscope.studies")
    return dict(sorted(_toml_files(root, "")))


def _toml_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _toml_files(each, f"{prefix}{each.name}/")
        elif each.name.endswith(".toml"):
            yield prefix + each.name.removesuffix(".toml"), each
