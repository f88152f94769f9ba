"""From the folders of studies to their report: `report.html`, two tables (.csv) and `figures/`.

Everything comes from stored results. Nothing is measured anew.
"""

from pathlib import Path

from beliefscope.report.page import page
from beliefscope.report.use import interventions_csv
from beliefscope.report.viewer import StoredTrace
from beliefscope.results import Results, read_results
from beliefscope.results.correlations import correlations_csv
from beliefscope.store.files import Damaged, write_atomic
from beliefscope.store.layout import StudyFiles
from beliefscope.store.records import read_trace


def write_report(folder: str | Path, *others: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of one or several studies, finished or not; returns the page's path.

    It is written into `out`, by default the first folder. Nothing is measured anew.
    """
    results = read_results([folder, *others])
    return write_results(results, Path(folder if out is None else out))[0]


def write_results(results: Results, out: Path) -> tuple[Path, list[str]]:
    """Write the report of these results; returns the page's path and the names of the figures."""
    from beliefscope.report.figures import write_figures  # matplotlib is slow to import

    files, traces = StudyFiles(out), stored_traces(results)
    figures = write_figures(results, files.figures)
    write_atomic(files.correlations, correlations_csv(results.correlations).encode())
    if results.interventions:
        write_atomic(files.interventions, interventions_csv(results).encode())
    write_atomic(files.report, page(results, traces=traces, figures=figures).encode())
    return files.report, figures


def stored_traces(results: Results) -> list[StoredTrace]:
    """Those that are there; damaged ones are added to what the results say is damaged."""
    found = []
    for run, piece, file in results.traces:
        if run.id not in results.specs:
            continue
        assert piece.episode is not None
        try:
            arrays = read_trace(file)
        except Damaged as error:
            results.damaged.append(error)
            continue
        pomdp = results.specs[run.id]["pomdp"]
        found.append(StoredTrace(run.environment, run.cell, run.seed, piece.episode, pomdp, arrays))
    return found
