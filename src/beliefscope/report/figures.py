"""The figures of a report for print, in the paper's composition: SVG, PDF and PNG drawn by Matplotlib.

`write_figures(results, folder)` takes `Results` and gives the names of the figures that it wrote; the same results give
the same bytes. Only what may share an axis does: another instrument or memory makes another figure.

The paper's two environments are drawn too: the altitude of the Mountain Hike and the state space of the T-Maze.
`base_pomdps(specs)` says which of them the runs of a study are about; `altitude_map` and `t_maze` give Figures.
"""

import io
import itertools
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Patch, Rectangle
from PIL import Image

from beliefscope.paper import START, TOP, altitude
from beliefscope.report.compositions import by_epsilon, cells_of_many, followed, irrelevant, learning
from beliefscope.report.use import use_charts
from beliefscope.results import Results
from beliefscope.results.curves import Panel, are_pair
from beliefscope.store import write_atomic

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


STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.6,
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.2,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "svg.hashsalt": "beliefscope",
    "pdf.fonttype": 42,  # text stays text
}
_FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
    "png": {"metadata": {"Software": None}, "dpi": 200},
}

Named = tuple[str, Figure]


def write_figures(results: Results, folder: Path) -> list[str]:
    """Write `folder/<name>.svg`, `.pdf` and `.png` for every figure that the results allow."""
    names = []
    with matplotlib.style.context(["default", STYLE]):
        for name, figure in figures(results):
            for kind in _FORMATS:
                write_atomic(folder / f"{name}.{kind}", rendered(figure, kind))
            names.append(name)
    return names


def figures(results: Results) -> Iterator[Named]:
    """Every figure with a name of its own, which is safe as a file's."""
    taken: set[str] = set()
    makers = (_learnings, _irrelevants, _by_epsilons, _uses, _drawings)
    for wanted, figure in itertools.chain.from_iterable(make(results) for make in makers):
        name = next(name for name in _candidates(slug(wanted)) if name not in taken)
        taken.add(name)
        yield name, figure


def slug(text: str) -> str:
    """The text in small letters, digits and single hyphens."""
    spelt = text.lower().replace("λ", "lambda").replace("ε", "epsilon")
    plain = unicodedata.normalize("NFKD", spelt).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:80].strip("-")


def _learnings(results: Results) -> Iterator[Named]:
    for environment in results.environments:
        panels = [panel for panel in _measured(results, environment) if panel.part != "irrelevant"]
        least = min((panel.epsilon for panel in panels), default=0.0)
        for panel in panels:
            if panel.epsilon == least:
                memory = "" if panel.memory == "hidden" else f" {panel.memory} memory"
                yield f"learning-{environment}{memory}", learning(results, panel)


def _irrelevants(results: Results) -> Iterator[Named]:
    for environment in results.environments:
        panels = [panel for panel in _measured(results, environment) if panel.epsilon == 0]
        for one, other in itertools.product(panels, panels):
            if (one.part, other.part) == ("relevant", "irrelevant") and are_pair(one, other):
                yield f"irrelevant-{environment}", irrelevant(results, one, other)


def _by_epsilons(results: Results) -> Iterator[Named]:
    for environment in results.environments:
        groups: dict[tuple, list[Panel]] = {}
        for panel in _measured(results, environment):
            if panel.part != "irrelevant":
                groups.setdefault((panel.memory, panel.instrument), []).append(panel)
        for group in groups.values():
            panels = sorted(group, key=lambda panel: panel.epsilon)
            if cells_of_many(panels):
                yield f"epsilon-{environment}", by_epsilon(results, panels)


def _uses(results: Results) -> Iterator[Named]:
    charts = use_charts(results)
    for environment in dict.fromkeys(chart.environment for chart in charts):
        yield f"use-{environment}", followed([chart for chart in charts if chart.environment == environment])


def _drawings(results: Results) -> Iterator[Named]:
    pomdps = base_pomdps(results.specs)
    if "MountainHike" in pomdps:
        yield "altitude", altitude_map(float(pomdps["MountainHike"]["goal_radius"]))
    if "TMaze" in pomdps:
        yield "t-maze", t_maze()


def _measured(results: Results, environment: str) -> list[Panel]:
    """The panels of an environment in which there is anything to draw."""
    return [
        panel
        for panel in results.panels
        if panel.environment == environment
        and any(np.isfinite(curve.values["bits"]).any() for curves in panel.curves.values() for curve in curves)
    ]


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as a file of this kind: svg, pdf or png."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(content, format=kind, **_FORMATS[kind])
    return _of_few_colours(content) if kind == "png" else content.getvalue()


def _of_few_colours(png: io.BytesIO) -> bytes:
    """The same picture with 256 colours: a third of the size."""
    content = io.BytesIO()
    drawn, method = Image.open(png), Image.Quantize.MAXCOVERAGE  # rare colours stay what they are
    picture = drawn.convert("RGB").quantize(256, method, kmeans=1, dither=Image.Dither.NONE)
    picture.save(content, "PNG", optimize=True, dpi=drawn.info["dpi"])
    return content.getvalue()
