"""Draws docs/first-look.png, a picture in results.md: return, sufficiency and bits through training.

    python docs/first_look.py

The numbers are those of results/paper-irrelevant-tmaze-50: a T-Maze of L = 50 with one irrelevant variable, four
agents of each cell.
"""

from pathlib import Path
from typing import Literal

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from beliefscope.paper import CELL_NAMES
from beliefscope.report.style import colour
from beliefscope.results import read_table
from beliefscope.results.curves import Panel, band, panels

Line = Literal["-", ":", "--"]
HERE = Path(__file__).parent
TABLE = HERE.parent / "results" / "paper-irrelevant-tmaze-50" / "table.csv"
CELLS = ("GRU", "NBRC", "LSTM")
MAXIMAL = 1.457  # the return of the best policy


def main() -> None:
    table = read_table([TABLE])
    bits, shares = (_of_maze(panels(table, of_shares=of_shares)) for of_shares in (False, True))
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
    for cell in CELLS:
        _draw(left, cell, bits, "return")
        _draw(middle, cell, shares, "sufficiency_last")
        _draw(right, cell, bits, "bits")
        _draw(right, cell, shares, "atoms_bits", ":")
    _draw(right, "GRU", bits, "entropy", "--", "black")
    left.axhline(MAXIMAL, color="black", linewidth=1, linestyle=":")
    left.set_title("Return: does the agent act well?", loc="left", fontsize=9.5)
    middle.set_title("Sufficiency: does its memory hold the belief?", loc="left", fontsize=9.5)
    right.set_title("Bits shared by memory and belief", loc="left", fontsize=9.5)
    middle.set(ylim=(-0.03, 1.05), yticks=[0, 0.5, 1], yticklabels=["0 %", "50 %", "100 %"])
    right.set_ylim(bottom=0)
    for axis in (left, middle, right):
        axis.set_xlabel("episodes of training")
    left.legend(
        [Line2D([], [], color=colour(cell, [])) for cell in CELLS], [CELL_NAMES.get(cell, cell) for cell in CELLS]
    )
    styles: dict[str, Line] = {"MINE": "-", "proven (atoms bound)": ":", "H(b), the most there is": "--"}
    right.legend(
        [Line2D([], [], color="black", linestyle=each) for each in styles.values()], list(styles), fontsize=7.5
    )
    figure.savefig(HERE / "first-look.png", dpi=130)


def _of_maze(found: tuple[Panel, ...]) -> Panel:
    return next(panel for panel in found if panel.part == "relevant" and "+ 1 " in panel.environment)


def _draw(axis: Axes, cell: str, panel: Panel, column: str, line: Line = "-", tint: str = "") -> None:
    """The mean over seeds; around a solid line also the band from the least seed to the largest."""
    each, tint = band(panel.curves[cell], column), tint or colour(cell, [])
    axis.plot(each.episode, each.mean, color=tint, linewidth=1.4, linestyle=line)
    if line == "-":
        axis.fill_between(each.episode, each.low, each.high, color=tint, alpha=0.15, linewidth=0)


if __name__ == "__main__":
    main()
