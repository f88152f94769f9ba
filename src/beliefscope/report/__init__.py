"""The report: tables, figures, verdicts and a page from stored results; nothing is computed anew."""

from beliefscope.report.claims import ledger as ledger
from beliefscope.report.verdict import as_text as as_text
from beliefscope.report.write import write_report as write_report
