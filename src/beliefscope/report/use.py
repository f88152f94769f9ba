"""Is the belief used? What interventions on the memory did, in each environment or to one agent: charts, and tables.

A follow rate is the share of swaps after which the decision is the donor's (docs/interventions.md). Numbers are means
over seeds. One rule gives their intervals, in charts, figures and tables: of several seeds Student's 95 % t-interval
of the mean, which has the chance of seeds and of their episodes in it; of one seed its own interval over episodes.
Shares are cut at 0 and 1.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from beliefscope.claims.verdict import mean_interval
from beliefscope.paper import called
from beliefscope.report.charts import Chart
from beliefscope.report.plotly import Trace, axes, literal, numbers
from beliefscope.report.style import cell_colour
from beliefscope.results import Results
from beliefscope.results.curves import in_order
from beliefscope.store.files import Record

WHOLE = "whole"
ALL_SEEDS = "all"  # in the column of seeds: a mean over them
_DASHES = {"belief": "solid", "complement": "dash", "random": "dot"}
_NOTE = (
    "solid: in the belief subspace, and with the whole memory; dashed: outside it; dotted: in random subspaces; "
    "pale: the first checkpoint; bars: 95 % intervals of the solid lines at the last"
)
_STEERED = "0 leaves the memory alone, 1 makes the decoded belief the donor's"

_ERASED = "erased "
_SWAP_SCORES = ("follow", "keep", "to_donor", "to_own", "loss")
_SHARES = ("follow", "keep", "changed")
_COLUMNS = ("environment", "cell", "seed", "run", "episode", "verdict", "kind", "rank", "dose", "score", "value")
_COLUMNS += ("low", "high")

Triple = list[float] | tuple[float, float, float]  # a number and its interval over episodes
Value = Callable[[Record], Triple | None]


class Mean(NamedTuple):
    """Over seeds, with its interval by the rule above; NaN where there is none."""

    value: float
    low: float
    high: float


class UseRow(NamedTuple):
    """One cell at one checkpoint."""

    environment: str
    cell: str
    episode: int
    verdicts: str  # such as "readable and used: 4"
    readable: Mean
    whole: Mean
    belief: Mean  # at the greatest rank
    random: Mean
    equal: Mean
    side_loss: Mean  # of return
    side_random: Mean
    side_sufficiency: Mean  # what is lost of it
    side_sufficiency_random: Mean


class _Drawn(NamedTuple):
    """What one colour of a chart shows."""

    name: str
    legend: str
    records: list[Record]
    tint: str
    is_last: bool  # else it is pale


def over_seeds(found: Iterable[Triple | None], *, is_share: bool) -> Mean:
    """The mean with its interval, by the rule at the top of this file."""
    known = [each for each in found if each is not None]
    if len(known) < 2:
        return Mean(*known[0]) if known else Mean(*[math.nan] * 3)
    value, low, high, _ = mean_interval([each[0] for each in known])
    return Mean(value, max(low, 0.0), min(high, 1.0)) if is_share else Mean(value, low, high)


def use_charts(results: Results) -> list[Chart]:
    """Follow rates by rank and the dose-response, for each environment that has interventions."""
    found = []
    for environment in results.environments:
        drawn = _drawn_cells(results, environment)
        found += _with_numbers([_follow(environment, drawn), _doses(environment, drawn)])
    return [chart._replace(id=f"use-{number}") for number, chart in enumerate(found)]


def agent_charts(uses: list[tuple[str, Record]], tint: str) -> list[Chart]:
    """The same of one agent; the first is the agent, and one before its training is pale."""
    drawn = [_Drawn(name, name, [record], tint, place == 0) for place, (name, record) in enumerate(uses)]
    charts = _with_numbers([_follow("", drawn), _doses("", drawn)])
    return [chart._replace(id=f"use-{number}") for number, chart in enumerate(charts)]


def _with_numbers(charts: list[Chart]) -> list[Chart]:
    return [chart for chart in charts if any(value is not None for trace in chart.traces for value in trace["y"])]


def use_rows(results: Results) -> list[UseRow]:
    """For each environment, cell and checkpoint."""
    rows = []
    for environment in results.environments:
        for (cell, episode), records in _by_cell(results, environment).items():
            ranks = [swap["rank"] for record in records for swap in record["swaps"] if swap["rank"] is not None]
            top = max(ranks, default=None)
            side = [erasure for record in records for erasure in record["erasures"] if erasure["part"] == "side"]
            rows.append(
                UseRow(
                    environment=environment,
                    cell=called(cell),
                    episode=episode,
                    verdicts=_verdicts(records),
                    readable=over_seeds((record["readable"] for record in records), is_share=False),
                    whole=over_seeds(map(_swap(WHOLE, None), records), is_share=True),
                    belief=over_seeds(map(_swap("belief", top), records), is_share=True),
                    random=over_seeds(map(_swap("random", top), records), is_share=True),
                    equal=over_seeds(((record["equal"] or {}).get("changed") for record in records), is_share=True),
                    side_loss=_lost(side, "loss"),
                    side_random=_lost(side, "random_loss"),
                    side_sufficiency=_lost(side, "sufficiency_loss"),
                    side_sufficiency_random=_lost(side, "random_sufficiency_loss"),
                )
            )
    return rows


def _lost(erasures: list[Record], score: str) -> Mean:
    return over_seeds((each.get(score) for each in erasures), is_share=False)


def _verdicts(records: list[Record]) -> str:
    counted = Counter(record["verdict"] for record in records)
    return ", ".join(f"{verdict}: {number}" for verdict, number in counted.items())


def interventions_csv(results: Results) -> str:
    """A row for each number: of which run and checkpoint, what was done, and the score with its 95 % interval over
    episodes; then, with `all` for a seed, a row for each mean over seeds with its interval.
    """
    rows: list[tuple[Any, ...]] = []
    for run, record in results.interventions:
        about = (run.environment, run.cell, run.seed, run.id, record["episode"], record["verdict"])
        rows += [(*about, *what, *(f"{number:.6g}" for number in found)) for what, found in scores_of(record)]
    for environment in results.environments:
        for (cell, episode), records in _by_cell(results, environment).items():
            about = (environment, cell, ALL_SEEDS, None, episode, _verdicts(records))
            gathered: dict[tuple, list[Triple]] = {}
            for (kind, rank, dose, score), found in (each for record in records for each in scores_of(record)):
                # The rank of an eraser differs from seed to seed.
                what = kind, None if kind.startswith(_ERASED) else rank, dose, score
                gathered.setdefault(what, []).append(found)
            for what, each in gathered.items():
                mean = over_seeds(each, is_share=what[3] in _SHARES)
                rows.append((*about, *what, *(f"{number:.6g}" for number in mean)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(rows)
    return text.getvalue()


def scores_of(record: Record) -> Iterator[tuple[tuple[str, int | None, float | None, str], Triple]]:
    """All numbers of a record that have intervals: what was done (kind, rank, dose), the score, and the number."""
    found = [("decoder", None, None, "readable", record["readable"])]
    for swap in (*record["swaps"], *record["steering"]):
        found += [(swap["kind"], swap["rank"], swap["dose"], score, swap[score]) for score in _SWAP_SCORES]
    found += [("equal belief", None, None, score, value) for score, value in _scores(record["equal"] or {})]
    for erasure in record["erasures"]:
        kind = f"{_ERASED}{erasure['part']}"
        found += [(kind, erasure["rank"], None, score, value) for score, value in _scores(erasure)]
    return (((*each[:4],), each[4]) for each in found if each[4] is not None)


def _scores(found: Record) -> Iterable[tuple[str, Triple]]:
    """What has an interval."""
    return ((name, value) for name, value in found.items() if isinstance(value, list | tuple))


def _follow(environment: str, drawn: list[_Drawn]) -> Chart:
    traces: list[Trace] = []
    for each in drawn:
        swaps = [swap for record in each.records for swap in record["swaps"]]
        ranks = sorted({swap["rank"] for swap in swaps if swap["rank"] is not None})
        for kind, dash in _DASHES.items():
            places: list[tuple[str, Value]] = [(str(rank), _swap(kind, rank)) for rank in ranks]
            places += [(WHOLE, _swap(WHOLE, None))] if kind == "belief" else []
            traces.append(_line(places, each._replace(name=f"{each.name}, {kind}"), dash))
            traces[-1]["showlegend"] = kind == "belief" and each.is_last
    layout = axes("directions that are swapped", "decides as the donor")
    layout["xaxis"] |= {"type": "category"}
    return Chart("", environment, "Follow rate after a swap", _NOTE, traces, _from_0_to_1(layout))


def _doses(environment: str, drawn: list[_Drawn]) -> Chart:
    traces: list[Trace] = []
    for each in drawn:
        doses = sorted({swap["dose"] for record in each.records for swap in record["steering"]})
        places: list[tuple[Any, Value]] = [(dose, _dose(dose)) for dose in doses]
        traces.append(_line(places, each, "solid") | {"showlegend": each.is_last})
    layout = axes("dose", "decides as the donor")
    return Chart("", environment, "Dose-response of steering", _STEERED, traces, _from_0_to_1(layout))


def _line(places: list[tuple[Any, Value]], drawn: _Drawn, dash: str) -> Trace:
    """Means over seeds, the first checkpoint pale. Intervals of all lines would hide the lines."""
    found = [(place, over_seeds(map(value, drawn.records), is_share=True)) for place, value in places]
    known = [(place, mean) for place, mean in found if not math.isnan(mean.value)]
    means, low, high = (np.array([mean[index] for _, mean in known]) for index in range(3))
    reach = {"type": "data", "symmetric": False, "array": numbers(high - means), "arrayminus": numbers(means - low)}
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [place for place, _ in known],
        "y": numbers(means),
        "error_y": reach | {"width": 3, "thickness": 1, "visible": drawn.is_last and dash == "solid"},
        "line": {"color": drawn.tint, "dash": dash, "width": 2},
        "marker": {"color": drawn.tint, "size": 7, "symbol": "circle" if drawn.is_last else "circle-open"},
        "opacity": 1.0 if drawn.is_last else 0.4,
        "hovertemplate": literal(f"{drawn.name}: %{{y:.0%}}<extra></extra>", markup=True),
        "meta": {"kind": "use"},
        "legendgroup": literal(drawn.legend),
        "name": literal(drawn.legend),
    }


def _drawn_cells(results: Results, environment: str) -> list[_Drawn]:
    here = _by_cell(results, environment)
    last = max((episode for _, episode in here), default=0)
    return [
        _Drawn(f"{called(cell)}, episode {episode}", called(cell), each, cell_colour(results, cell), episode == last)
        for (cell, episode), each in here.items()
    ]


def _by_cell(results: Results, environment: str) -> dict[tuple[str, int], list[Record]]:
    """By cell and episode, in the order of cells."""
    found: dict[tuple[str, int], list[Record]] = {}
    for run, record in results.interventions:
        if run.environment == environment:
            found.setdefault((run.cell, record["episode"]), []).append(record)
    order = in_order(cell for cell, _ in found)
    return {which: found[which] for which in sorted(found, key=lambda which: (order.index(which[0]), which[1]))}


def _swap(kind: str, rank: int | None) -> Value:
    """The follow rate of one kind of swap."""

    def value(record: Record) -> Triple | None:
        swaps = [swap for swap in record["swaps"] if (swap["kind"], swap["rank"]) == (kind, rank)]
        return swaps[0]["follow"] if swaps else None

    return value


def _dose(dose: float) -> Value:
    def value(record: Record) -> Triple | None:
        swaps = [swap for swap in record["steering"] if swap["dose"] == dose]
        return swaps[0]["follow"] if swaps else None

    return value


def _from_0_to_1(layout: dict[str, Any]) -> dict[str, Any]:
    layout["yaxis"] |= {"range": [-0.03, 1.05], "tickformat": ".0%"}
    return layout | {"hovermode": "closest"}
