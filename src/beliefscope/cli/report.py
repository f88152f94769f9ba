"""`beliefscope report` and `claims`: what a study's folder says, to look at and to read."""

import dataclasses

from beliefscope.cli.study import Folder
from beliefscope.study import StudyFolder


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Write a study's report: report.html, a page that needs no network, and figures/ as SVG, PDF and PNG.

    A study that is not finished has a report too, which says what is missing. Nothing is measured anew.
    beliefscope report runs/paper-tmaze-50-quick-text
    """

    folder: Folder
    """The study's folder."""

    def run(self) -> int:
        from beliefscope.report import write_report

        page = write_report(self.folder)
        figures = len(list((page.parent / "figures").glob("*.svg")))
        print(
            f"{page.resolve()} ({page.stat().st_size / 1e6:.1f} MB), and {figures} figures in {page.parent / 'figures'}"
        )
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimsCommand:
    """Print the paper's claims, each with its rule, the numbers of this study, and the verdict."""

    folder: Folder
    """The study's folder."""

    def run(self) -> int:
        from beliefscope.report import as_text, ledger
        from beliefscope.study.results import columns

        stored = StudyFolder(self.folder)
        print(as_text(ledger(columns(stored.path, stored.runs), optimum=stored.description.get("optimum"))), end="")
        return 0
