"""The house is built in one direction: no room may import from a room further down the flow."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "beliefscope"
# What each part may import, besides itself. `errors`, `fast_keys` and `storage` are tools.
ALLOWED = {
    "errors": set(),
    "fast_keys": {"errors"},
    "pomdp": {"errors", "fast_keys"},
    "belief": {"errors", "fast_keys", "pomdp"},
    "storage": {"errors"},
    "agent": {"errors", "fast_keys", "storage", "pomdp"},
    "pairs": {"errors", "fast_keys", "pomdp", "belief", "agent"},
    "information": {"errors", "fast_keys"},
    "measurement": {"errors", "storage", "pomdp", "belief", "agent", "pairs", "information"},
    "study": {"errors", "storage", "pomdp", "belief", "agent", "measurement"},
    "report": {"errors", "storage", "pomdp", "study"},
    "cli": {"errors", "storage", "pomdp", "agent", "information", "measurement", "study", "report"},
    "__init__": {"pomdp", "belief", "agent", "pairs", "information", "measurement", "study", "report"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(tree: ast.AST) -> set[str]:
    """The parts of beliefscope that a module imports, wherever in it the import stands."""
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("beliefscope.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_in_one_direction(path):
    tree = ast.parse(path.read_text())
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)), "relative import"
    assert imported_parts(tree) <= ALLOWED[part_of(path)] | {part_of(path)}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("interface.py")), ids=lambda path: path.parent.name)
def test_interface_files_import_nothing_else_of_ours(path):
    assert imported_parts(ast.parse(path.read_text())) == set()


def test_a_wrong_import_would_be_seen():
    assert imported_parts(ast.parse("def f():\n    from beliefscope.agent.network import Network")) == {"agent"}
    assert imported_parts(ast.parse("import beliefscope.belief.exact as exact")) == {"belief"}
