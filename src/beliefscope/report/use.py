"""Is the belief used? What interventions on the memory did, in each environment: charts, and a row for each cell.

A follow rate is the share of swaps after which the decision is the donor's (docs/interventions.md). Numbers are means
over seeds; bars go from the least seed to the greatest.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from beliefscope.report.charts import Chart
from beliefscope.report.plotly import Trace, axes, called, literal, numbers
from beliefscope.report.style import colour
from beliefscope.results import Results
from beliefscope.results.curves import in_order
from beliefscope.store.files import Record

WHOLE = "whole"
_DASHES = {"belief": "solid", "complement": "dash", "random": "dot"}
_NOTE = (
    "solid: in the belief subspace, and with the whole memory; dashed: outside it; dotted: in random subspaces; "
    "pale: the first checkpoint"
)
_STEERED = "0 leaves the memory alone, 1 makes the decoded belief the donor's"

_SWAP_SCORES = ("follow", "keep", "to_donor", "to_own", "loss")
_COLUMNS = ("environment", "cell", "seed", "run", "episode", "verdict", "kind", "rank", "dose", "score", "value")
_COLUMNS += ("low", "high")

Value = Callable[[Record], float | None]


class UseRow(NamedTuple):
    """One cell at one checkpoint: means over seeds, None where no seed has the number."""

    environment: str
    cell: str
    episode: int
    verdicts: str  # such as "readable and used: 4"
    readable: float | None
    whole: float | None
    belief: float | None  # at the greatest rank
    random: float | None
    equal: float | None
    side_loss: float | None
    side_random: float | None


def use_charts(results: Results) -> list[Chart]:
    """Follow rates by rank and the dose-response, for each environment that has interventions."""
    found = []
    for environment in results.environments:
        for make in (_follow, _doses):
            chart = make(results, environment)
            if any(value is not None for trace in chart.traces for value in trace["y"]):
                found.append(chart._replace(id=f"use-{len(found)}"))
    return found


def use_rows(results: Results) -> list[UseRow]:
    """For each environment, cell and checkpoint."""
    rows = []
    for environment in results.environments:
        for (cell, episode), records in _by_cell(results, environment).items():
            ranks = [swap["rank"] for record in records for swap in record["swaps"] if swap["rank"] is not None]
            top = max(ranks, default=None)
            verdicts = Counter(record["verdict"] for record in records)
            side = [(part, random) for part, random in map(_side_losses, records) if part is not None]
            rows.append(
                UseRow(
                    environment=environment,
                    cell=called(cell),
                    episode=episode,
                    verdicts=", ".join(f"{verdict}: {number}" for verdict, number in verdicts.items()),
                    readable=_mean(_first(record["readable"]) for record in records),
                    whole=_mean(map(_swap(WHOLE, None), records)),
                    belief=_mean(map(_swap("belief", top), records)),
                    random=_mean(map(_swap("random", top), records)),
                    equal=_mean(_first((record["equal"] or {}).get("changed")) for record in records),
                    side_loss=_mean(part for part, _ in side),
                    side_random=_mean(random for _, random in side),
                )
            )
    return rows


def interventions_csv(results: Results) -> str:
    """A row for each number: of which run and checkpoint, what was done, and the score with its 95 % interval."""
    rows: list[tuple[Any, ...]] = []
    for run, record in results.interventions:
        about = (run.environment, run.cell, run.seed, run.id, record["episode"])
        found = [("decoder", None, None, "readable", record["readable"])]
        for swap in (*record["swaps"], *record["steering"]):
            found += [(swap["kind"], swap["rank"], swap["dose"], score, swap[score]) for score in _SWAP_SCORES]
        found += [("equal belief", None, None, score, value) for score, value in _scores(record["equal"] or {})]
        for erasure in record["erasures"]:
            kind = f"erased {erasure['part']}"
            found += [(kind, erasure["rank"], None, score, value) for score, value in _scores(erasure)]
        known = ((*each[:4], *(f"{number:.6g}" for number in each[4])) for each in found if each[4] is not None)
        rows += [(*about, record["verdict"], *each) for each in known]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(rows)
    return text.getvalue()


def _scores(found: Record) -> Iterable[tuple[str, list[float] | None]]:
    """What has an interval."""
    return ((name, value) for name, value in found.items() if isinstance(value, list))


def _follow(results: Results, environment: str) -> Chart:
    traces: list[Trace] = []
    for (cell, episode), records, tint, is_last in _drawn_cells(results, environment):
        ranks = sorted({swap["rank"] for record in records for swap in record["swaps"] if swap["rank"] is not None})
        for kind, dash in _DASHES.items():
            places: list[tuple[str, Value]] = [(str(rank), _swap(kind, rank)) for rank in ranks]
            places += [(WHOLE, _swap(WHOLE, None))] if kind == "belief" else []
            name = f"{called(cell)}, {kind}, episode {episode}"
            line = _line(places, records, tint, dash, name, is_last=is_last)
            traces.append(line | {"legendgroup": literal(cell), "name": literal(called(cell))})
            traces[-1]["showlegend"] = kind == "belief" and is_last
    layout = axes("directions that are swapped", "decides as the donor")
    layout["xaxis"] |= {"type": "category"}
    return Chart("", "use", environment, "Follow rate after a swap", _NOTE, traces, _from_0_to_1(layout))


def _doses(results: Results, environment: str) -> Chart:
    traces: list[Trace] = []
    for (cell, episode), records, tint, is_last in _drawn_cells(results, environment):
        doses = sorted({swap["dose"] for record in records for swap in record["steering"]})
        places: list[tuple[Any, Value]] = [(dose, _dose(dose)) for dose in doses]
        line = _line(places, records, tint, "solid", f"{called(cell)}, episode {episode}", is_last=is_last)
        traces.append(line | {"legendgroup": literal(cell), "name": literal(called(cell)), "showlegend": is_last})
    layout = axes("dose", "decides as the donor")
    return Chart("", "use", environment, "Dose-response of steering", _STEERED, traces, _from_0_to_1(layout))


def _line(
    places: list[tuple[Any, Value]], records: list[Record], tint: str, dash: str, name: str, *, is_last: bool
) -> Trace:
    """Means over seeds, from the least seed to the greatest; the first checkpoint is pale."""
    seeds = [(place, [each for each in map(value, records) if each is not None]) for place, value in places]
    known = [(place, found) for place, found in seeds if found]
    means = np.array([np.mean(found) for _, found in known])
    low, high = (np.array([end(found) for _, found in known]) for end in (min, max))
    reach = {"type": "data", "symmetric": False, "array": numbers(high - means), "arrayminus": numbers(means - low)}
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [place for place, _ in known],
        "y": numbers(means),
        "error_y": reach | {"width": 3, "thickness": 1},
        "line": {"color": tint, "dash": dash, "width": 2},
        "marker": {"color": tint, "size": 7, "symbol": "circle" if is_last else "circle-open"},
        "opacity": 1.0 if is_last else 0.4,
        "hovertemplate": literal(f"{name}: %{{y:.0%}}<extra></extra>", markup=True),
        "meta": {"kind": "use"},
    }


def _drawn_cells(results: Results, environment: str) -> Iterable[tuple[tuple[str, int], list[Record], str, bool]]:
    here = _by_cell(results, environment)
    last = max((episode for _, episode in here), default=0)
    cells = in_order(run.cell for run in results.runs)
    for (cell, episode), records in here.items():
        yield (cell, episode), records, colour(cell, cells), episode == last


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

    def value(record: Record) -> float | None:
        swaps = [swap for swap in record["swaps"] if (swap["kind"], swap["rank"]) == (kind, rank)]
        return _first(swaps[0]["follow"]) if swaps else None

    return value


def _dose(dose: float) -> Value:
    def value(record: Record) -> float | None:
        swaps = [swap for swap in record["steering"] if swap["dose"] == dose]
        return _first(swaps[0]["follow"]) if swaps else None

    return value


def _side_losses(record: Record) -> tuple[float | None, float | None]:
    """The return that is lost with the treasure's side, and with as many random directions."""
    for erasure in record["erasures"]:
        if erasure["part"] == "side":
            return _first(erasure["loss"]), _first(erasure["random_loss"])
    return None, None


def _first(ratio: list[float] | None) -> float | None:
    """The value of one that has an interval."""
    return ratio[0] if ratio else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _from_0_to_1(layout: dict[str, Any]) -> dict[str, Any]:
    layout["yaxis"] |= {"range": [-0.03, 1.05], "tickformat": ".0%"}
    return layout | {"hovermode": "closest"}
