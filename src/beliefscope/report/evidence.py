"""What a table of results holds for and against a claim: curves over training, one for each seed.

It takes the columns of a study's table and keeps the rows of hidden states h and of one of the paper's estimators, with
one number of epochs and of pairs N: numbers from different ones are never mixed. A series is enough for a verdict where
at least four seeds have all 51 checkpoints of the full scale; runs that lack some are then left out. Otherwise a series
is all there is.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from beliefscope.errors import require
from beliefscope.report.correlations import Points

_EPISODES = tuple(range(0, 5001, 100))  # the checkpoints of the full scale
_NUM_SAMPLES = 20_000  # its pairs: N = 10,000 to train on, and as many fresh ones
_ESTIMATORS = {"mine": 200, "mine-authors": 100}  # the paper's, with their epochs
_LAST = 10  # checkpoints that make the final value
MIN_SEEDS = 4

Quantity = Literal["returns", "bits", "fraction"]
Which = tuple[str, str, str, float]  # environment, cell, part of the belief, ε


class Curve(NamedTuple):
    """The checkpoints of one seed at which both return and information are finite."""

    seed: int
    episode: Int[np.ndarray, " checkpoints"]
    returns: Float[np.ndarray, " checkpoints"]  # Ĵ
    bits: Float[np.ndarray, " checkpoints"]  # Î
    fraction: Float[np.ndarray, " checkpoints"]  # Î / H(b), NaN where the entropy is unknown or flagged

    def start(self, what: Quantity) -> float:
        """At checkpoint 0; NaN if it is missing."""
        first = getattr(self, what)[self.episode == 0]
        return float(first[0]) if len(first) else math.nan

    def final(self, what: Quantity) -> float:
        """The mean of the last 10 checkpoints, or of as many as there are after the start; NaN if there are none."""
        return self.mean(what, self.episode > 0, last=_LAST)

    def change(self, what: Quantity) -> float:
        """Final less start."""
        return self.final(what) - self.start(what)

    def mean(self, what: Quantity, kept: Bool[np.ndarray, " checkpoints"], last: int = 0) -> float:
        """The mean of (the last of) the kept checkpoints; NaN if there are none."""
        values = getattr(self, what)[kept][-last:]
        return float(values.mean()) if len(values) else math.nan

    @property
    def is_full(self) -> bool:
        return tuple(self.episode.tolist()) == _EPISODES


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
    """The series of a table, and remarks on what was left out of it."""

    def __init__(self, table: dict[str, list]):
        rows = [row for row in _rows(table) if row.get("memory", "hidden") == "hidden"]
        kept, self.remarks = _one_estimator(rows)
        self.num_samples: int | None = kept[0]["N"] if kept else None
        kept = _one_particle_count(kept, self.remarks)
        self._curves = _curves(_one_run_a_seed(kept, self.remarks))
        incomplete = sum(len(curves) - len(self.series(*which).curves) for which, curves in self._curves.items())
        if incomplete:
            self.remarks.append(f"{incomplete} curves lack checkpoints and were left out.")

    def series(self, environment: str, cell: str, part: str = "belief", epsilon: float = 0.0) -> Series:
        """What there is; empty if nothing."""
        curves = self._curves.get((environment, cell, part, _rounded(epsilon)), ())
        full = tuple(curve for curve in curves if curve.is_full)
        if self.num_samples == _NUM_SAMPLES and len(full) >= MIN_SEEDS:
            return Series(full, enough=True)
        return Series(curves, enough=False)


def all_points(series: Iterable[Series]) -> Points:
    """Every (checkpoint, run) of some series."""
    curves = [curve for each in series for curve in each.curves]

    def joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
        return np.concatenate([np.zeros(0, kind), *parts]).astype(kind)

    return Points(
        returns=joined([curve.returns for curve in curves], float),
        bits=joined([curve.bits for curve in curves], float),
        run=joined([np.full(len(curve.bits), index) for index, curve in enumerate(curves)], int),
        checkpoint=joined([curve.episode for curve in curves], int),
    )


def _rows(table: dict[str, list]) -> list[dict[str, Any]]:
    lengths = {name: len(column) for name, column in table.items()}
    require(
        len(set(lengths.values())) <= 1,
        rule="the columns of a table have one length",
        received=lengths,
        advice="pass the table of a study's folder",
    )
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _one_estimator(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the paper's estimator, epochs and N that has most of them, and remarks."""

    def how(row: dict[str, Any]) -> tuple[Any, ...]:
        return row.get("estimator"), row.get("epochs"), row.get("N")

    counts = Counter(how(row) for row in rows if row.get("estimator") in _ESTIMATORS)
    if not counts:
        return [], []
    best = _most(counts)
    estimator, epochs, num_samples = best
    remarks = [f"Estimator '{estimator}'{_epochs(epochs)}, N = {num_samples}."]
    if epochs is not None and epochs != _ESTIMATORS[estimator]:
        remarks.append(f"The paper's estimator has {_ESTIMATORS[estimator]} epochs.")
    if len(counts) > 1:
        left = ", ".join(
            f"'{e}'{_epochs(n)}, N = {size}" for e, n, size in sorted(counts, key=str) if (e, n, size) != best
        )
        remarks.append(f"The table has several estimators; that with most rows was used, and left out: {left}.")
    return [{"N": num_samples, **row} for row in rows if how(row) == best], remarks


def _epochs(epochs: int | None) -> str:
    return "" if epochs is None else f", {epochs} epochs"


def _one_particle_count(rows: list[dict[str, Any]], remarks: list[str]) -> list[dict[str, Any]]:
    """For each environment, whatever its irrelevant variables, and each part: the rows of the commonest M."""
    counts: dict[Hashable, Counter] = {}
    for row in rows:
        counts.setdefault(_kind(row), Counter())[row.get("M")] += 1
    best = {kind: _most(counter) for kind, counter in counts.items()}
    particles = sorted({size for size in best.values() if size is not None})
    if particles:
        remarks.append(f"M = {', '.join(map(str, particles))} where beliefs are particles.")
    if any(len(counter) > 1 for counter in counts.values()):
        remarks.append("Rows with another number of particles M than most were left out.")
    return [row for row in rows if row.get("M") == best[_kind(row)]]


def _kind(row: dict[str, Any]) -> tuple[str, Any]:
    return str(row.get("environment")).split(" + ")[0], row.get("part")


def _one_run_a_seed(rows: list[dict[str, Any]], remarks: list[str]) -> list[dict[str, Any]]:
    counts: dict[Hashable, Counter] = {}
    for row in rows:
        counts.setdefault(_who(row), Counter())[row.get("run")] += 1
    best = {who: counter.most_common(1)[0][0] for who, counter in counts.items()}
    if any(len(counter) > 1 for counter in counts.values()):
        remarks.append("Where a seed has several runs, that with most rows was used.")
    return [row for row in rows if row.get("run") == best[_who(row)]]


def _who(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("environment"), row.get("cell"), row.get("seed")


def _curves(rows: list[dict[str, Any]]) -> dict[Which, tuple[Curve, ...]]:
    """By environment, cell, part and ε; of a checkpoint measured twice, the first."""
    found: dict[Which, dict[int, dict[int, tuple[float, float, float]]]] = {}
    for row in rows:
        returns, bits, entropy = (_number(row.get(name)) for name in ("return", "bits", "entropy"))
        if not (math.isfinite(returns) and math.isfinite(bits)) or row.get("episode") is None:
            continue
        known = entropy > 0 and not row.get("entropy_flagged")
        environment, cell, part = (str(row.get(name)) for name in ("environment", "cell", "part"))
        which = environment, cell, part, _rounded(row.get("epsilon"))
        checkpoints = found.setdefault(which, {}).setdefault(row.get("seed") or 0, {})
        checkpoints.setdefault(row["episode"], (returns, bits, bits / entropy if known else math.nan))
    return {
        which: tuple(_curve(seed, checkpoints) for seed, checkpoints in sorted(seeds.items()))
        for which, seeds in found.items()
    }


def _curve(seed: int, checkpoints: dict[int, tuple[float, float, float]]) -> Curve:
    episodes = sorted(checkpoints)
    values = np.array([checkpoints[episode] for episode in episodes], float)
    return Curve(seed, np.array(episodes, int), values[:, 0], values[:, 1], values[:, 2])


def _most(counts: Counter) -> Any:
    """The commonest; of equally common ones the last in order, so that the order of the rows does not matter."""
    return max(counts, key=lambda each: (counts[each], str(each)))


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _rounded(epsilon: Any) -> float:
    return round(_number(epsilon), 6)
