"""Results: stored records as one table, and its curves, bands and correlations. Nothing here needs JAX."""

from beliefscope.results.read import Results, read_results, read_table
from beliefscope.results.table import as_csv

__all__ = ["Results", "as_csv", "read_results", "read_table"]
