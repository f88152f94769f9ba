"""From a study's folder to its report: `report.html` and `figures/` in the same folder."""

from pathlib import Path

from beliefscope.report.page import page
from beliefscope.report.results import Results, read_results
from beliefscope.report.viewer import StoredTrace
from beliefscope.storage import load_arrays, write_atomic
from beliefscope.study import StudyFolder


def write_report(folder: str | Path) -> Path:
    """Write the report of a study, finished or not; returns the page's path. Nothing is measured anew."""
    from beliefscope.report.figures import write_figures  # matplotlib is slow to import

    stored = StudyFolder(folder)
    results = read_results(stored)
    traces = _traces(stored, results)
    figures = write_figures(results, stored.path / "figures")
    path = stored.path / "report.html"
    write_atomic(path, page(results, traces=traces, figures=figures).encode())
    return path


def _traces(stored: StudyFolder, results: Results) -> list[StoredTrace]:
    """Those that are there."""
    found = []
    for run in stored.runs:
        for piece in run.pieces:
            file = piece.result(stored.path)
            if piece.kind == "trace" and file.exists() and run.id in results.specs:
                assert piece.episode is not None
                pomdp = results.specs[run.id]["pomdp"]
                arrays = load_arrays(file)
                found.append(StoredTrace(run.environment, run.cell, run.seed, piece.episode, pomdp, arrays))
    return found
