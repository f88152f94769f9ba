"""Two tables of a report, as rows of plain values: hyperparameters, and the inventory of runs.

They take `Results` and return NamedTuples; the page decides how they look.
"""

from collections import Counter
from typing import Any, NamedTuple

from beliefscope.paper import CELL_NAMES, DRQN, HIKE_NOISE, MINE
from beliefscope.results import Results


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
        state = next(name for name in ("diverged", "failed", "running", "missing", "done") if states[name])
        final = None if last is None else float(last)
        about = (run.id, run.environment, CELL_NAMES.get(run.cell, run.cell), run.seed)
        rows.append(Inventory(*about, state, states["done"], len(run.pieces), final, bits.get(run.id)))
    return rows


def _final_bits(results: Results) -> dict[str, float]:
    """At the last checkpoint measured, by run."""
    found: dict[str, Any] = {}
    for environment in results.environments:
        for panel in results.panels_of(environment):
            for curve in (curve for each in panel.curves.values() for curve in each):
                found.setdefault(curve.run, float(curve.values["bits"][-1]))
    return found
