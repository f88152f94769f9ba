"""`report.html`: one file with everything in it, which opens from disk with the network off.

`page(results, traces=…, figures=…)` gives the text of a study's page, `audit_page(record, …)` that of an audit. Names
and sentences pass through Jinja's escaping, data are JSON in which no tag can end; the scripts and styles are those
beside the template. One of them is plotly.js 4.1.1, the bundle of scatter and bar charts (`plotly.js-basic-dist-min` of
npm, MIT licence beside it), byte for byte.

Two tables of a study are made here, as rows of plain values: hyperparameters, and the inventory of runs.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from beliefscope.claims import ledger
from beliefscope.claims.verdict import Verdict, known_numbers
from beliefscope.paper import AGGREGATED, DRQN, HIKE_NOISE, MINE, called
from beliefscope.report.charts import Chart, charts
from beliefscope.report.findings import findings
from beliefscope.report.plotly import OVERLAYS, SHOWN, axes, numbers
from beliefscope.report.use import Mean, agent_charts, use_charts, use_rows
from beliefscope.report.viewer import StoredTrace, viewer_data
from beliefscope.results import Results
from beliefscope.results.correlations import Correlated, Correlation
from beliefscope.results.curves import Calibrated
from beliefscope.store.study_folder import count_states


class Hyperparameter(NamedTuple):
    """A setting: what the study has, and what the paper has."""

    of: str  # DRQN, MINE or Mountain Hike
    symbol: str
    meaning: str
    values: str
    printed: str
    differs: bool


class Inventory(NamedTuple):
    """One run."""

    run: str
    environment: str
    cell: str
    seed: int
    state: str
    done: int  # of its pieces
    pieces: int
    final_return: float | None
    final_bits: float | None  # of the belief, or of its relevant part, under the greedy policy


def hyperparameters(results: Results) -> list[Hyperparameter]:
    """Of the learners, of the paper's estimator and of the Mountain Hike, beside the paper's."""
    learners = [spec["learner"] for spec in results.specs.values()]
    instruments = [panel.instrument._asdict() for panel in results.panels if panel.instrument.epochs is not None]
    pomdps = [spec["pomdp"].get("pomdp", spec["pomdp"]) for spec in results.specs.values()]
    hikes = [pomdp for pomdp in pomdps if pomdp["class"] == "MountainHike"]
    tables = {"DRQN": (DRQN, learners), "MINE": (MINE, instruments), "Mountain Hike": (HIKE_NOISE, hikes)}
    rows = []
    for of, (printed, found) in tables.items():
        for name, (symbol, value, meaning) in printed.items():
            values = sorted({each[name] for each in found if isinstance(each.get(name), int | float)})
            if values:
                text = ", ".join(f"{each:g}" for each in values)
                rows.append(Hyperparameter(of, symbol, meaning, text, f"{value:g}", values != [value]))
    return rows


def inventory(results: Results) -> list[Inventory]:
    """Every run of the study, begun or not."""
    bits = _final_bits(results)
    returns = {each.run: each for curves in results.returns.values() for each in curves}
    rows = []
    for run in results.runs:
        states = Counter(results.states[piece.name] for piece in run.pieces)
        last = returns[run.id].values[-1] if run.id in returns and len(returns[run.id].values) else None
        worst = (name for name in ("diverged", "failed", "running", "missing", "done") if states[name])
        state = next(worst, "missing")
        final = None if last is None else float(last)
        about = (run.id, run.environment, called(run.cell), run.seed)
        rows.append(Inventory(*about, state, states["done"], len(run.pieces), final, bits.get(run.id)))
    return rows


def _final_bits(results: Results) -> dict[str, float]:
    """At the last checkpoint measured, by run, by the first instrument that gave a number there."""
    found: dict[str, float] = {}
    for environment in results.environments:
        for panel in results.panels_of(environment):
            for curve in (curve for each in panel.curves.values() for curve in each):
                if math.isfinite(last := float(curve.values["bits"][-1])):
                    found.setdefault(curve.run, last)
    return found


_FILES = files("beliefscope.report") / "assets"
_OPEN = "not enough data"
_BLUE, _ORANGE = "#2f7fc1", "#d55e00"  # of an audit's curves
_FAILED = -0.5  # bits: further below 0 than an estimate of nothing comes by chance


class Group(NamedTuple):
    """The charts of one environment, and the layers that can be switched in them."""

    id: str
    environment: str
    layers: list[tuple[str, str, bool]]  # kind, name, shown at first
    charts: list[dict[str, Any]]
    calibrations: list[Calibrated]


def page(results: Results, *, traces: Iterable[StoredTrace], figures: list[str]) -> str:
    """The whole document."""
    from markupsafe import Markup

    drawn, viewer, correlated = charts(results), viewer_data(traces), results.correlations
    of_use = use_charts(results)
    verdicts = ledger(results.panels, optimum=results.optimum)
    return _rendered(
        "template.html",
        [chart._asdict() for chart in (*drawn, *of_use)],
        viewer,
        results=results,
        progress=count_states(results.states),
        instruments=list(dict.fromkeys(str(panel.instrument) for panel in (*results.shares, *results.panels))),
        instruments_of=lambda environment: {row.instrument for row in correlated if row.environment == environment},
        missing=what_is_missing(results),
        findings=findings(results),
        verdicts=[verdict for verdict in verdicts if verdict.verdict != _OPEN],
        open_claims=_open_claims(verdicts),
        known_numbers=known_numbers,
        groups=_groups(drawn, correlated, results),
        use_charts=of_use,
        use_rows=use_rows(results),
        correlations=correlated,
        aggregated=AGGREGATED,
        inventory=inventory(results),
        hyperparameters=hyperparameters(results),
        calls=results.calls,
        figures=figures,
        coefficient=lambda found: Markup(_coefficient(found)),
        number=lambda value, digits: Markup(_number(value, digits)),
    )


def what_is_missing(results: Results) -> list[str]:
    """Sentences for a study that is not finished, or in which something failed."""
    states = list(results.states.values())
    lines = []
    left = [state for state in states if state in ("missing", "running")]
    if left:
        lines.append(
            f"This study is not finished: {len(left)} of its {len(states)} pieces are missing. "
            "Run it again to go on, then make the report again."
        )
    if results.damaged:
        verb = "record is" if len(results.damaged) == 1 else "records are"
        lines.append(
            f"{len(results.damaged)} {verb} damaged and left out of every number. beliefscope run makes them again."
        )
    if results.failures:
        verb = "piece has failed and is" if len(results.failures) == 1 else "pieces have failed and are"
        lines.append(f"{len(results.failures)} {verb} left out of every number: see Runs.")
    lines += [
        f"{name}: nothing has been measured yet." for name in results.environments if not _measured(results, name)
    ]
    failed = _failed_fits(results)
    if failed:
        verb = "estimate is" if failed == 1 else "estimates are"
        lines.append(
            f"{failed} {verb} below −{-_FAILED} bits, controls included. Information is never below 0: there a fit has "
            "failed. Such numbers are shown and counted as they are."
        )
    return lines


def _failed_fits(results: Results) -> int:
    curves = (curve for panel in results.panels for each in panel.curves.values() for curve in each)
    found = (
        values for curve in curves for name, values in curve.values.items() if name.startswith(("bits", "control_"))
    )
    return sum(int(np.sum(values < _FAILED)) for values in found)


def _measured(results: Results, environment: str) -> bool:
    intervened = any(run.environment == environment for run, _ in results.interventions)
    return intervened or any(panel.environment == environment for panel in (*results.panels, *results.shares))


def _open_claims(verdicts: list[Verdict]) -> str:
    """One line on the claims that these results cannot judge."""
    number = sum(verdict.verdict == _OPEN for verdict in verdicts)
    if not number:
        return ""
    which = "the paper's" if number == len(verdicts) else "its other"
    return (
        f"These results do not judge {which} {number} claims: a verdict needs the paper's environments at full scale "
        "with at least four seeds. The command beliefscope claims prints each claim, its rule and its numbers."
    )


def _groups(drawn: list[Chart], correlated: list[Correlated], results: Results) -> list[Group]:
    groups = []
    for number, environment in enumerate(dict.fromkeys(chart.environment for chart in drawn)):
        here = [chart for chart in drawn if chart.environment == environment]
        kinds = {trace["meta"]["kind"] for chart in here for trace in chart.traces}
        layers = [("seed", "every seed's own curve", False)] if "seed" in kinds else []
        layers += [(kind, name, kind in SHOWN) for kind, (name, _, _) in OVERLAYS.items() if kind in kinds]
        shown = [{**chart._asdict(), "summary": _coefficients(chart, correlated)} for chart in here]
        known = [each for each in results.calibrations if each.environment == environment]
        groups.append(Group(f"environment-{number}", environment, layers, shown, known))
    return groups


def _coefficients(chart: Chart, correlated: list[Correlated]) -> str:
    """Beneath a scatter: both coefficients over all cells."""
    if chart.title != "Return against information":
        return ""
    for row in correlated:
        if (row.environment, row.instrument, row.cell) == (chart.environment, chart.note, AGGREGATED):
            return f"Pearson {_with_interval(row.pearson)}, Spearman {_with_interval(row.spearman)}"
    return ""


def _with_interval(found: Correlation) -> str:
    if math.isnan(found.value):
        return "not defined"
    return " ".join([_shown(found.value, 2), *_interval(found)])


def _interval(found: Correlation | Mean) -> list[str]:
    return [] if math.isnan(found.low) else [f"[{_shown(found.low, 2)}, {_shown(found.high, 2)}]"]


def _coefficient(found: Correlation | Mean) -> str:
    if math.isnan(found.value):
        return '<td class="number" data-value="">–</td>'
    parts = [_shown(found.value, 2), *(f"<small>{interval}</small>" for interval in _interval(found))]
    return f'<td class="number" data-value="{found.value:.6f}">{" ".join(parts)}</td>'


def _number(value: float | int | None, digits: int) -> str:
    if value is None or not math.isfinite(value):
        return '<td class="number" data-value="">–</td>'
    return f'<td class="number" data-value="{value!r}">{_shown(value, digits)}</td>'


def _shown(value: float | int, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _rendered(template: str, drawn: list[dict[str, Any]], viewer: dict[str, Any], **values: Any) -> str:
    """A template with these values, the charts' and the viewer's data, and the styles and scripts of every page."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = [{name: chart[name] for name in ("id", "traces", "layout")} for chart in drawn]
    return environment.from_string(_read_asset(template)).render(
        **values,
        viewer=viewer["environments"],
        style=Markup(_read_asset("page.css") + _read_asset("viewer.css")),
        data=Markup(_json_in_a_page({"charts": shown, "viewer": viewer})),
        plotly=Markup(_read_asset("plotly-basic.min.js")),
        script=Markup("".join(map(_read_asset, ("viewer_line.js", "viewer_scene.js", "viewer.js", "page.js")))),
    )


def _json_in_a_page(content: Any) -> str:
    """JSON that can stand in a script element: nothing in it opens or ends a tag."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _read_asset(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def audit_page(record: dict[str, Any], *, pomdp: dict[str, Any], traces: dict[str, dict[str, np.ndarray]]) -> str:
    """The whole document; `traces` are those of agents by name, along the same episodes."""
    stored = [
        StoredTrace(record["environment"], name, 0, "as audited", pomdp, arrays) for name, arrays in traces.items()
    ]
    drawn = _audit_charts(record)
    of_use = [chart._asdict() for chart in agent_charts([(name, found) for name, _, found in record["use"]], _BLUE)]
    return _rendered(
        "audit.html",
        [*drawn, *of_use],
        viewer_data(stored),
        title=record["title"],
        num_samples=record["num_samples"],
        environment=record["environment"],
        rows=record["rows"],
        warnings=record["warnings"],
        calibration=record["calibration"],
        use=[(name, lines) for name, lines, _ in record["use"]],
        use_charts=of_use,
        charts=drawn,
    )


def _audit_charts(record: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    steps = [(time, share) for time, share, _, _ in record["by_step"] if share is not None]
    if steps:
        x, shares = zip(*steps, strict=True)
        found.append(
            _audit_chart(
                "by-step",
                "Sufficiency at each step",
                [*_line_and_interval("memory", x, shares, _BLUE)],
                axes("step t", "sufficiency given the time"),
                "By one decoder for all steps, on episodes that it was not fitted to.",
            )
        )
    if record["checkpoints"]:
        at, returns, own, last = zip(*record["checkpoints"], strict=True)
        curves = [
            *_line_and_interval("own histories", at, own, _ORANGE),
            *_line_and_interval("the last one's histories", at, last, _BLUE),
        ]
        layout = axes("training", "sufficiency given the time")
        note = "Only numbers on the last one's histories can be compared through training."
        found.append(_audit_chart("checkpoints", "Sufficiency through training", curves, layout, note))
        line = _line("return", at, returns, _BLUE)
        found.append(_audit_chart("returns", "Return through training", [line], axes("training", "mean return"), ""))
    return found


def _audit_chart(
    id: str, title: str, traces: list[dict[str, Any]], layout: dict[str, Any], note: str
) -> dict[str, Any]:
    return {"id": id, "title": title, "traces": traces, "layout": layout, "note": note}


def _line_and_interval(name: str, x: Any, shares: Any, tint: str) -> list[dict[str, Any]]:
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
