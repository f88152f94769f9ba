"""The paper's two environments, drawn: the altitude of the Mountain Hike and the state space of the T-Maze.

`base_pomdps(specs)` says which of them the runs of a study are about; `altitude_map` and `t_maze` give Figures.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Patch, Rectangle

from beliefscope.hike_map import START, TOP, altitude

_BLUE, _GREY, _HATCH = "#cfe0f1", "#dddddd", "#2f7fc1"
_HIKE_COLOURS = "cividis"
_COLUMNS = ("0", "1", "2", "3", "…", "L")  # of the corridor


def base_pomdps(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The POMDPs that runs describe, without their irrelevant variables: one of each class."""
    found: dict[str, Mapping[str, Any]] = {}
    for spec in specs.values():
        pomdp = spec["pomdp"]
        while pomdp.get("class") == "Irrelevant":
            pomdp = pomdp["pomdp"]
        found.setdefault(str(pomdp.get("class")), pomdp)
    return found


def altitude_map(goal_radius: float) -> Figure:
    """The altitude h(x, y) from above, with the start and the goal, and as a surface."""
    side = np.linspace(-1, 1, 201)
    x, y = np.meshgrid(side, side)
    height = altitude(x, y)
    figure = Figure((7.2, 3.1))
    _from_above(figure, height, goal_radius)
    surface: Any = figure.add_axes((0.55, 0.07, 0.44, 0.95), projection="3d")
    surface.plot_surface(
        x, y, height, cmap=_HIKE_COLOURS, rcount=201, ccount=201, shade=False, lw=0, antialiased=False, rasterized=True
    )
    surface.set(xlabel="x", ylabel="y", zticks=[-1, -0.5, 0], xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    surface.view_init(elev=38, azim=-125)
    return figure


def t_maze() -> Figure:
    """Its cells in both layouts: where an episode starts, where it ends, and where the treasure lies."""
    figure = Figure((7.2, 2.1))
    edges = {"left": 0.01, "right": 0.99, "bottom": 0.12, "top": 0.9, "wspace": 0.02}
    for ax, (layout, treasure) in zip(figure.subplots(1, 2, gridspec_kw=edges), (("Up", 1), ("Down", -1)), strict=True):
        _layout(ax, treasure)
        ax.set_title(f"m = {layout}", loc="left")
    keys = {
        "initial state": Patch(facecolor=_BLUE),
        "terminal state": Patch(facecolor=_GREY),
        "treasure": Patch(facecolor=_GREY, hatch="////", edgecolor=_HATCH, lw=0),
    }
    figure.legend(keys.values(), keys.keys(), loc="lower center", ncols=3, frameon=False)
    return figure


def _from_above(figure: Figure, height: Float[np.ndarray, "y x"], goal_radius: float) -> None:
    ax, beside = figure.add_axes((0.06, 0.13, 0.36, 0.84)), figure.add_axes((0.435, 0.18, 0.015, 0.74))
    extent = (-1.0, 1.0, -1.0, 1.0)
    image = ax.imshow(height, origin="lower", extent=extent, cmap=_HIKE_COLOURS, interpolation="bilinear")
    levels = np.arange(-1.1, 0, 0.2)
    ax.contour(height, levels, origin="lower", extent=extent, colors="white", linewidths=0.4, linestyles="solid")
    colours: Any = figure.colorbar(image, cax=beside, label="Altitude h")
    colours.outline.set_visible(False)
    ax.plot(*START, marker="o", ms=5, mfc="white", mec="black")
    ax.add_patch(Circle(TOP, goal_radius, fc="none", ec="black", lw=1.2))
    ax.text(START[0] + 0.06, START[1], "start", va="center")
    ax.text(TOP[0] - goal_radius - 0.03, TOP[1], "goal", ha="right", va="center")
    ax.set(xlabel="x", ylabel="y", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _layout(ax: Axes, treasure: int) -> None:
    last = len(_COLUMNS) - 1
    for column, name in enumerate(_COLUMNS):
        _cell(ax, column, 0, "…" if name == "…" else f"({name}, 0)", _BLUE if column == 0 else "white")
    for row in (1, -1):
        _cell(ax, last, row, f"(L, {row})".replace("-", "−"), _GREY, hatched=row == treasure)
    ax.text(0.5, -0.15, "start", ha="center", va="top")
    ax.text(last + 1.1, 0.5, "junction", va="center")
    ax.set(xlim=(-0.1, last + 2.3), ylim=(-1.1, 2.1), aspect="equal")
    ax.axis("off")


def _cell(ax: Axes, column: int, row: int, name: str, fill: str, *, hatched: bool = False) -> None:
    if hatched:
        ax.add_patch(Rectangle((column, row), 1, 1, fc=fill, ec=_HATCH, hatch="////", lw=0))
    ax.add_patch(Rectangle((column, row), 1, 1, fc="none" if hatched else fill, ec="#888888", lw=0.8))
    label = ax.text(column + 0.5, row + 0.5, name, ha="center", va="center", size=7)
    if hatched:
        label.set_bbox({"fc": fill, "ec": "none", "pad": 1.5})
