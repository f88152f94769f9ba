"""The page of an audit: numbers, curves and the belief viewer in one file, which opens with the network off.

It takes plain records, and shares scripts, styles and the viewer with the report of a study.
"""

from typing import Any

import numpy as np

from beliefscope.report.page import json_in_a_page, read_asset
from beliefscope.report.plotly import axes, numbers
from beliefscope.report.use import agent_charts
from beliefscope.report.viewer import StoredTrace, viewer_data

_BLUE, _ORANGE = "#2f7fc1", "#d55e00"


def audit_page(record: dict[str, Any], *, pomdp: dict[str, Any], traces: dict[str, dict[str, np.ndarray]]) -> str:
    """The whole document; `traces` are those of agents by name, along the same episodes."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    stored = [
        StoredTrace(record["environment"], name, 0, "as audited", pomdp, arrays) for name, arrays in traces.items()
    ]
    viewer, charts = viewer_data(stored), _charts(record)
    of_use = [chart._asdict() for chart in agent_charts([(name, found) for name, _, found in record["use"]], _BLUE)]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = [{name: chart[name] for name in ("id", "traces", "layout")} for chart in (*charts, *of_use)]
    return environment.from_string(read_asset("audit.html")).render(
        title=record["title"],
        num_samples=record["num_samples"],
        environment=record["environment"],
        rows=record["rows"],
        warnings=record["warnings"],
        calibration=record["calibration"],
        use=[(name, lines) for name, lines, _ in record["use"]],
        use_charts=of_use,
        viewer=viewer["environments"],
        charts=charts,
        style=Markup(read_asset("page.css") + read_asset("viewer.css")),
        data=Markup(json_in_a_page({"charts": shown, "viewer": viewer})),
        plotly=Markup(read_asset("plotly-basic.min.js")),
        script=Markup("".join(map(read_asset, ("viewer_line.js", "viewer_scene.js", "viewer.js", "page.js")))),
    )


def _charts(record: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    steps = [(time, share) for time, share, _, _ in record["by_step"] if share is not None]
    if steps:
        x, shares = zip(*steps, strict=True)
        found.append(
            _chart(
                "by-step",
                "Sufficiency at each step",
                [*_with_interval("memory", x, shares, _BLUE)],
                axes("step t", "sufficiency given the time"),
                "By one decoder for all steps, on episodes that it was not fitted to.",
            )
        )
    if record["checkpoints"]:
        at, returns, own, last = zip(*record["checkpoints"], strict=True)
        curves = [
            *_with_interval("own histories", at, own, _ORANGE),
            *_with_interval("the last one's histories", at, last, _BLUE),
        ]
        layout = axes("training", "sufficiency given the time")
        note = "Only numbers on the last one's histories can be compared through training."
        found.append(_chart("checkpoints", "Sufficiency through training", curves, layout, note))
        line = _line("return", at, returns, _BLUE)
        found.append(_chart("returns", "Return through training", [line], axes("training", "mean return"), ""))
    return found


def _chart(id: str, title: str, traces: list[dict[str, Any]], layout: dict[str, Any], note: str) -> dict[str, Any]:
    return {"id": id, "title": title, "traces": traces, "layout": layout, "note": note}


def _with_interval(name: str, x: Any, shares: Any, tint: str) -> list[dict[str, Any]]:
    """A line of shares, and dotted ones at the ends of their intervals."""
    known = [(place, share) for place, share in zip(x, shares, strict=True) if share is not None]
    places = [place for place, _ in known]
    ends = [
        _line(f"{name}, {end} end", places, [share[index] for _, share in known], tint, dash="dot")
        for index, end in ((1, "lower"), (2, "upper"))
    ]
    return [_line(name, places, [share[0] for _, share in known], tint, legend=True), *ends]


def _line(name: str, x: Any, y: Any, tint: str, *, dash: str = "solid", legend: bool = False) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if dash == "solid" else "lines",
        "x": numbers(np.asarray(x, float)),
        "y": numbers(np.asarray(y, float)),
        "name": name,
        "line": {"color": tint, "width": 2.5 if dash == "solid" else 1, "dash": dash},
        "meta": {"kind": "mean"},
        "showlegend": legend,
    }
