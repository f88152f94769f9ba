"""The pieces that charts are made of, as Plotly describes them: lines, bands, axes, and texts that stay texts.

Overlays are what may be laid over a chart: H(b), exact values, what the atoms bound proves, controls. Each kind has a
box in the page that shows or hides it, and an entry in the legends of the charts that have it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from beliefscope.paper import called
from beliefscope.report.style import ReturnAxis
from beliefscope.results import Results
from beliefscope.results.curves import Band, Panel, band

_DIGITS = 5
GREY = "#888888"
POINTS = 2  # so few are points: a line between the first and the last network would make up what lies between

Trace = dict[str, Any]


def with_band(
    cell: str, tint: str, each: Band, place: Callable[[np.ndarray], np.ndarray], *, unit: str = ""
) -> list[Trace]:
    """The mean over seeds, and the area between the least and the largest."""
    if not len(each.mean):
        return []
    text = f"{called(cell)}: %{{customdata:.4g}} {unit}<extra></extra>"
    mean = drawn(each.episode, place(each.mean), "mean", cell, {"color": tint, "width": 2.5}, text)
    mean |= {"customdata": numbers(each.mean), "showlegend": True}
    if len(each.mean) <= POINTS:
        return [mean | {"mode": "markers", "marker": {"color": tint, "size": 9}, "error_y": _reach(each, place)}]
    edges = np.concatenate([place(each.high), place(each.low)[::-1]])
    area = drawn(np.concatenate([each.episode, each.episode[::-1]]), edges, "band", cell, {"width": 0}, "")
    area |= {"fill": "toself", "fillcolor": _faint(tint), "hoverinfo": "skip", "showlegend": False}
    return [area, mean]


def _reach(each: Band, place: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """From the least seed to the largest, as bars at points."""
    above, below = place(each.high) - place(each.mean), place(each.mean) - place(each.low)
    return {"type": "data", "symmetric": False, "array": numbers(above), "arrayminus": numbers(below), "width": 4}


def seed_curve(cell: str, tint: str, seed: int, episode: np.ndarray, values: np.ndarray) -> Trace:
    line = {"color": tint, "width": 1}
    hover = f"{called(cell)}, seed {seed}<extra></extra>"
    return drawn(episode, values, "seed", cell, line, hover, visible=False)


def drawn(x: Any, y: Any, kind: str, cell: str, line: dict, hover: str, *, visible: bool = True) -> Trace:
    """A line through points; the traces of a cell share a group in the legend."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(x),
        "y": numbers(y),
        "name": literal(called(cell)),
        "legendgroup": literal(cell),
        "line": line,
        "hovertemplate": literal(hover, markup=True),
        "meta": {"kind": kind},
        "visible": visible,
        "showlegend": False,
    }


def legend_entry(kind: str, name: str, dash: str, *, visible: bool) -> Trace:
    """A trace of nothing, for the legend."""
    line = {"color": GREY, "dash": dash, "width": 1.5}
    entry = drawn([], [], kind, kind, line, "", visible=visible)
    nothing = {"x": [None], "y": [None], "hoverinfo": "skip", "showlegend": True}
    return entry | nothing | {"name": name, "legendgroup": f"every {kind}", "meta": {"kind": kind, "legend": True}}


def axes(x: str, y: str) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}, "hovermode": "x unified"}


def return_ticks(axis: ReturnAxis) -> dict[str, Any]:
    """The ticks and the range, which the charts of an environment share."""
    if axis.ends is None:
        return {}
    low, high = axis.scale.place(np.array(axis.ends))
    room = 0.06 * (high - low) or 0.5
    ticks = {"tickvals": numbers(axis.scale.place(np.array(axis.ticks, float))), "ticktext": axis.labels}
    return {**ticks, "range": numbers([low - room, high + room])}


def level(place: float) -> dict[str, Any]:
    line = {"dash": "dot", "width": 1.5}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": place, "y1": place, "line": line}


def label(place: float, text: str) -> dict[str, Any]:
    at = {"xref": "paper", "x": 0.01, "y": place, "xanchor": "left", "yanchor": "bottom", "showarrow": False}
    return {**at, "text": text, "font": {"size": 11}}


def _faint(tint: str) -> str:
    red, green, blue = (int(tint[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.18)"


def ramp(share: float) -> str:
    """From blue (0, greedy) to orange (1, random)."""
    ends = ((47, 127, 193), (213, 94, 0))
    return f"rgb({', '.join(str(round(a + share * (b - a))) for a, b in zip(*ends, strict=True))})"


def numbers(values: list[float] | np.ndarray) -> list[float | int | None]:
    """For JSON: five digits, null for what is not finite."""
    found = [float(value) for value in np.asarray(values, float)]
    return [(int(v) if v == int(v) else float(f"{v:.{_DIGITS}g}")) if math.isfinite(v) else None for v in found]


def literal(text: str, *, markup: bool = False) -> str:
    """Plotly reads a few tags in texts: what a study calls itself must appear as text."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    return safe.replace("&lt;extra>&lt;/extra>", "<extra></extra>") if markup else safe


_FEW = 12  # checkpoints, of which each gets a mark
# What may be laid over the information's axis: the column, its name, its name in the legend, its dash.
OVERLAYS = {
    "own": ("sufficiency on the policy's own histories", "own histories", "dash"),
    "failed": ("fits that failed", "", ""),
    "atoms_bits": ("what the atoms bound proves", "atoms bound", "solid"),
    "entropy": ("H(b): the belief's entropy", "H(b)", "dash"),
    "control_time": ("I(t; b): what the time alone says", "I(t; b)", "dot"),
    "given_time": ("I(h; b | t): given the time", "I(h; b | t)", "dashdot"),
    "control_untrained": ("the untrained cell on these histories", "untrained cell", "longdash"),
    "control_observation": ("the last observation alone", "last observation", "dot"),
    "control_recent": ("the last 8 actions and observations", "last 8 steps", "longdashdot"),
    "control_shuffled": ("shuffled pairs (truth: 0)", "shuffled pairs", "dot"),
    "exact_0.1": ("exact I(h + σξ; b), σ = 0.1", "exact, σ = 0.1", "longdashdot"),
    "exact_0.01": ("exact I(h + σξ; b), σ = 0.01", "exact, σ = 0.01", "dot"),
    "exact_0.001": ("exact I(h + σξ; b), σ = 0.001", "exact, σ = 0.001", "longdash"),
    "whole": ("all that is carried: (h, c) of the LSTM", "(h, c)", "dash"),
}
_SYMBOLS = {"entropy": "line-ew-open", "atoms_bits": "triangle-up-open"}
SHOWN = ("own", "failed", "entropy", "exact_0.01", "atoms_bits")  # at first


def overlays(results: Results, panel: Panel, cell: str, tint: str) -> list[Trace]:
    """All that there is to be laid over the information of a cell."""
    found = []
    for kind, (name, _, dash) in OVERLAYS.items():
        if kind in ("own", "failed"):  # in other charts, and marks
            continue
        each = _elsewhere(results, panel, cell, kind) or band(panel.curves[cell], kind)
        if len(each.mean):
            line = {"color": tint, "dash": dash, "width": 1.5}
            hover = f"{called(cell)}, {name}: %{{y:.2f}} bits<extra></extra>"
            style = {"mode": _mode(len(each.mean)), "marker": {"size": 7, "symbol": _SYMBOLS.get(kind, "diamond-open")}}
            found.append(drawn(each.episode, each.mean, kind, cell, line, hover, visible=kind in SHOWN) | style)
    return found


def _mode(number: int) -> str:
    """Between the first and the last network nothing is known: two points make no line."""
    return "markers" if number <= POINTS else "lines+markers" if number <= _FEW else "lines"


def _elsewhere(results: Results, panel: Panel, cell: str, kind: str) -> Band | None:
    """What other panels have; None for what a panel has itself."""
    if kind == "whole":
        return _whole(results, panel, cell)
    if kind == "atoms_bits":
        return band((), kind) if panel.instrument.estimator == "atoms" else _proven(results, panel, cell)
    if kind.startswith("exact_") and panel.instrument.estimator == "atoms":  # the truth is that of every instrument
        others = results.panels_of(panel.environment, part=panel.part, epsilon=panel.epsilon, memory=panel.memory)
        return next((each for other in others if len((each := band(other.curves.get(cell, ()), kind)).mean)), None)
    return None


def _proven(results: Results, panel: Panel, cell: str) -> Band:
    """What a classifier of the beliefs proves: a bound, whatever instrument it is laid over."""
    for other in results.shares_of(panel.environment, parts=(panel.part,)):
        if other.epsilon == panel.epsilon and panel.memory == "hidden" and cell in other.curves:
            return band(other.curves[cell], "atoms_bits")
    return band((), "atoms_bits")


def _whole(results: Results, panel: Panel, cell: str) -> Band:
    """The information of all that the cell carries, measured by the same instrument."""
    for other in results.panels_of(panel.environment, part=panel.part, epsilon=panel.epsilon, memory="whole"):
        if other.instrument == panel.instrument and cell in other.curves:
            return band(other.curves[cell], "bits")
    return band((), "bits")


def legend(traces: list[Trace]) -> list[Trace]:
    """An entry for each kind of overlay: its curves have the colours of the cells, and their dash tells what it is."""
    first = {trace["meta"]["kind"]: trace for trace in reversed(traces)}
    return [
        legend_entry(kind, name, dash, visible=kind in SHOWN)
        | {"mode": first[kind]["mode"], "marker": first[kind].get("marker", {}) | {"color": GREY}}
        for kind, (_, name, dash) in OVERLAYS.items()
        if kind in first and name
    ]
