"""The charts of the page: what each of them holds, as numbers."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from report.made_up import HIKE, MAZE, as_table, made_up, row

from beliefscope.report.charts import charts
from beliefscope.report.plotly import OVERLAYS, SHOWN, literal, numbers
from beliefscope.results import Results
from beliefscope.results.correlations import points
from beliefscope.results.curves import bound_panels, panels

HTML = "<b>bold</b> & <a href='javascript:alert(1)'>"


def of(found, title, environment=MAZE):
    (chart,) = [each for each in found if (each.title, each.environment) == (title, environment)]
    return chart


def kind(chart, name):
    return [trace for trace in chart.traces if trace["meta"] == {"kind": name}]


def legend(chart):
    """The entries that explain dashes, and whether they are shown at first."""
    return {trace["name"]: trace["visible"] for trace in chart.traces if "legend" in trace["meta"]}


def texts(content):
    """All strings within."""
    if isinstance(content, dict):
        return [text for value in content.values() for text in texts(value)]
    if isinstance(content, list):
        return [text for value in content for text in texts(value)]
    return [content] if isinstance(content, str) else []


def results_of(rows, environment=MAZE, cells=("GRU",)):
    return dataclasses.replace(
        made_up((environment,), cells=cells, seeds=1, checkpoints=2), panels=panels(as_table(rows))
    )


@pytest.fixture(scope="module")
def results():
    return made_up((MAZE, HIKE), cells=("GRU", "NBRC"), seeds=3, checkpoints=11, sizes=(1,), epsilons=(0.0, 0.2, 1.0))


@pytest.fixture(scope="module")
def found(results):
    return charts(results)


def test_each_environment_has_its_charts_in_the_order_of_the_page(found):
    plain = ["Return", "Information", "Return against information"]
    epsilon = [f"Information under ε-greedy histories, {cell}" for cell in ("GRU", "nBRC")]
    rest = ["What else says as much of the belief", "Decoder error: MLP (solid), linear (dotted)"]
    parts = ["Relevant (solid) and irrelevant (dashed) belief"]
    names = [(MAZE, []), (HIKE, []), (f"{MAZE} + 1 irrelevant", parts), (f"{HIKE} + 1 irrelevant", parts)]
    expected = [(name, title) for name, more in names for title in plain + more + epsilon + rest]
    assert [(chart.environment, chart.title) for chart in found] == expected
    assert [chart.id for chart in found] == [f"chart-{number}" for number in range(len(found))]


def test_charts_are_json_without_numbers_that_are_none(found):
    content = [chart._asdict() for chart in found]
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_the_return_chart_draws_the_mean_of_seeds_on_the_papers_scale(results, found):
    chart = of(found, "Return")
    means = {cell: np.mean([each.values for each in results.returns[MAZE, cell]], axis=0) for cell in ("GRU", "NBRC")}
    start = (means["GRU"][0] + means["NBRC"][0]) / 2
    assert [trace["name"] for trace in kind(chart, "mean")] == ["GRU", "nBRC"]
    for trace, mean in zip(kind(chart, "mean"), means.values(), strict=True):
        assert trace["x"] == list(range(0, 1001, 10))
        np.testing.assert_allclose(trace["y"], np.exp(3 * (mean - 1.4567) / (1.4567 - start)), rtol=1e-4)
        np.testing.assert_allclose(trace["customdata"], mean, rtol=1e-4)
    assert chart.layout["shapes"][0]["y0"] == 1
    assert chart.layout["annotations"][0]["text"] == "maximal return 1.457"


def test_where_the_maximal_return_is_unknown_no_line_is_drawn(found):
    assert "shapes" not in of(found, "Return", HIKE).layout


def test_the_band_runs_along_the_largest_and_back_along_the_least(results, found):
    chart = of(found, "Information")
    bits = [curve.values["bits"] for curve in results.panels_of(MAZE)[0].curves["GRU"]]
    area, mean = kind(chart, "band")[0], kind(chart, "mean")[0]
    np.testing.assert_allclose(mean["y"], np.mean(bits, axis=0), rtol=1e-4)
    np.testing.assert_allclose(area["y"], [*np.max(bits, axis=0), *np.min(bits, axis=0)[::-1]], rtol=1e-4)
    assert area["x"] == mean["x"] + mean["x"][::-1]


def test_every_seed_has_a_curve_that_is_hidden_at_first(results, found):
    for title in ("Return", "Information"):
        seeds = kind(of(found, title), "seed")
        assert [trace["visible"] for trace in seeds] == [False] * 6
    one = kind(of(found, "Information"), "seed")[4]
    np.testing.assert_allclose(one["y"], results.panels_of(MAZE)[0].curves["NBRC"][1].values["bits"], rtol=1e-4)
    assert "nBRC, seed 1" in one["hovertemplate"]


def test_the_entropy_is_shown_at_first_and_the_controls_are_not(found):
    chart = of(found, "Information")
    shown = {trace["meta"]["kind"]: trace["visible"] for trace in chart.traces if "legend" not in trace["meta"]}
    assert shown == {"band": True, "mean": True, "seed": False, "entropy": True} | {
        name: False for name in OVERLAYS if name.startswith("control") or name == "given_time"
    }
    assert kind(chart, "control_time")[0]["x"] == [0, 500, 1000]  # where it was measured
    halves = np.array(kind(chart, "mean")[0]["y"])[[0, 5, 10]] / 2
    np.testing.assert_allclose(kind(chart, "control_time")[0]["y"], halves, rtol=1e-4)
    assert not kind(of(found, "Information", HIKE), "entropy")


def test_every_dash_is_explained_in_the_legend(found):
    entries = legend(of(found, "Information"))
    assert entries["H(b)"] is True
    assert entries["I(t; b)"] is False
    assert {"exact, σ = 0.01", "own histories"}.isdisjoint(entries)  # not measured
    assert "H(b)" not in legend(of(found, "Information", HIKE))


def test_the_exact_curve_is_shown_at_first():
    rows = [row(episode=episode, bits=1.0, **{"exact_0.01": 2.0, "exact_0.1": 1.0}) for episode in (0, 1, 2)]
    chart = of(charts(results_of(rows)), "Information")
    assert [trace["visible"] for trace in kind(chart, "exact_0.01")] == [True]
    assert [trace["visible"] for trace in kind(chart, "exact_0.1")] == [False]
    assert legend(chart) == {"exact, σ = 0.01": True, "exact, σ = 0.1": False}
    assert {"entropy", "exact_0.01", "atoms_bits"} < set(SHOWN)


def test_two_checkpoints_are_points_and_no_line():
    rows = [row(seed=seed, run=str(seed), episode=e, bits=e + seed) for seed in (0, 2) for e in (1, 3)]
    chart = of(charts(results_of(rows)), "Information")
    assert not kind(chart, "band")
    (mean,) = kind(chart, "mean")
    assert (mean["mode"], mean["y"], mean["error_y"]["array"]) == ("markers", [2, 4], [1, 1])


@pytest.mark.parametrize(("error", "drawn"), [(0.04, True), (0.06, False), (None, True)])
def test_a_difference_of_two_estimates_is_drawn_where_it_exceeds_its_error(error, drawn):
    rows = [row(episode=e, bits=1.0, control_time=1.0, given_time=0.1, given_time_error=error) for e in (0, 1)]
    rows += [row(episode=2, bits=1.0, control_time=3.0, given_time=-2.0, given_time_error=error)]
    chart = of(charts(results_of(rows)), "Information")
    assert [trace["x"] for trace in kind(chart, "given_time")] == ([[0, 1]] if drawn else [])


def test_the_whole_memory_is_laid_over_its_own_instrument_only():
    rows = [row(episode=episode, bits=1.0) for episode in (0, 1)]
    whole = [each | {"memory": "whole", "bits": 2.0} for each in rows]
    for more, number in ((whole, 1), ([each | {"N": 500} for each in whole], 0)):
        overlays = kind(of(charts(results_of(rows + more)), "Information"), "whole")
        assert [trace["y"] for trace in overlays] == [[2, 2]] * number


def test_every_instrument_has_charts_of_its_own():
    rows = [row(episode=episode, bits=1.0, **{"return": 0.0}) for episode in (0, 1)]
    others = [each | {"N": 500, "bits": 2.0} for each in rows]
    found = [chart for chart in charts(results_of(rows + others)) if chart.title == "Information"]
    assert [(chart.note, kind(chart, "mean")[0]["y"]) for chart in found] == [
        ("MINE, 200 epochs, N = 20,000", [1, 1]),
        ("MINE, 200 epochs, N = 500", [2, 2]),
    ]


def test_the_scatter_has_a_point_for_each_checkpoint_of_each_run(results, found):
    chart = of(found, "Return against information")
    for trace, cell in zip(chart.traces, ("GRU", "NBRC"), strict=True):
        known, _ = points(results.panels_of(MAZE)[0].curves[cell])
        np.testing.assert_allclose(trace["x"], known.bits, rtol=1e-4)
        assert len(trace["text"]) == 33
    assert chart.traces[1]["text"][12].startswith("nBRC, seed 1, episode 100: Ĵ = ")


def test_relevant_and_irrelevant_lines_share_a_chart(results, found):
    name = f"{HIKE} + 1 irrelevant"
    chart = of(found, "Relevant (solid) and irrelevant (dashed) belief", name)
    assert [(trace["name"], trace["line"]["dash"], trace["showlegend"]) for trace in chart.traces] == [
        ("GRU", "solid", True),
        ("nBRC", "solid", True),
        ("GRU", "dash", False),
        ("nBRC", "dash", False),
    ]
    (panel,) = results.panels_of(name, part="irrelevant")
    mean = np.mean([curve.values["bits"] for curve in panel.curves["GRU"]], axis=0)
    np.testing.assert_allclose(chart.traces[2]["y"], mean, rtol=1e-4)
    assert chart.note == "MINE, 200 epochs, N = 20,000, M = 1,000; MINE, 200 epochs, N = 20,000"


def test_parts_measured_by_different_instruments_share_no_chart():
    instruments = ({"estimator": "mine", "N": 500}, {"estimator": "trusted", "epochs": None})
    rows = [row(part=part, bits=1.0, **how) for how in instruments for part in ("relevant", "irrelevant")]
    title = "Relevant (solid) and irrelevant (dashed) belief"
    found = [chart for chart in charts(results_of(rows)) if chart.title == title]
    assert [chart.note for chart in found] == ["MINE, 200 epochs, N = 500", "trusted, N = 20,000"]
    assert [len(chart.traces) for chart in found] == [2, 2]
    crossed = charts(results_of([rows[0], rows[3]]))
    assert not [chart for chart in crossed if chart.title == title]


def test_every_epsilon_has_a_line_and_its_own_colour(results, found):
    chart = of(found, "Information under ε-greedy histories, nBRC")
    assert [trace["name"] for trace in chart.traces] == ["ε = 0", "ε = 0.2", "ε = 1"]
    assert len({trace["line"]["color"] for trace in chart.traces}) == 3
    for trace, epsilon in zip(chart.traces, (0.0, 0.2, 1.0), strict=True):
        (panel,) = results.panels_of(MAZE, epsilon=epsilon)
        mean = np.mean([curve.values["bits"] for curve in panel.curves["NBRC"]], axis=0)
        np.testing.assert_allclose(trace["y"], mean, rtol=1e-4)


def test_a_cell_with_one_epsilon_has_no_chart_of_epsilons():
    which = (("GRU", 0.0), ("GRU", 0.5), ("LSTM", 0.0))
    found = charts(results_of([row(cell=cell, epsilon=epsilon, bits=1.0) for cell, epsilon in which]))
    assert [chart.title for chart in found if "ε-greedy" in chart.title] == [
        "Information under ε-greedy histories, GRU"
    ]


def test_the_bars_are_the_last_measured_controls_beside_the_information():
    about = {"control_time": 0.5, "control_untrained": 0.25, "given_time": 0.1}
    rows = [
        row(episode=0, bits=1.0, **about),
        row(episode=5, bits=2.0, **{name: 2 * value for name, value in about.items()}),
        row(episode=9, bits=9.0),  # without controls
    ]
    (bar,) = of(charts(results_of(rows)), "What else says as much of the belief").traces
    values = dict(zip(bar["y"], bar["x"], strict=True))
    assert values == {
        "I(h; b)": 2,
        "I(h; b | t)": 0.2,
        "I(t; b)": 1,
        "untrained cell": 0.5,
        "last observation": None,
        "last 8 steps": None,
    }


def test_decoders_are_drawn_where_they_were_fitted(found):
    chart = of(found, "Decoder error: MLP (solid), linear (dotted)")
    lines = [(trace["name"], trace["line"]["dash"], trace["showlegend"]) for trace in chart.traces]
    assert lines == [(cell, dash, dash == "solid") for dash in ("solid", "dot") for cell in ("GRU", "nBRC")]
    assert [trace["x"] for trace in chart.traces] == [[0, 500, 1000]] * 4


def test_decoders_of_one_checkpoint_are_bars():
    """A line through one point is none. The seeds' mean stands over each cell's name."""
    fitted = {("GRU", 0): (1.0, 2.0), ("GRU", 1): (3.0, 4.0), ("NBRC", 0): (0.5, None)}
    rows = [
        row(cell=cell, seed=seed, episode=1200, bits=1.0, MLP_kl=mlp, linear_kl=linear)
        for (cell, seed), (mlp, linear) in fitted.items()
    ]
    chart = of(charts(results_of(rows)), "Decoder error: MLP (full colour), linear (pale)")
    bars = [(trace["type"], trace["name"], trace["x"], trace["y"]) for trace in chart.traces]
    assert bars == [("bar", "MLP", ["GRU", "nBRC"], [2, 0.5]), ("bar", "linear", ["GRU"], [3])]
    assert chart.layout["xaxis"]["title"]["text"] == "after 1,200 episodes of training"


def test_nothing_measured_draws_returns_only_and_nothing_trained_draws_nothing():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=2)
    assert [chart.title for chart in charts(dataclasses.replace(results, panels=()))] == ["Return"]
    assert charts(dataclasses.replace(results, panels=(), returns={})) == []
    unknown = dataclasses.replace(results_of([row(bits=None)]), returns={})
    assert charts(unknown) == []


def test_numbers_that_are_not_finite_become_null():
    assert numbers([1.0, math.nan, 0.1234567, math.inf, -math.inf]) == [1, None, 0.12346, None, None]
    rows = [row(episode=0, bits=1.0), row(episode=1, bits=None), row(episode=2, bits=math.nan)]
    chart = of(charts(results_of(rows)), "Information")
    assert kind(chart, "seed")[0]["y"] == [1, None, None]
    assert kind(chart, "mean")[0]["y"] == [1]


def test_names_with_html_are_escaped_for_plotly():
    results = made_up((HTML,), cells=(HTML,), seeds=1, checkpoints=3, sizes=(1,), epsilons=(0.0, 0.5))
    found = charts(results)
    kinds = ("Return", "Relevant", "Information under", "What else", "Decoder")
    assert all(any(chart.title.startswith(words) for chart in found) for words in kinds)
    given = list(itertools.chain.from_iterable(texts(chart.traces) + texts(chart.layout) for chart in found))
    assert any(literal(HTML) in text for text in given)
    for text in given:
        assert "<" not in text.replace("<extra></extra>", "")


def test_text_stays_text():
    assert literal("a < b & <i>c</i>") == "a &lt; b &amp; &lt;i>c&lt;/i>"
    assert literal("<b>x</b><extra></extra>", markup=True) == "&lt;b>x&lt;/b><extra></extra>"


def shares(cell: str, seed: int) -> list[dict]:
    """Sufficiency that rises on the last policy's histories and is 1 on its own; the bound at the last checkpoint."""
    about = {"cell": cell, "seed": seed, "run": f"{cell} {seed}", "estimator": "sufficiency", "epochs": None}
    rows = [row(**about, episode=e, sufficiency_last=s, sufficiency=1.0) for e, s in ((0, 0.2), (100, 0.6))]
    last = {"sufficiency_untrained": 0.2, "sufficiency_observation": 0.1, "sufficiency_recent": 0.3, "atoms_bits": 5.0}
    return [*rows, row(**about, episode=200, sufficiency_last=1.0, sufficiency=1.0, **last)]


def of_shares() -> Results:
    rows = [each for cell in ("GRU", "BRC") for seed in range(2) for each in shares(cell, seed)]
    bits = [row(cell="GRU", episode=e, bits=b, warnings=w) for e, b, w in ((0, 1.0, ""), (100, -4.0, "failed fit: x"))]
    table = as_table(rows + bits)
    some = made_up([MAZE], cells=("GRU", "BRC"), seeds=2, checkpoints=3)
    return dataclasses.replace(some, table=table, panels=panels(table), shares=panels(table, of_shares=True))


def test_sufficiency_is_the_first_chart_of_an_environment_with_both_histories():
    first, *rest = charts(of_shares())
    assert (first.title, first.environment) == ("Sufficiency", MAZE)
    assert [chart.title for chart in rest[:2]] == ["Return", "Information"]
    kinds = [(trace["meta"]["kind"], trace["name"]) for trace in first.traces]
    assert kinds.count(("mean", "GRU")) == kinds.count(("own", "GRU")) == 1
    (mean,) = (trace for trace in first.traces if (trace["meta"]["kind"], trace["name"]) == ("mean", "GRU"))
    assert (mean["x"], mean["y"]) == ([0, 100, 200], [0.2, 0.6, 1])
    (bars,) = (chart for chart in rest if chart.title.startswith("Sufficiency, given the time"))
    assert bars.traces[0]["x"] == [1, 0.2, 0.1, 0.3, None]


def test_a_fit_that_failed_is_marked_where_it_is_and_the_bound_is_laid_over():
    (chart,) = (chart for chart in charts(of_shares()) if chart.title == "Information")
    (mark,) = (trace for trace in chart.traces if trace["meta"]["kind"] == "failed")
    assert (mark["x"], mark["y"], mark["mode"]) == ([100], [-4], "markers")
    assert mark["text"] == ["GRU, seed 0: failed fit: x"]
    (bound,) = kind(chart, "atoms_bits")
    assert bound["visible"]
    assert (bound["x"], bound["y"]) == ([200], [5])


def test_the_bound_has_charts_of_its_own_where_no_estimator_was_measured_as_often():
    results = of_shares()
    rows = [row(cell="GRU", seed=0, run="GRU 0", episode=200, bits=4.0, **{"exact_0.01": 6.0, "return": 1.0})]
    bits = panels(as_table(rows))
    more = dataclasses.replace(results, panels=(*bound_panels(results.shares, ()), *bits))
    proven, read = (chart for chart in charts(more) if chart.title == "Information")
    assert proven.note == "atoms bound, N = 20,000; at least so many bits are there"
    assert [trace["y"] for trace in kind(proven, "mean")] == [[5], [5]]
    assert [trace["y"] for trace in kind(proven, "exact_0.01")] == [[6]]  # the truth is that of every instrument
    assert not kind(proven, "atoms_bits")
    assert [trace["y"] for trace in kind(read, "atoms_bits")] == [[5]]
    assert bound_panels(results.shares, bits) == ()  # measured as often
