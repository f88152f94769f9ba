"""The figures of a report for print, in the paper's composition: SVG, PDF and PNG drawn by Matplotlib.

`write_figures(results, folder)` takes `Results` and gives the names of the figures that it wrote; the same results give
the same bytes. Only what may share an axis does: another instrument or memory makes another figure.
"""

import io
import itertools
import re
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from beliefscope.report.compositions import by_epsilon, cells_of_many, irrelevant, learning
from beliefscope.report.drawings import altitude_map, base_pomdps, t_maze
from beliefscope.results import Results
from beliefscope.results.curves import Panel, are_pair
from beliefscope.store import write_atomic

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
                write_atomic(folder / f"{name}.{kind}", _rendered(figure, kind))
            names.append(name)
    return names


def figures(results: Results) -> Iterator[Named]:
    """Every figure with a name of its own, which is safe as a file's."""
    taken: set[str] = set()
    makers = (_learnings, _irrelevants, _by_epsilons, _drawings)
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


def _rendered(figure: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(content, format=kind, **_FORMATS[kind])
    return content.getvalue()
