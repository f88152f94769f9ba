"""How a figure for print is composed: `learning`, `irrelevant` and `by_epsilon` take `Results` and panels, and give a
Matplotlib Figure. All is placed by inches, so that the same results give the same bytes."""

import math
import textwrap
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from beliefscope.paper import CELLS, called
from beliefscope.report.charts import Chart
from beliefscope.report.style import ReturnAxis, cell_colour, return_axis
from beliefscope.results import Results
from beliefscope.results.correlations import points
from beliefscope.results.curves import Band, Curve, Panel, band, failed_fits, in_order, return_band

_WIDTH = 7.2  # inches, of a page's text
_GREY = "#666666"
_MARKERS = "osD^vPX*"
_FEW = 8  # points on a line; so few are marked, and one alone is seen
_PARTS = {"belief": "the belief", "relevant": "the relevant part of the belief", "irrelevant": "the irrelevant part"}


_FAILED: dict[str, Any] = {"ls": "", "marker": "x", "ms": 3, "mew": 0.8}
_LEAST = -1.0  # bits; there are never less than 0, and one failed fit would squeeze all others

Labelled = tuple[Line2D, str]


def learning(results: Results, panel: Panel) -> Figure:
    """Left, return and information through training; right, the one against the other."""
    environment, cells = panel.environment, list(panel.curves)
    keys = [(_key(results, cell), called(cell)) for cell in cells]
    if any(len(band(curves, "entropy").mean) for curves in panel.curves.values()):
        keys.append((Line2D([], [], color=_GREY, ls="--", lw=0.8), "entropy H(b)"))
    axis, note = return_axis(results, environment), _note([panel], cells)
    keys = _with_optimum(_with_failed(keys, [panel]), axis)
    figure, edges = _page(environment, keys, note, height=2.9, width=_WIDTH)
    margin = _margin(axis) / _WIDTH
    grid = figure.add_gridspec(2, 1, left=margin, right=0.53, hspace=0.12, **edges)
    top = figure.add_subplot(grid[0])
    bottom = figure.add_subplot(grid[1], sharex=top)
    right = figure.add_subplot(figure.add_gridspec(1, 1, left=0.54 + margin, right=0.98, **edges)[0], sharey=top)
    _returns(top, axis, results, environment, cells)
    top.tick_params(labelbottom=False)
    for cell, curves in panel.curves.items():
        _line(bottom, band(curves, "bits"), color=cell_colour(results, cell))
        entropy = band(curves, "entropy")
        bottom.plot(entropy.episode, entropy.mean, color=cell_colour(results, cell), ls="--", lw=0.7)
        _failed(bottom, curves, color=cell_colour(results, cell))
    _information_axis(bottom)
    _scatter(right, axis, results, panel)
    figure.align_ylabels([top, bottom])
    return figure


def irrelevant(results: Results, relevant: Panel, other: Panel) -> Figure:
    """For each cell, the return above the information of both parts of the belief."""
    cells = in_order([*relevant.curves, *other.curves])
    keys = [(Line2D([], [], color="black"), "relevant part"), (Line2D([], [], color=_GREY, ls="--"), "irrelevant part")]
    keys, note = _with_failed(keys, [relevant, other]), _note([relevant, other], cells)
    figure, axes = _by_cell(results, relevant.environment, cells, keys, note)
    for ax, cell in zip(axes, cells, strict=True):
        for panel, color, ls in ((relevant, cell_colour(results, cell), "-"), (other, _GREY, "--")):
            curves = panel.curves.get(cell, ())
            _line(ax, band(curves, "bits"), color=color, ls=ls)
            _failed(ax, curves, color=color)
    _information_axis(axes[0])
    return figure


def by_epsilon(results: Results, panels: list[Panel]) -> Figure:
    """For each cell that was measured so, the return above the information under histories of several ε."""
    cells = cells_of_many(panels)
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.88, len(panels)))
    keys = [(Line2D([], [], color=tint), f"ε = {panel.epsilon:g}") for tint, panel in zip(colours, panels, strict=True)]
    keys, note = _with_failed(keys, panels), _note(panels, cells)
    figure, axes = _by_cell(results, panels[0].environment, cells, keys, note)
    for ax, cell in zip(axes, cells, strict=True):
        for tint, panel in zip(colours, panels, strict=True):
            curves = panel.curves.get(cell, ())
            _line(ax, band(curves, "bits"), color=tint)
            _failed(ax, curves, color=tint)
    _information_axis(axes[0])
    return figure


def cells_of_many(panels: list[Panel]) -> list[str]:
    """The cells that more than one of the panels has."""
    cells = [cell for panel in panels for cell in panel.curves]
    return in_order(cell for cell in cells if cells.count(cell) > 1)


def _page(
    title: str, keys: list[Labelled], note: str, *, height: float, width: float
) -> tuple[Figure, dict[str, float]]:
    """A figure with its title and legend above, a note beneath, and the bottom and top of the axes in between, whose
    height is given. All is placed by inches: what solves for a layout does so differently from time to time."""
    titles, notes = textwrap.wrap(title, int(11 * width)), textwrap.wrap(note, int(19 * width))
    widths = [0.45 + 0.06 * len(label) for _, label in keys]
    columns = len(keys) if sum(widths) < width else max(1, int(width / max(widths)))
    legend_top = 0.13 + 0.15 * len(titles)
    above, below = legend_top + 0.16 * math.ceil(len(keys) / columns) + 0.27, 0.54 + 0.11 * len(notes)
    total = above + height + below
    figure, left = Figure((width, total)), 0.06 / width
    plain: dict[str, Any] = {"parse_math": False, "linespacing": 1.15}
    figure.text(left, 1 - 0.05 / total, "\n".join(titles), weight="bold", size=9, va="top", **plain)
    figure.text(left, 0.05 / total, "\n".join(notes), size=6.5, color=_GREY, va="bottom", **plain)
    _legend(figure, keys, (left, 1 - legend_top / total), columns)
    return figure, {"bottom": below / total, "top": 1 - above / total}


def _legend(figure: Figure, keys: list[Labelled], place: tuple[float, float], columns: int) -> None:
    handles, labels = zip(*keys, strict=True)
    tight = {"borderpad": 0, "borderaxespad": 0, "handlelength": 1.8, "columnspacing": 1.5, "labelspacing": 0.3}
    legend = figure.legend(handles, labels, loc="upper left", bbox_to_anchor=place, ncols=columns, **tight)
    for text in legend.get_texts():
        text.set_parse_math(False)  # what comes from a study is text, however much it looks like a formula


def _by_cell(
    results: Results, environment: str, cells: list[str], keys: list[Labelled], note: str
) -> tuple[Figure, list[Axes]]:
    """A column for each cell: its return above, and an empty axis for its information."""
    axis = return_axis(results, environment)
    width = max(3.5, _margin(axis) + 0.1 + 1.3 * len(cells))
    figure, edges = _page(environment, _with_optimum(keys, axis), note, height=2.6, width=width)
    sides = {"left": _margin(axis) / width, "right": 1 - 0.1 / width, "wspace": 0.12, "hspace": 0.12}
    axes = figure.subplots(2, len(cells), sharex=True, sharey="row", squeeze=False, gridspec_kw={**edges, **sides})
    for ax, cell in zip(axes[0], cells, strict=True):
        ax.set_title(called(cell), parse_math=False)
        _returns(ax, axis, results, environment, [cell])
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    for ax in axes[1]:
        ax.set_xlabel("Episodes")
    figure.align_ylabels(axes[:, 0])
    return figure, list(axes[1])


def _returns(ax: Axes, axis: ReturnAxis, results: Results, environment: str, cells: list[str]) -> None:
    for cell in cells:
        each = return_band(results.returns.get((environment, cell), ()))
        placed = Band(each.episode, *(axis.scale.place(values) for values in each[1:]))
        _line(ax, placed, color=cell_colour(results, cell))
    _mark(ax, axis)


def _scatter(ax: Axes, axis: ReturnAxis, results: Results, panel: Panel) -> None:
    for cell, curves in panel.curves.items():
        found, _ = points(curves)
        color, marker = cell_colour(results, cell), _marker(results, cell)
        ax.scatter(found.bits, axis.scale.place(found.returns), s=9, alpha=0.55, lw=0, color=color, marker=marker)
    over_all_cells = results.correlations_of(panel)[0]
    if over_all_cells.pearson.num_points:
        pearson, spearman = (_two_digits(found.value) for found in (over_all_cells.pearson, over_all_cells.spearman))
        ax.set_title(f"Pearson {pearson}, Spearman {spearman}")
    ax.set_xlabel("Information (bits)")
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    _mark(ax, axis)


def _information_axis(ax: Axes) -> None:
    ax.set_ylim(bottom=max(_LEAST, min(0.0, ax.get_ylim()[0])))
    ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    ax.set_xlabel("Episodes")
    ax.set_ylabel("Information (bits)")


def _line(ax: Axes, each: Band, *, color: Any, ls: str = "-") -> None:
    """The mean over seeds, and a band from the least to the greatest."""
    if len(each.mean):
        marker = "o" if len(each.mean) <= _FEW else ""
        ax.fill_between(each.episode, each.low, each.high, color=color, alpha=0.15, lw=0)
        ax.plot(each.episode, each.mean, color=color, ls=ls, marker=marker, ms=2.5)


def _failed(ax: Axes, curves: Iterable[Curve], *, color: Any) -> None:
    """Mark the fits that failed, at the edge where they lie beneath it."""
    for _, episode, bits in failed_fits(curves):
        ax.plot(episode, max(_LEAST, bits), color=color, clip_on=False, **_FAILED)


def _margin(axis: ReturnAxis) -> float:
    """Inches that the labels of the returns need."""
    return 0.32 + 0.06 * max([4, *map(len, axis.labels)])


def _mark(ax: Axes, axis: ReturnAxis) -> None:
    """Set the ticks, and dot the optimum."""
    ax.set_yticks(axis.scale.place(np.array(axis.ticks, float)), axis.labels)
    ax.set_ylabel("Return")
    if axis.optimum is not None:
        ax.axhline(axis.scale.place(np.array([axis.optimum]))[0], color=_GREY, ls=":", lw=1)


def _with_optimum(keys: list[Labelled], axis: ReturnAxis) -> list[Labelled]:
    return [*keys, (Line2D([], [], color=_GREY, ls=":", lw=1), "optimum")] if axis.optimum is not None else keys


def _with_failed(keys: list[Labelled], panels: list[Panel]) -> list[Labelled]:
    return [*keys, (Line2D([], [], color=_GREY, **_FAILED), "failed fit")] if _bits_of_failed(panels) else keys


def _bits_of_failed(panels: list[Panel]) -> list[float]:
    return [bits for panel in panels for curves in panel.curves.values() for *_, bits in failed_fits(curves)]


def _key(results: Results, cell: str) -> Line2D:
    return Line2D([], [], color=cell_colour(results, cell), marker=_marker(results, cell), ms=4, mew=0)


def _marker(results: Results, cell: str) -> str:
    return _MARKERS[in_order([*CELLS, *(run.cell for run in results.runs)]).index(cell) % len(_MARKERS)]


def _note(panels: list[Panel], cells: list[str]) -> str:
    """How many seeds, and how the bits were measured."""
    counts = [len(panel.curves[cell]) for panel in panels for cell in cells if cell in panel.curves]
    seeds = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    spread = "One seed." if max(counts) == 1 else f"Mean of {seeds} seeds; bands from the least to the greatest."
    memory = "memory" if panels[0].memory == "hidden" else "whole memory"
    how = "; ".join(dict.fromkeys(f"{_PARTS[panel.part]}: {panel.instrument}" for panel in panels))
    histories = _histories([panel.epsilon for panel in panels])
    beneath = min(_bits_of_failed(panels), default=0.0) < _LEAST
    edge = f" Failed fits below {_LEAST:g} bits stand at the edge.".replace("-", "−") if beneath else ""
    note = f"{spread} Information of the {memory} and {how}{histories}.{edge}"
    return note.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _histories(epsilons: list[float]) -> str:
    if len(set(epsilons)) > 1:
        return "; histories of ε-greedy policies, returns of the greedy one"
    return f"; histories of ε = {epsilons[0]:g}" if epsilons[0] else ""


def _two_digits(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")


_LINES = {"solid": "-", "dash": "--", "dot": ":"}


def followed(charts: list[Chart]) -> Figure:
    """The charts of one environment on whether the belief is used, side by side."""
    cells = [trace for trace in charts[0].traces if trace["showlegend"] and trace["x"]]
    keys = [(Line2D([], [], color=trace["line"]["color"]), trace["name"]) for trace in cells]
    figure, edges = _page(
        charts[0].environment, keys, "; ".join(chart.note for chart in charts), height=2.6, width=_WIDTH
    )
    grid = figure.add_gridspec(1, len(charts), left=0.08, right=0.98, wspace=0.22, **edges)
    for place, chart in enumerate(charts):
        _draw_use(figure.add_subplot(grid[place]), chart)
    return figure


def _draw_use(ax: Axes, chart: Chart) -> None:
    """Lines by cell; each cell stands a little aside, so that bars do not hide each other."""
    traces = [trace for trace in chart.traces if trace["x"]]
    cells = list(dict.fromkeys(trace["name"] for trace in traces))
    ticks = list(dict.fromkeys(x for trace in traces for x in trace["x"]))
    for trace in traces:
        aside = 0.07 * (cells.index(trace["name"]) - (len(cells) - 1) / 2)
        bars = trace["error_y"]
        look = {"color": trace["line"]["color"], "ls": _LINES[trace["line"]["dash"]], "alpha": trace["opacity"]}
        ends = [bars["arrayminus"], bars["array"]] if bars["visible"] else None
        at = [ticks.index(x) + aside for x in trace["x"]]
        ax.errorbar(at, trace["y"], ends, marker="o", ms=2.5, elinewidth=0.8, **look)
    ax.set_xticks(range(len(ticks)), [x if isinstance(x, str) else f"{x:g}" for x in ticks])
    ax.set(xlabel=chart.layout["xaxis"]["title"]["text"], ylabel=chart.layout["yaxis"]["title"]["text"])
    ax.set_ylim(-0.03, 1.05)
