"""The notebook of the first hour runs as it stands, and its pictures are in it."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first_hour.ipynb"


def cells() -> list[dict]:
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_its_pictures_and_lines_are_in_it():
    outputs = [output for cell in cells() for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert "report.html" in "".join(line for output in outputs for line in output.get("text", []))
    assert NOTEBOOK.stat().st_size < 300_000


@pytest.mark.slow
def test_its_cells_run_one_after_another_in_less_than_two_minutes_of_one_core(tmp_path):
    code = "\n".join("".join(cell["source"]) for cell in cells())
    script = f"import matplotlib\nmatplotlib.use('agg', force=True)\nimport matplotlib.pyplot\n{code}\n"
    script = script.replace("plt.show()", "plt.close()")
    cold = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=cold,
    )
    assert run.returncode == 0, run.stderr
    assert "networks after [0, 150, 300] episodes" in run.stdout
    assert run.stdout.count(": sufficiency ") == 3
    assert "report.html" in run.stdout
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 120
