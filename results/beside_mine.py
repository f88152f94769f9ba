"""The default estimator beside MINE at the last networks: the tables of docs/results.md, "How many bits there are"."""

import csv
from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

RESULTS = Path(__file__).parent
STUDIES = ("tmaze-100", "tmaze-50-stochastic", "mountain-hike", "varying-mountain-hike")  # of the same networks
RESAMPLES = 4000


def rows_of(folder: str) -> list[dict[str, str]]:
    with (RESULTS / folder / "table.csv").open() as lines:
        return list(csv.DictReader(lines))


def mine_of(row: dict[str, str]) -> bool:
    at_the_end = (row["episode"], float(row["epsilon"])) == ("5000", 0.0)
    return at_the_end and row["bits"] != "" and row.get("memory") in (None, "", "hidden")


def mean(rows: list[dict[str, str]], name: str) -> float:
    return float(np.mean([float(row[name] or "nan") for row in rows]))


def rank_correlations(returns: np.ndarray, *bits: np.ndarray) -> list[str]:
    """Of the returns with each, and the interval of the difference; intervals by a bootstrap over networks."""
    draws = np.random.default_rng(0).integers(0, len(returns), (RESAMPLES, len(returns)))
    found = np.array([[spearmanr(returns[draw], each[draw])[0] for each in bits] for draw in draws])
    ends = [np.percentile(each, (2.5, 97.5)) for each in (*found.T, found[:, 0] - found[:, 1])]
    values = [f"{spearmanr(returns, each)[0]:.2f} " for each in bits] + [""]
    return [f"{value}[{low:.2f}, {high:.2f}]" for value, (low, high) in zip(values, ends, strict=True)]


def main() -> None:
    mine = {row["run"]: float(row["bits"]) for name in STUDIES for row in rows_of(f"paper-{name}") if mine_of(row)}
    found = rows_of("beyond-best-bound")
    for (environment, cell), group in groupby(found, key=lambda row: (row["environment"], row["cell"])):
        rows = list(group)
        numbers = [mean(rows, name) for name in ("return", "entropy", "bits", "bits_low", "bits_high")]
        numbers.insert(2, float(np.mean([mine.get(row["run"], np.nan) for row in rows])))
        few = sum("too few pairs" in row["warnings"] for row in rows)
        print(environment, cell, *(f"{number:.2f}" for number in numbers), few, sep=" | ")
    for environment, group in groupby(found, key=lambda row: row["environment"]):
        rows = [row for row in group if row["run"] in mine]
        if rows:
            returns, bits = (np.array([float(row[name]) for row in rows]) for name in ("return", "bits"))
            read = np.array([mine[row["run"]] for row in rows])
            print(environment, *rank_correlations(returns, read, bits), sep=" | ")


if __name__ == "__main__":
    main()
