"""The paper's studies as one: `python results/join.py` reads the tables beside it and writes `results/paper/`.

claims.txt has the ledger of all claims, and correlations.csv every coefficient beside the paper's. The pictures are of
the five environments, return against information and the GRU's information under every ε, and of the T-Maze.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np

from beliefscope.claims import as_text, ledger
from beliefscope.claims.evidence import Evidence
from beliefscope.claims.several_environments import EPSILONS
from beliefscope.paper import AGGREGATED, CELL_NAMES, ENVIRONMENTS
from beliefscope.report.figures import STYLE, rendered, t_maze
from beliefscope.report.style import ReturnScale, colour
from beliefscope.results import read_table
from beliefscope.results.correlations import Correlated, Correlation, correlated, correlations_csv, points
from beliefscope.results.curves import Panel, band, counted, panels

HERE = Path(__file__).parent
OUT = HERE / "paper"
LEFT = -0.5  # bits; information is never below 0
LEGEND = {"loc": "upper left", "frameon": False, "bbox_to_anchor": (0.04, 1.01)}
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


def figure(found: list[Panel], optimum: Mapping[str, float]):
    """Return against information where the coefficients count it, an environment a column, on the paper's axis."""
    shown = {panel.environment: panel for panel in found}
    drawn, columns = by_environment(top=0.72, title_above=1.17)
    for environment, ax in columns.items():
        ax.set_xlabel("Information (bits)")
        if environment in shown:
            scatter(ax, shown[environment], optimum.get(environment))
        else:
            not_run(ax)
    columns[ENVIRONMENTS[0]].set_ylabel("Return")
    legend(drawn)
    return drawn


def under_every_epsilon(evidence: Evidence):
    """The GRU's information through training under several ε, an environment a column: medians over seeds, which single
    fits that failed do not move."""
    from matplotlib.lines import Line2D

    drawn, columns = by_environment(top=0.80, title_above=1.01)
    tints = dict(zip(EPSILONS, matplotlib.colormaps["viridis"](np.linspace(0, 0.88, len(EPSILONS))), strict=True))
    for environment, ax in columns.items():
        ax.set_xlabel("Episodes")
        series = evidence.by_epsilon(environment, "GRU", EPSILONS)
        if not all(each.enough for each in series.values()):
            not_run(ax)
            continue
        for epsilon, each in series.items():
            medians = np.median([curve.values["bits"] for curve in each.curves], axis=0)
            ax.plot(each.curves[0].episode, medians, color=tints[epsilon], lw=1.2)
        ax.set_ylim(bottom=0)
    columns[ENVIRONMENTS[0]].set_ylabel("Information (bits)")
    keys = [Line2D([], [], color=tints[epsilon]) for epsilon in EPSILONS]
    drawn.legend(keys, [f"ε = {epsilon:g}" for epsilon in EPSILONS], **LEGEND, ncols=len(keys))
    return drawn


def by_environment(*, top: float, title_above: float):
    """A figure with an empty axis for each environment."""
    from matplotlib.figure import Figure

    drawn = Figure((2.5 * len(ENVIRONMENTS), 3.0))
    sides = {"left": 0.05, "right": 0.995, "top": top, "bottom": 0.15, "wspace": 0.24}
    axes = drawn.subplots(1, len(ENVIRONMENTS), gridspec_kw=sides)
    for ax, environment in zip(axes, ENVIRONMENTS, strict=True):
        ax.set_title(environment.replace(", L = 50, λ", ", λ"), size=9, y=title_above, loc="left")
    return drawn, dict(zip(ENVIRONMENTS, axes, strict=True))


def not_run(ax) -> None:
    ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color="#666666")
    ax.set(xticks=[], yticks=[])


def scatter(ax, panel: Panel, optimum: float | None) -> None:
    shown = {cell: counted(panel, cell)[0] for cell in panel.curves}
    means = [band(curves, "return").mean for curves in shown.values()]
    reference = max(each.max() for each in means) if optimum is None else optimum
    scale = ReturnScale(reference, float(np.mean([each[0] for each in means])))
    dots = {cell: points(curves)[0] for cell, curves in shown.items()}
    for cell, each in dots.items():
        place = scale.place(each.returns)
        ax.scatter(each.bits, place, s=5, alpha=0.5, lw=0, color=colour(cell, []), rasterized=True)
    returns = np.concatenate([each.returns for each in dots.values()])
    ticks = scale.ticks(float(returns.min()), float(returns.max()))
    ax.set_yticks(scale.place(np.array(ticks)), [f"{tick:g}".replace("-", "−") for tick in ticks])
    if optimum is not None:
        ax.axhline(scale.place(np.array([optimum]))[0], color="#666666", ls=":", lw=1)
    left = sum(int((each.bits < LEFT).sum()) for each in dots.values())
    said = coefficients(correlated(panel)[0]) + (f"\n{left} beyond the left edge" if left else "\n")
    ax.text(0, 1.02, said, transform=ax.transAxes, va="bottom", size=6, linespacing=1.25)
    ax.set_xlim(left=LEFT)


def legend(drawn) -> None:
    from matplotlib.lines import Line2D

    cells = ("LSTM", "GRU", "BRC", "NBRC", "MGU")
    keys = [Line2D([], [], ls="", marker="o", ms=4, color=colour(cell, [])) for cell in cells]
    keys += [Line2D([], [], color="#666666", ls=":", lw=1)]
    names = [*(CELL_NAMES.get(cell, cell) for cell in cells), "greatest expected return"]
    drawn.legend(keys, names, **LEGEND, ncols=len(keys))


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
        evidence = Evidence(found)
        drawn = {
            "environments": figure(greedy(found), evidence.optimum),
            "epsilon": under_every_epsilon(evidence),
            "t-maze": t_maze(),
        }
        for name, kind in itertools.product(drawn, ("svg", "png")):
            (OUT / f"{name}.{kind}").write_bytes(rendered(drawn[name], kind))
    print(f"{sum(inside)} of {len(inside)} coefficients of the paper are inside our intervals (60 in all)")


CELL_ORDER = tuple(CELL_NAMES.get(cell, cell) for cell in ("LSTM", "GRU", "BRC", "NBRC", "MGU"))

if __name__ == "__main__":
    main()
