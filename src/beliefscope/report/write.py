"""From a study's folder to its report: `report.html`, `correlations.csv` and `figures/` in the same folder."""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path

from beliefscope.report.page import page
from beliefscope.report.results import Results, read_results
from beliefscope.report.tables import Correlated, correlations
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
    write_atomic(stored.path / "correlations.csv", _as_csv(correlations(results)).encode())
    path = stored.path / "report.html"
    write_atomic(path, page(results, traces=traces, figures=figures).encode())
    return path


def _as_csv(rows: Iterable[Correlated]) -> str:
    """A line for each row: every coefficient with the ends of its interval, and the paper's."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    about, measured = ("environment", "instrument", "cell"), ("pearson", "spearman", "trend_free", "partial")
    printed = ("pearson_printed", "spearman_printed")
    writer.writerow([*about, *(f"{name}{end}" for name in measured for end in ("", "_low", "_high")), *printed])
    for row in rows:
        found = [getattr(row, name) for name in measured]
        numbers = [number for each in found for number in (each.value, each.low, each.high)]
        shown = ["" if math.isnan(number) else f"{number:.4f}" for number in numbers]
        writer.writerow([*(getattr(row, name) for name in about), *shown, *(getattr(row, name) for name in printed)])
    return text.getvalue()


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
