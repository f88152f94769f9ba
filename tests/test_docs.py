"""The programs on the page about extending run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
PROGRAMS = re.findall(r"## ([^\n]*)\n(?:(?!\n## ).)*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_each_of_the_programs_was_found():
    assert [title for title, _ in PROGRAMS] == ["A POMDP", "A cell", "An agent", "In a study"]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "program"), PROGRAMS, ids=[title for title, _ in PROGRAMS])
def test_a_program_of_the_page_runs(title, program, tmp_path):
    (tmp_path / "program.py").write_text(program, "utf-8")
    command = [sys.executable, "-W", "error", "program.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
