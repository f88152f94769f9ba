"""What may be laid over a chart of the page: H(b), exact values, what the atoms bound proves, controls.

Each kind has a box in the page that shows or hides it, and an entry in the legends of the charts that have it.
"""

from beliefscope.report.plotly import GREY, POINTS, Trace, called, drawn, legend_entry
from beliefscope.results import Results
from beliefscope.results.curves import Band, Panel, band

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
