"""The report: tables, figures, verdicts and a page from stored results; nothing is computed anew."""

from beliefscope.report.write import write_report as write_report
