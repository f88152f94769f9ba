"""The interactive charts of the page, as plain Plotly descriptions: dicts that become JSON.

`charts(results)` gives them in the order of the page. What a trace is stands in its `meta.kind`, so that the page can
show and hide all traces of a kind at once: the mean over seeds, its band, every seed's own curve, H(b), the controls.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from beliefscope.paper import called
from beliefscope.report.plotly import (
    OVERLAYS,
    Trace,
    axes,
    drawn,
    label,
    legend,
    level,
    literal,
    numbers,
    overlays,
    ramp,
    return_ticks,
    seed_curve,
    with_band,
)
from beliefscope.report.style import ReturnAxis, cell_colour, return_axis
from beliefscope.results import Results
from beliefscope.results.correlations import points
from beliefscope.results.curves import Band, Curve, Panel, are_pair, band, failed_fits, return_band

_SHARE_BARS = {
    "sufficiency": "memory",
    "sufficiency_untrained": "untrained cell",
    "sufficiency_observation": "last observation",
    "sufficiency_recent": "last 8 steps",
    "sufficiency_shuffled": "shuffled",
}
_BARS = {
    "bits": "I(h; b)",
    "given_time": "I(h; b | t)",
    "control_time": "I(t; b)",
    "control_untrained": "untrained cell",
    "control_observation": "last observation",
    "control_recent": "last 8 steps",
}
_ERROR = "KL(b ‖ decoded) in bits"
_ERROR_NOTE = (
    "held-out pairs; at 0 the decoder reads the belief without error. An estimator of bits may find less: its critic "
    "learns from pairs what the decoder is told"
)


class Chart(NamedTuple):
    """One chart: where it stands, and what it shows."""

    id: str
    environment: str
    title: str
    note: str  # how the numbers were measured
    traces: list[Trace]
    layout: dict[str, Any]


def charts(results: Results) -> list[Chart]:
    """All that the results allow."""
    found: list[Chart] = []
    for environment in results.environments:
        for make in (_shares, _learning, _irrelevant, _epsilons, _share_controls, _controls, _decoder):
            found += make(results, environment)
    found = [chart for chart in found if _shows_anything(chart)]
    return [chart._replace(id=f"chart-{number}") for number, chart in enumerate(found)]


def _shows_anything(chart: Chart) -> bool:
    return any(value is not None for trace in chart.traces for value in trace["y"])


def _shares(results: Results, environment: str) -> list[Chart]:
    """Sufficiency given the time: on the histories of the run's last policy, and on the policy's own."""
    found = []
    for panel in results.shares_of(environment, parts=("belief", "relevant", "irrelevant")):
        traces: list[Trace] = []
        for cell, curves in panel.curves.items():
            tint, last, own = cell_colour(results, cell), band(curves, "sufficiency_last"), band(curves, "sufficiency")
            traces += with_band(cell, tint, last, lambda values: values)
            traces += [
                seed_curve(cell, tint, curve.seed, curve.episode, curve.values["sufficiency_last"]) for curve in curves
            ]
            hover = f"{called(cell)}, own histories: %{{y:.2f}}<extra></extra>"
            line = {"color": tint, "dash": OVERLAYS["own"][2], "width": 1.5}
            traces.append(drawn(own.episode, own.mean, "own", cell, line, hover))
        traces += legend(traces)
        layout = axes("episodes of training", "share of what the belief knows")
        layout["yaxis"]["range"] = [-0.03, 1.05]
        note = f"{panel.instrument}; given the time; on the histories of the run's last policy, dashed on its own"
        of = "" if panel.part in ("belief", "relevant") else ", irrelevant variables"
        found.append(Chart("", environment, f"Sufficiency{of}", note, traces, layout))
    return found


def _share_controls(results: Results, environment: str) -> list[Chart]:
    """The sufficiency of what else may tell the state, at the last checkpoint that has the controls."""
    found = []
    for panel in results.shares_of(environment):
        note = f"{panel.instrument}; the policy's own histories; what the time tells is left out of all of them"
        title = "Sufficiency, given the time, of what else may tell the state"
        chart = _bars(results, panel, _SHARE_BARS, "sufficiency_untrained", "share, last checkpoint", ":.2f}")
        found.append(Chart("", environment, title, note, *chart))
    return found


def _learning(results: Results, environment: str) -> list[Chart]:
    """Return, information, and the one against the other."""
    axis = return_axis(results, environment)
    found = [_returns(results, environment, axis)] if results.cells_of(environment) else []
    for panel in results.panels_of(environment):
        found += [_information(results, panel), _scatter(results, panel, axis)]
    return found


def _returns(results: Results, environment: str, axis: ReturnAxis) -> Chart:
    traces: list[Trace] = []
    for cell in results.cells_of(environment):
        curves = results.returns.get((environment, cell), ())
        traces += with_band(cell, cell_colour(results, cell), return_band(curves), axis.scale.place)
        traces += [
            seed_curve(cell, cell_colour(results, cell), curve.seed, curve.episode, axis.scale.place(curve.values))
            for curve in curves
        ]
    layout = axes("episodes of training", "return Ĵ")
    layout["yaxis"] |= return_ticks(axis)
    if axis.optimum is not None:
        place = float(axis.scale.place(np.array([axis.optimum]))[0])
        layout["shapes"] = [level(place)]
        layout["annotations"] = [label(place, f"maximal return {axis.optimum:.4g}")]
    note = "mean over seeds; the band spans the least and the largest"
    return Chart("", environment, "Return", note, traces, layout)


def _information(results: Results, panel: Panel) -> Chart:
    traces: list[Trace] = []
    for cell, curves in panel.curves.items():
        traces += with_band(cell, cell_colour(results, cell), band(curves, "bits"), lambda values: values, unit="bits")
        traces += [
            seed_curve(cell, cell_colour(results, cell), curve.seed, curve.episode, curve.values["bits"])
            for curve in curves
        ]
        traces += overlays(results, panel, cell, cell_colour(results, cell))
        traces += _failed(cell, cell_colour(results, cell), curves)
    layout = axes("episodes of training", f"Î(h; {_symbol(panel)}) in bits")
    layout["yaxis"]["rangemode"] = "tozero"
    note = str(panel.instrument) + (
        "; at least so many bits are there" if panel.instrument.estimator == "atoms" else ""
    )
    return Chart("", panel.environment, "Information", note, [*traces, *legend(traces)], layout)


def _failed(cell: str, tint: str, curves: tuple[Curve, ...]) -> list[Trace]:
    """A mark at each number whose fit failed; it is counted in every mean as it is."""
    found = failed_fits(curves)
    if not found:
        return []
    texts = [f"{called(cell)}, seed {curve.seed}: {curve.warnings[episode]}" for curve, episode, _ in found]
    x, y = np.array([(episode, bits) for _, episode, bits in found]).T
    trace = drawn(x, y, "failed", cell, {}, "%{text}<extra></extra>")
    marker = {"color": tint, "size": 9, "symbol": "x-thin-open", "line": {"width": 2}}
    return [trace | {"mode": "markers", "marker": marker, "text": [literal(text) for text in texts]}]


def _scatter(results: Results, panel: Panel, axis: ReturnAxis) -> Chart:
    traces = []
    for cell, curves in panel.curves.items():
        found, _ = points(curves)
        if not len(found.run):
            continue
        seeds = [curve.seed for curve in curves]
        texts = [
            f"{called(cell)}, seed {seeds[run]}, episode {episode}: Ĵ = {value:.4g}, Î = {bits:.2f} bits"
            for run, episode, value, bits in zip(found.run, found.checkpoint, found.returns, found.bits, strict=True)
        ]
        marker = {"color": cell_colour(results, cell), "size": 7, "opacity": 0.65}
        trace = drawn(found.bits, axis.scale.place(found.returns), "point", cell, {}, "%{text}<extra></extra>")
        traces.append(
            trace
            | {"mode": "markers", "marker": marker, "text": [literal(text) for text in texts], "showlegend": False}
        )
    layout = axes(f"Î(h; {_symbol(panel)}) in bits", "return Ĵ")
    layout["hovermode"] = "closest"
    layout["yaxis"] |= return_ticks(axis)
    return Chart("", panel.environment, "Return against information", str(panel.instrument), traces, layout)


def _irrelevant(results: Results, environment: str) -> list[Chart]:
    """What of the relevant and of the irrelevant belief is in the memory."""
    found = []
    for panel in results.panels_of(environment, part="relevant"):
        others = [each for each in results.panels_of(environment, part="irrelevant") if are_pair(panel, each)]
        if not others:
            continue
        traces: list[Trace] = []
        for part, dash, each in [("relevant", "solid", panel), *(("irrelevant", "dash", other) for other in others)]:
            for cell, curves in each.curves.items():
                mean = band(curves, "bits")
                line = {"color": cell_colour(results, cell), "dash": dash, "width": 2}
                hover = f"{called(cell)}, {part}: %{{y:.2f}} bits<extra></extra>"
                trace = drawn(mean.episode, mean.mean, part, cell, line, hover)
                traces.append(trace | {"showlegend": part == "relevant"})
        note = "; ".join(dict.fromkeys(str(each.instrument) for each in (panel, *others)))
        layout = axes("episodes of training", "Î in bits")
        title = "Relevant (solid) and irrelevant (dashed) belief"
        found.append(Chart("", environment, title, note, traces, layout))
    return found


def _epsilons(results: Results, environment: str) -> list[Chart]:
    """Information on histories of ε-greedy policies."""
    epsilons = sorted({panel.epsilon for panel in results.panels if panel.environment == environment})
    if len(epsilons) < 2:
        return []
    found: dict[tuple[str, str], list[Trace]] = {}
    for place, epsilon in enumerate(epsilons):
        for panel in results.panels_of(environment, epsilon=epsilon):
            for cell, curves in panel.curves.items():
                mean = band(curves, "bits")
                line = {"color": ramp(place / (len(epsilons) - 1)), "width": 2}
                hover = f"{called(cell)}, ε = {epsilon:g}: %{{y:.2f}} bits<extra></extra>"
                trace = drawn(mean.episode, mean.mean, "epsilon", f"{cell} {epsilon}", line, hover)
                trace |= {"name": f"ε = {epsilon:g}", "showlegend": True}
                found.setdefault((cell, str(panel.instrument)), []).append(trace)
    layout = axes("episodes of training", "Î(h; b) in bits")
    return [
        Chart("", environment, f"Information under ε-greedy histories, {called(cell)}", note, traces, layout)
        for (cell, note), traces in found.items()
        if len(traces) > 1
    ]


def _controls(results: Results, environment: str) -> list[Chart]:
    """What else would say as much of the belief, at the last checkpoint that has the controls."""
    found = []
    for panel in results.panels_of(environment):
        title = "What else says as much of the belief"
        note = f"{panel.instrument}; I(h; b | t) = I(h, t; b) − I(t; b) is a difference of two estimates"
        chart = _bars(results, panel, _BARS, "control_time", "bits, last checkpoint", ":.2f} bits")
        found.append(Chart("", environment, title, note, *chart))
    return found


def _bars(
    results: Results, panel: Panel, columns: dict[str, str], present: str, axis: str, form: str
) -> tuple[list[Trace], dict[str, Any]]:
    """The columns of each cell as bars, at the last checkpoint that has the column `present`."""
    traces: list[Trace] = []
    for cell, curves in panel.curves.items():
        means = [_last(curves, column, present) for column in columns]
        if not all(map(math.isnan, means[1:])):
            hover = literal(f"{called(cell)}, %{{y}}: %{{x{form}<extra></extra>", markup=True)
            bar = {"type": "bar", "orientation": "h", "x": numbers(means), "y": list(columns.values())}
            about = {"name": literal(called(cell)), "meta": {"kind": "bar"}, "hovertemplate": hover}
            traces.append({**bar, **about, "marker": {"color": cell_colour(results, cell)}})
    layout = axes(axis, "")
    layout |= {"barmode": "group", "hovermode": "closest"}
    layout["xaxis"] |= {"zeroline": True}
    layout["yaxis"] |= {"autorange": "reversed"}  # the first on top
    return traces, layout


def _decoder(results: Results, environment: str) -> list[Chart]:
    """How far the belief that an MLP or a linear layer reads off the memory is from the true one."""
    found = []
    for panel in results.panels_of(environment):
        episodes = {int(episode) for each in _errors(panel, "MLP").values() for episode in each.episode}
        if len(episodes) == 1:
            found.append(_decoder_once(results, panel, *episodes))
            continue
        traces: list[Trace] = []
        for probe, dash in (("MLP", "solid"), ("linear", "dot")):
            for cell, mean in _errors(panel, probe).items():
                line = {"color": cell_colour(results, cell), "dash": dash, "width": 2}
                hover = f"{called(cell)}, {probe}: %{{y:.2f}} bits<extra></extra>"
                trace = drawn(mean.episode, mean.mean, f"decoder {probe}", cell, line, hover)
                traces.append(trace | {"mode": "lines+markers", "showlegend": probe == "MLP"})
        layout = axes("episodes of training", _ERROR)
        layout["yaxis"]["rangemode"] = "tozero"
        title = "Decoder error: MLP (solid), linear (dotted)"
        found.append(Chart("", environment, title, _ERROR_NOTE, traces, layout))
    return found


def _decoder_once(results: Results, panel: Panel, episode: int) -> Chart:
    """Bars, where decoders were fitted at one checkpoint only."""
    traces: list[Trace] = []
    for probe, opacity in (("MLP", 1.0), ("linear", 0.4)):
        errors = _errors(panel, probe)
        bar = {"type": "bar", "x": [literal(called(cell)) for cell in errors]}
        bar |= {"y": numbers([each.mean[0] for each in errors.values()]), "name": probe, "meta": {"kind": "bar"}}
        marker = {"color": [cell_colour(results, cell) for cell in errors], "opacity": opacity}
        traces.append(bar | {"marker": marker, "hovertemplate": f"%{{x}}, {probe}: %{{y:.2f}} bits<extra></extra>"})
    layout = axes(f"after {episode:,} episodes of training", _ERROR)
    layout |= {"barmode": "group", "hovermode": "closest", "showlegend": False}
    title = "Decoder error: MLP (full colour), linear (pale)"
    return Chart("", panel.environment, title, _ERROR_NOTE, traces, layout)


def _errors(panel: Panel, probe: str) -> dict[str, Band]:
    """Of each cell that this probe was fitted to."""
    found = {cell: band(curves, f"{probe}_kl") for cell, curves in panel.curves.items()}
    return {cell: each for cell, each in found.items() if len(each.mean)}


def _last(curves: tuple[Curve, ...], column: str, present: str) -> float:
    """The mean over seeds at the last checkpoint at which the column `present` was measured."""
    each = band(
        [
            curve._replace(values={column: np.where(np.isfinite(curve.values[present]), curve.values[column], np.nan)})
            for curve in curves
        ],
        column,
    )
    return float(each.mean[-1]) if len(each.mean) else math.nan


def _symbol(panel: Panel) -> str:
    return "b" if panel.part == "belief" else f"{panel.part} b"
