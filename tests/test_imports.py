"""The code has one direction: no package imports from one further down the flow. Looking at results needs no JAX."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from report.made_up import finish, stored_study

SOURCE = Path(__file__).parent.parent / "src" / "beliefscope"
TOOLS = {"errors", "paper", "warning_signs", "fast_keys", "progress"}
# What each package may import, besides itself and the tools.
ALLOWED = {
    **{tool: set() for tool in TOOLS},
    "store": {"results"},  # in StudyFolder.table, which is there for users
    "pomdp": {"store"},
    "belief": {"pomdp"},
    "agent": {"store", "pomdp"},
    "information": set(),
    "measurement": {"store", "pomdp", "belief", "agent", "information"},
    "interventions": {"pomdp", "belief", "agent", "information"},
    "studies": set(),
    "study": {"store", "studies", "pomdp", "belief", "agent", "measurement"} | {"interventions"},
    "results": {"store"},
    "claims": {"results"},
    "report": {"store", "results", "claims"},
    "gymnasium": {"pomdp", "belief"},
    "auditing": {"store", "pomdp", "belief", "agent", "information", "measurement", "report"} | {"interventions"},
    "cli": {"store", "studies", "pomdp", "agent", "information", "measurement", "study", "results", "claims", "report"}
    | {"auditing"},
    "__init__": {"store", "pomdp", "belief", "agent", "information", "measurement", "study", "report", "auditing"}
    | {"interventions"},
}
WITHOUT_JAX = ("store", "studies", "results", "claims", "report", "cli.look", "paper", "errors")
FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(nodes: list[ast.stmt] | list[ast.AST]) -> set[str]:
    """The modules that import statements name."""
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return names | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}


def imported_parts(tree: ast.AST) -> set[str]:
    """The parts of beliefscope that a module imports, wherever in it the import stands."""
    return {name.split(".")[1] for name in imported(list(ast.walk(tree))) if name.startswith("beliefscope.")}


def loaded_with(module: str) -> set[str]:
    """All modules that are loaded with this one: imports at the top of files, followed from file to file."""
    found, left = set(), [module]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        if name.split(".")[0] != "beliefscope":
            continue
        left += [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]  # its packages
        file = SOURCE.parent.joinpath(*name.split(".")).with_suffix(".py")
        file = file if file.is_file() else file.with_suffix("") / "__init__.py"
        if file.is_file():
            tree = ast.parse(file.read_text())
            left += imported(tree.body)
            left += [
                f"{node.module}.{alias.name}"
                for node in tree.body
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_in_one_direction(path):
    tree = ast.parse(path.read_text())
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)), "relative import"
    assert imported_parts(tree) <= ALLOWED[part_of(path)] | TOOLS | {part_of(path)}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("interface.py")), ids=lambda path: path.parent.name)
def test_interface_files_import_nothing_else_of_ours(path):
    assert imported_parts(ast.parse(path.read_text())) <= TOOLS


@pytest.mark.parametrize("module", WITHOUT_JAX)
def test_what_looks_at_results_loads_neither_jax_nor_equinox(module):
    names = {
        ".".join(["beliefscope", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        for path in FILES
    }
    under = [name for name in names if f"{name}.".startswith(f"beliefscope.{module}.")]
    assert under
    for name in under:
        assert not {"jax", "equinox"} & {each.split(".")[0] for each in loaded_with(name)}, name


def test_the_following_of_imports_would_find_jax():
    assert "jax" in loaded_with("beliefscope.agent.network")


def test_a_wrong_import_would_be_seen():
    assert imported_parts(ast.parse("def f():\n    from beliefscope.agent.network import Network")) == {"agent"}
    assert imported_parts(ast.parse("import beliefscope.belief.exact as exact")) == {"belief"}


@pytest.mark.parametrize("command", ["--help", "list", "status", "export", "claims", "report"])
def test_a_process_that_looks_loads_neither_jax_nor_equinox(command, tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    given = [command] if command in ("--help", "list") else [command, str(stored.path)]
    program = (
        "import sys\nfrom beliefscope.cli import main\n"
        f"try:\n    status = main({given!r})\nexcept SystemExit as end:\n    status = end.code\n"
        "assert status in (0, None), status\nprint(sorted({'jax', 'equinox'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_training_and_measuring_need_none_of_the_packages_that_only_looking_needs():
    program = (
        "import sys\nfor name in ('polars', 'tyro', 'matplotlib', 'jinja2', 'ray'):\n    sys.modules[name] = None\n"
        "import beliefscope.study, beliefscope.measurement, beliefscope.agent"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
