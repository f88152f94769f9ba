"""The report: tables, figures and verdicts from stored results; nothing is computed anew."""
