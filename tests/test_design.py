"""The tree in docs/design.md names every module, and nothing else."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "beliefscope"
PACKAGES = sorted(path.parent for path in SOURCE.glob("*/__init__.py"))


def blocks() -> dict[str, str]:
    """What the tree says of each package, and of the modules beside them."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    tree = text[text.index("src/beliefscope/\n") :].split("```")[0]
    found: dict[str, str] = {}
    name = ""
    for line in tree.splitlines()[1:]:
        if match := re.match(r"  (\w+(?:/|\.py)) ", line):
            name = match[1]
        elif not line.startswith("   "):
            break
        found[name] = found.get(name, "") + line + "\n"
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_the_tree_names_every_module_of_a_package(package):
    modules = {path.name for path in package.rglob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"\b\w+\.py\b", blocks()[f"{package.name}/"])) == modules


def test_the_tree_names_every_module_beside_the_packages():
    assert {name for name in blocks() if name.endswith(".py")} == {path.name for path in SOURCE.glob("*.py")}
