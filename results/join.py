"""The paper's studies as one: `python results/join.py` reads the tables beside it and writes `results/paper/`.

claims.txt has the ledger of all claims, correlations.csv every coefficient beside the paper's, and environments.svg and
.png show return against information in the five environments.
"""

from pathlib import Path

import matplotlib

from beliefscope.claims import as_text, ledger
from beliefscope.paper import AGGREGATED, CELL_NAMES, ENVIRONMENTS
from beliefscope.report.figures import STYLE
from beliefscope.report.style import colour
from beliefscope.results import read_table
from beliefscope.results.correlations import Correlated, Correlation, correlated, correlations_csv, points
from beliefscope.results.curves import Panel, panels

HERE = Path(__file__).parent
OUT = HERE / "paper"
LEFT = -0.5  # bits: information is never below 0, so that there a fit has failed
STUDIES = (
    "tmaze-50",
    "tmaze-100",
    "tmaze-50-stochastic",
    "mountain-hike",
    "varying-mountain-hike",
    "irrelevant-tmaze-50",
    "irrelevant-mountain-hike",
    "generalisation",
)


def tables() -> list[Path]:
    """Those of the studies that are there."""
    files = (HERE / f"paper-{study}" / "table.csv" for study in STUDIES)
    return [file for file in files if file.is_file()]


def greedy(found: tuple[Panel, ...]) -> list[Panel]:
    """The panels of the paper's figures: h, the whole or the relevant belief, ε = 0."""
    return [
        panel
        for panel in found
        if (panel.memory, panel.epsilon, panel.part != "irrelevant") == ("hidden", 0.0, True)
        and panel.instrument.estimator == "mine"
    ]


def figure(found: list[Panel]):
    """Return against information, an environment a column."""
    from matplotlib.figure import Figure

    shown = {panel.environment: panel for panel in found}
    drawn = Figure((2.4 * len(ENVIRONMENTS), 2.8))
    axes = drawn.subplots(
        1, len(ENVIRONMENTS), gridspec_kw={"left": 0.05, "right": 0.995, "top": 0.74, "bottom": 0.16, "wspace": 0.22}
    )
    for ax, environment in zip(axes, ENVIRONMENTS, strict=True):
        ax.set_title(environment.replace(", L = 50, λ", ",\nL = 50, λ"), size=8)
        ax.set_xlabel("Information (bits)")
        if environment not in shown:
            ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color="#666666")
            ax.set(xticks=[], yticks=[])
            continue
        panel = shown[environment]
        for cell, curves in panel.curves.items():
            dots, _ = points(curves)
            ax.scatter(dots.bits, dots.returns, s=5, alpha=0.5, lw=0, color=colour(cell, []), rasterized=True)
        over_all = correlated(panel)[0]
        ax.text(0.03, 0.97, coefficients(over_all), transform=ax.transAxes, va="top", size=6, linespacing=1.3)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))
        left = sum(int((points(curves)[0].bits < LEFT).sum()) for curves in panel.curves.values())
        ax.set_xlim(left=LEFT)
        if left:
            ax.text(0.03, 0.03, f"◂ {left} failed fits", transform=ax.transAxes, size=6, color="#666666")
    axes[0].set_ylabel("Return")
    legend(drawn)
    return drawn


def legend(drawn) -> None:
    from matplotlib.lines import Line2D

    cells = ("LSTM", "GRU", "BRC", "NBRC", "MGU")
    keys = [Line2D([], [], ls="", marker="o", ms=4, color=colour(cell, [])) for cell in cells]
    names = [CELL_NAMES.get(cell, cell) for cell in cells]
    drawn.legend(keys, names, loc="upper left", ncols=5, frameon=False, bbox_to_anchor=(0.04, 1.0))


def coefficients(row: Correlated) -> str:
    return (
        f"Pearson {_two(row.pearson)} (paper {row.pearson_printed:.2f})\n"
        f"Spearman {_two(row.spearman)} (paper {row.spearman_printed:.2f})"
    )


def _two(found: Correlation) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    found = panels(read_table(tables()))
    (OUT / "claims.txt").write_text(as_text(ledger(found)), "utf-8")
    rows = [row for panel in greedy(found) for row in correlated(panel)]
    (OUT / "correlations.csv").write_text(correlations_csv(rows), "utf-8")
    printed = [row for row in rows if row.pearson_printed is not None and row.cell in (AGGREGATED, *CELL_ORDER)]
    inside = [
        found.low <= paper <= found.high
        for row in printed
        for found, paper in ((row.pearson, row.pearson_printed), (row.spearman, row.spearman_printed))
    ]
    with matplotlib.rc_context(STYLE):
        drawn = figure(greedy(found))
        drawn.savefig(OUT / "environments.svg", dpi=200, metadata={"Date": None})
        drawn.savefig(OUT / "environments.png", dpi=200)
    print(f"{sum(inside)} of {len(inside)} coefficients of the paper are inside our intervals (60 in all)")


CELL_ORDER = tuple(CELL_NAMES.get(cell, cell) for cell in ("LSTM", "GRU", "BRC", "NBRC", "MGU"))

if __name__ == "__main__":
    main()
