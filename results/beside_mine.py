"""The default estimator beside MINE: tables and figure of docs/results.md, "How many bits there are"."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib
import numpy as np
from scipy.stats import spearmanr

from beliefscope.paper import CELL_NAMES
from beliefscope.report.figures import STYLE, rendered
from beliefscope.report.style import colour

RESULTS = Path(__file__).parent
# Of the same networks:
STUDIES = (
    "tmaze-50",
    "tmaze-100",
    "tmaze-50-stochastic",
    "mountain-hike",
    "varying-mountain-hike",
    "irrelevant-tmaze-50",
    "irrelevant-mountain-hike",
)
FIRST, LAST = "0", "5000"
RESAMPLES = 4000
COLUMNS = 3  # of panels

Row = dict[str, str]


def rows_of(folder: str) -> list[Row]:
    with (RESULTS / folder / "table.csv").open() as lines:
        return list(csv.DictReader(lines))


def by_mine(row: Row) -> bool:
    greedy = row["episode"] in (FIRST, LAST) and float(row["epsilon"]) == 0.0
    return greedy and row["bits"] != "" and row.get("memory") in (None, "", "hidden")


def measured(row: Row) -> tuple[str, str, str]:
    """Which network, and which part of the belief."""
    return row["run"], row["episode"], row["part"]


def in_groups(rows: list[Row], key: Callable[[Row], tuple[str, ...]]) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def mean(numbers: Iterable[float | str]) -> float:
    """A number that is missing, such as an upper end that is not known, leaves no mean."""
    return float(np.mean([float(number or "nan") for number in numbers]))


def two(number: float) -> str:
    return f"{number:.2f}" if np.isfinite(number) else "–"


def print_means(rows: list[Row], mine: dict[tuple[str, str, str], float]) -> None:
    """A line for each environment, part of the belief, cell and checkpoint."""
    groups = in_groups(rows, lambda row: (row["environment"], row["part"], row["cell"], row["episode"]))
    for key, group in groups.items():
        names = ("return", "entropy", "bits", "bits_low", "bits_high")
        value = {name: two(mean(row[name] for row in group)) for name in names}
        read = two(mean(mine.get(measured(row), np.nan) for row in group))
        few = sum("too few pairs" in row["warnings"] for row in group)
        interval = f"{value['bits_low']} to {value['bits_high']}"
        print(*key, value["return"], value["entropy"], read, value["bits"], interval, few, sep=" | ")


def print_correlations(rows: list[Row], mine: dict[tuple[str, str, str], float]) -> None:
    """Of return and bits over the last networks of an environment."""
    last = [row for row in rows if row["episode"] == LAST and measured(row) in mine]
    for key, group in in_groups(last, lambda row: (row["environment"], row["part"])).items():
        returns, bits = (np.array([float(row[name]) for row in group]) for name in ("return", "bits"))
        read = np.array([mine[measured(row)] for row in group])
        print(*key, *rank_correlations(returns, read, bits), sep=" | ")


def rank_correlations(returns: np.ndarray, *bits: np.ndarray) -> list[str]:
    """Of the returns with each, and the interval of the difference; intervals by a bootstrap over networks."""
    if np.ptp(returns) == 0:
        return ["equal returns"]
    draws = np.random.default_rng(0).integers(0, len(returns), (RESAMPLES, len(returns)))
    draws = [draw for draw in draws if np.ptp(returns[draw]) > 0]  # equal returns have no correlation
    found = np.array([[spearmanr(returns[draw], each[draw])[0] for each in bits] for draw in draws])
    ends = [np.percentile(each, (2.5, 97.5)) for each in (*found.T, found[:, 0] - found[:, 1])]
    values = [f"{spearmanr(returns, each)[0]:.2f} " for each in bits] + [""]
    return [f"{value}[{low:.2f}, {high:.2f}]" for value, (low, high) in zip(values, ends, strict=True)]


def figure(rows: list[Row], mine: dict[tuple[str, str, str], float]):
    """For each environment and part of the belief: bits of the first and of the last networks, by both estimators."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    panels = in_groups(rows, lambda row: (row["environment"], row["part"]))
    lines = -(-len(panels) // COLUMNS)
    drawn = Figure((3.1 * COLUMNS, 2.1 * lines + 0.5), layout="constrained")
    axes = list(drawn.subplots(lines, COLUMNS, squeeze=False).flat)
    for ax, ((environment, part), group) in zip(axes, panels.items(), strict=False):
        name = environment.replace(", L = 50, λ", ", λ")
        ax.set_title(name if part == "belief" else f"{name}: {part}", size=8, loc="left")
        panel(ax, group, mine)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    keys = [
        Line2D([], [], color="#444444", marker="o", ms=5, lw=1.5),
        Line2D([], [], color="#444444", marker="o", ms=5, mfc="white", ls="--", lw=1),
        Line2D([], [], color="#666666", ls=":", lw=1),
    ]
    names = ["best bound, with its interval", "MINE", "H(b) of the last"]
    drawn.legend(keys, names, loc="outside upper left", ncols=3, frameon=False, title="")
    return drawn


def panel(ax, rows: list[Row], mine: dict[tuple[str, str, str], float]) -> None:
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    for place, cell in enumerate(cells):
        ends = [[row for row in rows if (row["cell"], row["episode"]) == (cell, end)] for end in (FIRST, LAST)]
        spots = (place - 0.2, place + 0.2)
        bits, low, high = (
            np.array([mean(row[name] for row in end) for end in ends]) for name in ("bits", "bits_low", "bits_high")
        )
        read = [mean(mine.get(measured(row), np.nan) for row in end) for end in ends]
        shade = colour(cell, cells)
        entropy = mean(row["entropy"] for row in ends[1])
        if entropy < 9:  # that of a continuous belief is the logarithm of the number of pairs
            ax.plot((place - 0.45, place + 0.45), (entropy, entropy), color="#666666", ls=":", lw=1.2)
        ax.plot(spots, read, color=shade, ls="--", lw=1, marker="o", ms=4, mfc="white")
        ax.errorbar(spots, bits, [bits - low, np.nan_to_num(high - bits)], color=shade, lw=1.5, marker="o", ms=4)
    ax.set_xticks(range(len(cells)), [CELL_NAMES.get(cell, cell) for cell in cells])
    ax.set(xlim=(-0.5, len(cells) - 0.5), ylim=(0, None))
    ax.set_ylabel("bits")


def main() -> None:
    mine = {measured(row): float(row["bits"]) for name in STUDIES for row in rows_of(f"paper-{name}") if by_mine(row)}
    found = rows_of("beyond-best-bound")
    print_means(found, mine)
    print_correlations(found, mine)
    with matplotlib.rc_context(STYLE):
        drawn = figure(found, mine)
        for kind in ("svg", "png"):
            (RESULTS / "beyond-best-bound" / f"bits.{kind}").write_bytes(rendered(drawn, kind))


if __name__ == "__main__":
    main()
