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

import numpy as np

from beliefscope.errors import is_real, require
from beliefscope.paper import CELLS, LONG, MAZE, MINE_EPOCHS, STOCHASTIC
from beliefscope.results.correlations import Points, points
from beliefscope.results.curves import (
    FULL_EPISODES,
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

    curves: tuple[Curve, ...]  # bits are NaN where a fit has failed that is not to count; its return counts
    enough: bool  # full scale and at least four seeds

    def starts(self, what: Quantity) -> list[float]:
        return [curve.start(what) for curve in self.curves]

    def finals(self, what: Quantity) -> list[float]:
        return [curve.final(what) for curve in self.curves]

    def changes(self, what: Quantity) -> list[float]:
        return [curve.change(what) for curve in self.curves]

    def means(self, what: Quantity, *, since: int) -> list[float]:
        """From this episode on."""
        return [curve.mean(what, curve.episode >= since) for curve in self.curves]


_NOTHING = Series((), enough=False)


class _Asked(NamedTuple):
    """Curves that a claim has asked for."""

    panel: Panel
    alone: int = 0  # how many more there are, of seeds that lack some of what is compared


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
        self._asked: dict[tuple[str, str], _Asked] = {}  # by name and part, in the order of the questions

    def afresh(self) -> "Evidence":
        """The same for another claim: nothing was asked for yet."""
        other = copy(self)
        other._asked = {}
        return other

    def without_failed_fits(self) -> "Evidence":
        """The same runs, without the bits of checkpoints whose fit failed."""
        other = copy(self)
        other._counts_failed_fits = False
        return other

    def series(self, environment: str, cell: str, part: str = "belief", epsilon: float = 0.0) -> Series:
        """The stored curves; empty if there are none."""
        key = environment, part, _rounded(epsilon)
        if key not in self._panels:
            return _NOTHING
        name = f"{environment}, ε = {epsilon:g}" if epsilon else environment
        self._asked[name, part] = _Asked(self._panels[key])
        return self._series(*counted(self._panels[key], cell))

    def by_size(self, base: str, part: str, sizes: Iterable[int]) -> dict[tuple[int, str], Series]:
        """The series of several numbers of irrelevant variables, by number and cell, at the same checkpoints."""
        panels = {size: self._panels.get((f"{base} + {size} irrelevant", part, 0.0)) for size in sizes}
        found = {(size, cell): _NOTHING for size in panels for cell in CELLS}
        there = {size: panel for size, panel in panels.items() if panel is not None}
        if there:
            curves = {f"{cell}, {size}": each for size, panel in there.items() for cell, each in panel.curves.items()}
            joined = next(iter(there.values()))._replace(curves=curves)
            self._asked[f"{base}, every d", part] = _Asked(joined)
            found |= {(size, cell): self._series(*counted(joined, f"{cell}, {size}")) for size, cell in found}
        return found

    def by_epsilon(self, environment: str, cell: str, epsilons: Iterable[float]) -> dict[float, Series]:
        """The series of several ε, of the same seeds at the same checkpoints: those measured under all of them.

        Where these are fewer than four, all seeds are there, and they are not enough.
        """
        panels = {epsilon: self._panels.get((environment, "belief", _rounded(epsilon))) for epsilon in epsilons}
        there = {epsilon: panel for epsilon, panel in panels.items() if panel is not None and panel.curves.get(cell)}
        if not there:
            return dict.fromkeys(panels, _NOTHING)
        curves = {epsilon: {curve.seed: curve for curve in panel.curves[cell]} for epsilon, panel in there.items()}
        seeds = sorted(set.intersection(*map(set, curves.values())))
        together = tuple(_together([by_seed[seed] for by_seed in curves.values()]) for seed in seeds)
        joined = next(iter(there.values()))._replace(curves={cell: together})
        alone = sum(map(len, curves.values())) - len(seeds) * len(curves)
        kept, enough = counted(joined, cell)
        self._asked[f"{environment}, every ε", "belief"] = _Asked(joined, alone if enough else 0)
        found = dict.fromkeys(panels, _NOTHING)
        for epsilon, by_seed in curves.items():
            some = [by_seed[one.seed].where(np.isin(by_seed[one.seed].episode, one.episode)) for one in kept]
            found[epsilon] = self._series(tuple(some) if enough else there[epsilon].curves[cell], enough)
        return found

    @property
    def remarks(self) -> list[str]:
        """On the estimator, and on the checkpoints of what was asked for."""
        return self._remarks + _about_checkpoints(self._asked)

    def of_cells(self, environment: str, part: str = "belief") -> dict[str, Series]:
        """The paper's five."""
        return {cell: self.series(environment, cell, part) for cell in CELLS}

    def _series(self, curves: tuple[Curve, ...], enough: bool) -> Series:
        known = [curve for curve in (each.known() for each in curves) if len(curve.episode)]
        return Series(tuple(known if self._counts_failed_fits else map(without_failed_fits, known)), enough)


def _together(curves: list[Curve]) -> Curve:
    """The first of these, at the checkpoints that all of them have."""
    shared = set.intersection(*(set(curve.known().episode.tolist()) for curve in curves))
    return curves[0].where(np.isin(curves[0].episode, sorted(shared)))


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


def _about_checkpoints(asked: Mapping[tuple[str, str], _Asked]) -> list[str]:
    """How many curves were left out, and which panels have fewer checkpoints than the full scale."""
    left_out, numbers = 0, {}
    for (name, part), (panel, _) in asked.items():
        used = [counted(panel, cell) for cell in panel.curves]
        left_out += sum(map(len, panel.curves.values())) - sum(len(curves) for curves, _ in used)
        numbers.setdefault(name, {})[part] = len(counted_episodes(panel))
    alone = sum(each.alone for each in asked.values())
    remarks = [f"{left_out} curves lack checkpoints and were left out."] if left_out else []
    remarks += [f"{alone} curves of seeds that were not measured under every ε were left out."] if alone else []
    for name, by_part in numbers.items():
        alike = len(set(by_part.values())) == 1
        called = {name: next(iter(by_part.values()))} if alike else {f"{name}, {p}": n for p, n in by_part.items()}
        remarks += [
            f"{each}: {number} of {len(FULL_EPISODES)} checkpoints."
            for each, number in called.items()
            if 0 < number < len(FULL_EPISODES)
        ]
    return remarks


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
