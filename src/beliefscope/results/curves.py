"""The curves of a table: numbers through training, one curve for each run, grouped by what may share an axis.

A `Panel` holds the curves that may share an axis: one environment, one part of the belief, one ε, one memory, one
instrument (estimator, epochs, N and M). The rules, for charts, figures, correlations and claims alike:

- I(h; b | t), a difference of two estimates, is known only where it exceeds two of its standard errors.
- A checkpoint that was measured twice, with controls and without, is one point: what the first row lacks is taken from
  the next.
- Charts and figures show every curve. Correlations and claims count the curves that `counted` gives. A study at full
  scale suffices with all 51 checkpoints, or with some that are at most 500 episodes apart, the same for all cells.
"""

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import polars
from jaxtyping import Bool, Float, Int

from beliefscope.paper import CELLS
from beliefscope.warning_signs import FAILED

_NAMES = {"mine": "MINE", "mine-authors": "MINE (authors' code)", "atoms": "atoms bound"}
_ABOUT = ("environment", "cell", "seed", "run", "episode", "part", "memory", "estimator", "measurement", "warnings")
SHARES = "sufficiency"  # the estimator whose rows have shares in place of bits
FULL_EPISODES = tuple(range(0, 5001, 100))  # the checkpoints of the full scale
WIDEST_STEP = 500  # episodes from one checkpoint to the next, where fewer than all suffice for a verdict
FULL_PAIRS = 20_000  # its pairs: N = 10,000 to train on, and as many fresh ones
MIN_SEEDS = 4

Quantity = Literal["return", "bits", "fraction"]


class Instrument(NamedTuple):
    """How bits were measured; numbers of different instruments never share an axis."""

    estimator: str
    epochs: int | None
    N: int
    M: int | None

    def __str__(self) -> str:
        epochs = f", {self.epochs} epochs" if self.epochs is not None else ""
        particles = f", M = {self.M:,}" if self.M is not None else ""
        return f"{_NAMES.get(self.estimator, self.estimator)}{epochs}, N = {self.N:,}{particles}"


class Curve(NamedTuple):
    """One run through training: numbers of the table by column name, NaN where they were not measured.

    The entropy H(b) is NaN where it is flagged, too; `fraction` is Î / H(b).
    """

    run: str
    seed: int
    episode: Int[np.ndarray, " checkpoints"]
    values: dict[str, Float[np.ndarray, " checkpoints"]]
    warnings: dict[int, str]  # what makes the number of a checkpoint doubtful, where anything does

    def known(self) -> "Curve":
        """The checkpoints at which both return and information are finite."""
        kept = np.isfinite(self.values["return"]) & np.isfinite(self.values["bits"])
        return self.where(kept)

    def where(self, kept: Bool[np.ndarray, " checkpoints"]) -> "Curve":
        """Some of its checkpoints."""
        values = {name: values[kept] for name, values in self.values.items()}
        return self._replace(episode=self.episode[kept], values=values)

    def start(self, what: Quantity) -> float:
        """At checkpoint 0; NaN if it is missing."""
        return self.mean(what, self.episode == 0)

    def final(self, what: Quantity) -> float:
        """The mean of the last fifth of training, episodes 4100 to 5000 of the full scale; NaN without a checkpoint
        after the start."""
        return self.mean(what, self.episode > 0.8 * self.episode.max(initial=0))

    def change(self, what: Quantity) -> float:
        """Final minus start."""
        return self.final(what) - self.start(what)

    def mean(self, what: Quantity, kept: Bool[np.ndarray, " checkpoints"]) -> float:
        """The mean of the kept checkpoints, of bits and fractions where the bits are known; NaN if there are none."""
        known = np.isfinite(self.values["return" if what == "return" else "bits"])
        values = self.values[what][kept & known]
        return float(values.mean()) if len(values) else math.nan


class Panel(NamedTuple):
    """Curves that may share an axis, by cell."""

    environment: str
    part: str  # belief, relevant or irrelevant
    epsilon: float
    memory: str  # hidden: h; whole: all that is carried, (h, c) for the LSTM
    instrument: Instrument
    curves: dict[str, tuple[Curve, ...]]  # by cell, in the order of their seeds


class Calibrated(NamedTuple):
    """What an instrument reads where the information with the beliefs of one environment is known."""

    environment: str
    part: str
    instrument: Instrument
    num_atoms: int
    in_cells: bool
    points: tuple[tuple[float, float], ...]  # true and read bits, from the least


class Returns(NamedTuple):
    """The evaluations of one run: every tenth episode in the paper, more often than information is measured."""

    run: str
    seed: int
    episode: Int[np.ndarray, " evaluations"]
    values: Float[np.ndarray, " evaluations"]  # Ĵ


class Band(NamedTuple):
    """The mean over seeds, the least and the largest, at the episodes that all of them have."""

    episode: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    high: Float[np.ndarray, " points"]


def panels(table: polars.DataFrame, *, of_shares: bool = False) -> tuple[Panel, ...]:
    """The curves of a table, in its order: those of bits, or those of sufficiency."""
    found: dict[tuple, dict[str, dict[tuple[int, str], list[int]]]] = {}  # numbers of rows
    keys = table.select(
        "environment", "part", "epsilon", "memory", "cell", "seed", "run", "episode", *Instrument._fields
    )
    for number, row in enumerate(keys.iter_rows()):
        environment, part, epsilon, memory, cell, seed, run, episode, *how = row
        if (how[0] == SHARES) != of_shares or episode is None:
            continue
        which = environment, part, float(epsilon), memory, Instrument(*how)
        found.setdefault(which, {}).setdefault(cell, {}).setdefault((seed, run), []).append(number)
    columns = _Columns.of(table)
    return tuple(
        Panel(
            *which,
            curves={
                cell: tuple(_curve(*run, rows, columns) for run, rows in sorted(by_cell[cell].items()))
                for cell in in_order(by_cell)
            },
        )
        for which, by_cell in found.items()
    )


def bound_panels(shares: Iterable[Panel], others: Iterable[Panel]) -> tuple[Panel, ...]:
    """What the atoms bound proves, as panels of bits: where it was measured beside sufficiency, at checkpoints that no
    estimator of bits was given."""
    measured: dict[tuple, set[int]] = {}
    for panel in others:
        measured.setdefault(panel[:4], set()).update(_episodes_of(panel, "bits"))
    found = []
    for panel in shares:
        if not _episodes_of(panel, "atoms_bits") <= measured.get(panel[:4], set()):
            instrument = panel.instrument._replace(estimator="atoms")
            curves = {cell: tuple(map(_proven, each)) for cell, each in panel.curves.items()}
            found.append(panel._replace(instrument=instrument, curves=curves))
    return tuple(found)


def _episodes_of(panel: Panel, column: str) -> set[int]:
    return {
        int(episode)
        for curves in panel.curves.values()
        for curve in curves
        for episode in curve.episode[np.isfinite(curve.values[column])]
    }


def _proven(curve: Curve) -> Curve:
    bits = {"bits": curve.values["atoms_bits"], "standard_error": curve.values["atoms_standard_error"]}
    return curve._replace(values=_with_fraction(curve.values | bits), warnings={})


def counted(panel: Panel, cell: str) -> tuple[tuple[Curve, ...], bool]:
    """The curves of a cell that correlations and claims count, and whether they suffice for a verdict.

    They suffice if they are the full scale's, of at least four seeds: then these are counted, at the checkpoints of
    `counted_episodes`. Otherwise all curves are counted as they are.
    """
    curves, episodes = panel.curves.get(cell, ()), counted_episodes(panel)
    having = [curve for curve in curves if episodes and set(episodes) <= _full_scale(panel, curve)]
    there = tuple(curve.where(np.isin(curve.episode, episodes)) for curve in having)
    return (there, True) if len(there) >= MIN_SEEDS else (curves, False)


def counted_episodes(panel: Panel) -> tuple[int, ...]:
    """The checkpoints at which the cells of a panel are counted: the same for each cell, as many as are found, so that
    no cell loses its four seeds. Only where something was measured matters, not what."""
    having = [[_full_scale(panel, curve) for curve in curves] for curves in panel.curves.values()]
    cells = [each for each in (list(filter(_suffice, each)) for each in having) if len(each) >= MIN_SEEDS]
    if not cells:
        return ()
    found = [each for cell in cells for each in cell] + _shared_by_fewer(cells)
    choices = sorted({tuple(sorted(each)) for each in found if _suffice(each)})
    kept = [one for one in choices if all(sum(each.issuperset(one) for each in cell) >= MIN_SEEDS for cell in cells)]
    return max(kept, key=len, default=())


def _shared_by_fewer(cells: list[list[set[int]]]) -> list[set[int]]:
    """What all curves share, and what they share when one after the other is left out, that of the fewest checkpoints
    first, until no cell has more than four."""
    here = [(number, each) for number, cell in enumerate(cells) for each in cell]
    found = []
    while True:
        found.append(set.intersection(*(each for _, each in here)))
        sizes = Counter(number for number, _ in here)
        spare = [(number, each) for number, each in here if sizes[number] > MIN_SEEDS]
        if not spare or all(each == found[-1] for _, each in here):
            return found
        here.remove(min(spare, key=lambda one: len(one[1])))


def _full_scale(panel: Panel, curve: Curve) -> set[int]:
    """The checkpoints of the full scale that a curve has."""
    return set(curve.known().episode.tolist()).intersection(FULL_EPISODES if panel.instrument.N == FULL_PAIRS else ())


def _suffice(episodes: set[int]) -> bool:
    """From the first episode to the last in no step that is too wide?"""
    there = sorted(episodes)
    has_ends = there[:1] + there[-1:] == [FULL_EPISODES[0], FULL_EPISODES[-1]]
    return has_ends and max(later - one for one, later in pairwise(there)) <= WIDEST_STEP


def are_pair(one: Panel, other: Panel) -> bool:
    """May the two parts of a belief share an axis? They need the same instrument, except for M: an exact filter, such
    as that of the irrelevant part, has no particles."""
    alike = (one.memory, one.epsilon, one.instrument[:3]) == (other.memory, other.epsilon, other.instrument[:3])
    particles = {one.instrument.M, other.instrument.M}
    return alike and (len(particles) == 1 or None in particles)


def band(curves: Iterable[Curve], column: str) -> Band:
    """Over the seeds that have this column; empty if none has."""
    return _band([(curve.episode, curve.values[column]) for curve in curves])


def return_band(returns: Iterable[Returns]) -> Band:
    """Of the evaluations."""
    return _band([(each.episode, each.values) for each in returns])


def failed_fits(curves: Iterable[Curve]) -> list[tuple[Curve, int, float]]:
    """The checkpoints whose fit failed, and the bits there: marked in every chart, and counted as they are."""
    return [
        (curve, int(episode), float(bits))
        for curve in curves
        for episode, bits in zip(curve.episode, curve.values["bits"], strict=True)
        if _fit_failed(curve, int(episode))
    ]


def without_failed_fits(curve: Curve) -> Curve:
    """Its bits are NaN where the fit failed."""
    failed = np.array([_fit_failed(curve, int(episode)) for episode in curve.episode], bool)
    return curve._replace(values=curve.values | {"bits": np.where(failed, np.nan, curve.values["bits"])})


def _fit_failed(curve: Curve, episode: int) -> bool:
    return FAILED in curve.warnings.get(episode, "")


def in_order(cells: Iterable[str]) -> list[str]:
    """Without repetition, the paper's first."""
    found = list(dict.fromkeys(cells))
    return sorted(found, key=lambda cell: CELLS.index(cell) if cell in CELLS else len(CELLS))


def _band(curves: list[tuple[np.ndarray, np.ndarray]]) -> Band:
    known = [{int(e): float(v) for e, v in zip(*curve, strict=True) if math.isfinite(v)} for curve in curves]
    known = [values for values in known if values]
    shared = sorted(set.intersection(*map(set, known))) if known else []
    if not shared:
        return Band(np.zeros(0, int), *[np.zeros(0)] * 3)
    stack = np.array([[values[episode] for episode in shared] for values in known])
    return Band(np.array(shared, int), stack.mean(axis=0), stack.min(axis=0), stack.max(axis=0))


class _Columns(NamedTuple):
    """A table as arrays."""

    episode: list[Any]
    warnings: list[str | None]
    numbers: dict[str, Float[np.ndarray, " rows"]]  # NaN where they are null, too
    known: dict[str, Bool[np.ndarray, " rows"]]  # not null

    @classmethod
    def of(cls, table: polars.DataFrame) -> "_Columns":
        names = [name for name in table.columns if name not in _ABOUT]
        numbers = {name: table[name].cast(polars.Float64).to_numpy() for name in names}
        known = {name: table[name].is_not_null().to_numpy() for name in names}
        return cls(table["episode"].to_list(), table["warnings"].to_list(), numbers, known)


def _curve(seed: int, run: str, rows: list[int], columns: _Columns) -> Curve:
    """A checkpoint that was measured twice, with controls and without, has the values of both."""
    by_episode: dict[int, list[int]] = {}
    for row in rows:
        by_episode.setdefault(columns.episode[row], []).append(row)
    episodes = sorted(by_episode)
    first = [by_episode[episode][0] for episode in episodes]
    values = {name: numbers[first] for name, numbers in columns.numbers.items()}
    warnings = {episode: columns.warnings[row] for episode, row in zip(episodes, first, strict=True)}
    for place, episode in enumerate(episodes):
        for row in by_episode[episode][1:]:
            warnings[episode] = columns.warnings[row] if warnings[episode] is None else warnings[episode]
            for name, numbers in columns.numbers.items():
                if not columns.known[name][by_episode[episode][0]] and np.isnan(values[name][place]):
                    values[name][place] = numbers[row]
    values["entropy"] = np.where(values["entropy_flagged"] == 0, values["entropy"], np.nan)
    # A difference of two estimates says something only where it exceeds its error.
    beyond = np.nan_to_num(2 * values["given_time_error"])
    values["given_time"] = np.where(values["given_time"] > beyond, values["given_time"], np.nan)
    found = {episode: text for episode, text in warnings.items() if text}
    return Curve(run, seed, np.array(episodes, int), _with_fraction(values), found)


def _with_fraction(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return values | {"fraction": np.where(values["entropy"] > 0, values["bits"] / values["entropy"], np.nan)}
