"""The evidence for and against a claim: curves over training, one for each seed.

Claims are about hidden states h, measured by one of the paper's estimators, with one number of epochs and of pairs N.
Numbers from different instruments are never mixed. A series has the curves that `results.curves.counted` gives. It is
enough for a verdict if these are curves of the full scale, of at least four seeds.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from beliefscope.errors import is_real, require
from beliefscope.paper import CELLS, LONG, MAZE, MINE_EPOCHS, STOCHASTIC
from beliefscope.results.correlations import Points, points
from beliefscope.results.curves import (
    FULL_EPISODES,
    MIN_SEEDS,
    Curve,
    Panel,
    Quantity,
    counted,
    counted_episodes,
    without_failed_fits,
)

# J*: 4 γ^L where moves are certain, else by dynamic programming.
_OPTIMUM = {MAZE: 4 * 0.98**50, LONG: 4 * 0.98**100, STOCHASTIC: 0.28218231696}


class Series(NamedTuple):
    """The curves of one environment, cell, part of the belief and ε, in the order of their seeds."""

    curves: tuple[Curve, ...]
    enough: bool  # full scale and at least four seeds

    def starts(self, what: Quantity) -> list[float]:
        return [curve.start(what) for curve in self.curves]

    def finals(self, what: Quantity) -> list[float]:
        return [curve.final(what) for curve in self.curves]

    def changes(self, what: Quantity) -> list[float]:
        return [curve.change(what) for curve in self.curves]


class Evidence:
    """The series of results, J* by environment where it is known, and remarks on the series asked for."""

    def __init__(self, panels: Iterable[Panel], optimum: Mapping[str, float] | None = None):
        self.optimum = {**_OPTIMUM, **(optimum or {})}
        require(
            all(is_real(value) and math.isfinite(value) for value in self.optimum.values()),
            rule="the optimum is a finite return for each environment's label",
            received=optimum,
            advice="leave out environments whose optimum is unknown",
        )
        hidden = [panel for panel in panels if panel.memory == "hidden"]
        kept, self._remarks = _one_estimator(hidden)
        kept = _one_run_a_seed(_one_particle_count(kept, self._remarks), self._remarks)
        self._panels = {(panel.environment, panel.part, _rounded(panel.epsilon)): panel for panel in kept}
        self._counts_failed_fits = True
        self._asked: dict[tuple[str, str], Panel] = {}  # by name and part, in the order of the questions

    def afresh(self) -> "Evidence":
        """The same for another claim: nothing was asked for yet."""
        other = copy(self)
        other._asked = {}
        return other

    def without_failed_fits(self) -> "Evidence":
        """The same runs, less the checkpoints whose fit failed."""
        other = copy(self)
        other._counts_failed_fits = False
        return other

    def series(self, environment: str, cell: str, part: str = "belief", epsilon: float = 0.0) -> Series:
        """The stored curves; empty if there are none."""
        key = environment, part, _rounded(epsilon)
        if key not in self._panels:
            return Series((), enough=False)
        name = f"{environment}, ε = {epsilon:g}" if epsilon else environment
        self._asked[name, part] = self._panels[key]
        return self._series(self._panels[key], cell)

    def by_epsilon(self, environment: str, cell: str, epsilons: Iterable[float]) -> dict[float, Series]:
        """The series of several ε, at the same checkpoints and of the seeds that were measured under all of them.

        Where these are fewer than four, all seeds are there.
        """
        panels = {epsilon: self._panels.get((environment, "belief", _rounded(epsilon))) for epsilon in epsilons}
        curves = {epsilon: panel.curves.get(cell, ()) for epsilon, panel in panels.items() if panel is not None}
        if not curves:
            return dict.fromkeys(panels, Series((), enough=False))
        seeds = set.intersection(*({curve.seed for curve in each} for each in curves.values()))
        some = len(seeds) >= MIN_SEEDS
        kept = {
            str(epsilon): tuple(curve for curve in each if not some or curve.seed in seeds)
            for epsilon, each in curves.items()
        }
        joined = next(panel for panel in panels.values() if panel is not None)._replace(curves=kept)
        self._asked[f"{environment}, every ε", "belief"] = joined
        return {epsilon: self._series(joined, str(epsilon)) for epsilon in panels}

    @property
    def remarks(self) -> list[str]:
        """On the estimator, and on the checkpoints of what was asked for."""
        return self._remarks + _about_checkpoints(self._asked)

    def of_cells(self, environment: str, part: str = "belief") -> dict[str, Series]:
        """The paper's five."""
        return {cell: self.series(environment, cell, part) for cell in CELLS}

    def _series(self, panel: Panel, cell: str) -> Series:
        curves, enough = counted(panel, cell)
        known = [(curve if self._counts_failed_fits else without_failed_fits(curve)).known() for curve in curves]
        return Series(tuple(curve for curve in known if len(curve.episode)), enough)


def all_points(series: Iterable[Series]) -> Points:
    """Every (checkpoint, run) of some series."""
    return points(curve for each in series for curve in each.curves)[0]


def enough_of(series: Mapping[str, Series]) -> bool:
    return all(each.enough for each in series.values())


def _one_estimator(panels: list[Panel]) -> tuple[list[Panel], list[str]]:
    """The panels of the paper's estimator, epochs and N that has most points, and remarks."""
    counts: Counter = Counter()
    for panel in panels:
        if panel.instrument.estimator in MINE_EPOCHS:
            counts[panel.instrument[:3]] += _size(panel)
    if not counts:
        return [], []
    best = _most(counts)
    estimator, epochs, num_samples = best
    remarks = [f"Estimator '{estimator}'{_epochs(epochs)}, N = {num_samples}."]
    if epochs is not None and epochs != MINE_EPOCHS[estimator]:
        remarks.append(f"The paper's estimator has {MINE_EPOCHS[estimator]} epochs.")
    if len(counts) > 1:
        left = ", ".join(
            f"'{e}'{_epochs(n)}, N = {size}" for e, n, size in sorted(counts, key=str) if (e, n, size) != best
        )
        remarks.append(f"The table has several estimators; that with most rows was used, and left out: {left}.")
    return [panel for panel in panels if panel.instrument[:3] == best], remarks


def _about_checkpoints(panels: Mapping[tuple[str, str], Panel]) -> list[str]:
    """How many curves were left out, and by name which panels have fewer checkpoints than the full scale."""
    left_out, fewer = 0, {}
    for (name, _), panel in panels.items():
        used = [counted(panel, cell) for cell in panel.curves]
        left_out += sum(map(len, panel.curves.values())) - sum(len(curves) for curves, _ in used)
        episodes = counted_episodes(panel)
        if 0 < len(episodes) < len(FULL_EPISODES):
            fewer[name] = len(episodes)
    remarks = [f"{left_out} curves lack checkpoints and were left out."] if left_out else []
    counts = [f"{name}: {number} of {len(FULL_EPISODES)} checkpoints." for name, number in fewer.items()]
    return remarks + counts


def _epochs(epochs: int | None) -> str:
    return "" if epochs is None else f", {epochs} epochs"


def _one_particle_count(panels: list[Panel], remarks: list[str]) -> list[Panel]:
    """For each environment, whatever its irrelevant variables, and each part: the panels of the commonest M."""
    counts: dict[tuple[str, str], Counter] = {}
    for panel in panels:
        counts.setdefault(_kind(panel), Counter())[panel.instrument.M] += _size(panel)
    best = {kind: _most(counter) for kind, counter in counts.items()}
    particles = sorted({size for size in best.values() if size is not None})
    if particles:
        remarks.append(f"M = {', '.join(map(str, particles))} where beliefs are particles.")
    if any(len(counter) > 1 for counter in counts.values()):
        remarks.append("Rows with another number of particles M than most were left out.")
    return [panel for panel in panels if best[_kind(panel)] == panel.instrument.M]


def _kind(panel: Panel) -> tuple[str, str]:
    return panel.environment.split(" + ")[0], panel.part


def _one_run_a_seed(panels: list[Panel], remarks: list[str]) -> list[Panel]:
    counts: dict[tuple, Counter] = {}
    for panel in panels:
        for cell, curves in panel.curves.items():
            for curve in curves:
                counts.setdefault((panel.environment, cell, curve.seed), Counter())[curve.run] += len(curve.episode)
    best = {who: counter.most_common(1)[0][0] for who, counter in counts.items()}
    if any(len(counter) > 1 for counter in counts.values()):
        remarks.append("Where a seed has several runs, that with most rows was used.")
    return [
        panel._replace(
            curves={
                cell: tuple(each for each in curves if each.run == best[panel.environment, cell, each.seed])
                for cell, curves in panel.curves.items()
            }
        )
        for panel in panels
    ]


def _size(panel: Panel) -> int:
    return sum(len(curve.episode) for curves in panel.curves.values() for curve in curves)


def _most(counts: Counter) -> Any:
    """The commonest; of equally common ones the last in order, so that the order of the rows does not matter."""
    return max(counts, key=lambda each: (counts[each], str(each)))


def _rounded(epsilon: float) -> float:
    return round(epsilon, 6)
