"""The best combination of several critics, judged on pairs that it was not fitted on.

For each of three splits of the pairs, three fifths train the critics (candidates.py), one fifth chooses the weights in
T = Σ w_k T_k, and one fifth judges T by the bound of Donsker and Varadhan,

    I(x; y) ≥ E_p[T] − log E_q[e^T],

with every judged x against 4,000 y of the judging and choosing fifths. (For this, critics in closed form are fitted
once more, on the choosing pairs too; no judged x or y is among them.) The bound is concave in the weights, so the best
ones can be found (judging.py). A judged score is at most the largest that the weights were fitted on: two outliers that
meet by chance would else be most of E_q[e^T]. If too few shuffled pairs make up E_q[e^T] to know it, the pairs
themselves are counted among the shuffles. The number is then at most log2 of the number of y that each x is compared
with. It reads "at least" there, and from two bits below that limit on.

One more fit has only half of the training pairs. Its loss shows what more pairs would gain. If the loss is large, the
number reads "too few pairs". The interval combines that loss, the scatter of the judged pairs, and 3 %.

`mutual_information(memory, belief)` is one call for your own data, with its shuffled control.
"""

import dataclasses
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.atoms import MLP, class_tables, mlp_tables, recurs
from beliefscope.information.bounds import Samples
from beliefscope.information.candidates import (
    SeparableSettings,
    gaussian_tables,
    regression_tables,
    separable_tables,
    student_tables,
)
from beliefscope.information.classical import cross_checks
from beliefscope.information.columns import independent_directions, ranks_and_length, set_features, standardised
from beliefscope.information.decoders import Family, Split, reading, splits
from beliefscope.information.entropy import discrete_entropy, row_labels
from beliefscope.information.interface import Estimate, Pair, checked_pair, in_threads, is_constant
from beliefscope.information.judging import Judged, Rules, Table, Where, Wheres, judged
from beliefscope.warning_signs import entropy_warning

LEAST_PAIRS = 1000
AT_LEAST = "at least: more cannot be told from so many pairs"
TOO_FEW = "too few pairs: with half of them it would read much less"


@dataclass(frozen=True)
class BestBoundSettings:
    """Which candidates there are, how they are fitted, combined and judged."""

    splits: int = 3
    most_choosing: int = 2000  # rows on which weights are chosen
    most_met: int = 4000  # y that a judged x meets, or as many as are judged
    most_turned: int = 64  # columns whose independent directions are sought
    most_regressed: int = 8  # columns of the side that a regression predicts
    most_of_student: int = 32  # columns of both sides together, for a t distribution
    clearly: float = 1.1  # times as much as ranks must independent directions show, if networks are to read them
    separable: SeparableSettings = field(default_factory=SeparableSettings)
    classifier: Family = MLP  # of atoms
    most_weight: float = 1.2  # of a candidate
    gain: float = 0.005  # nats that a combination must gain over the best candidate alone
    near: float = 2.0  # bits below log2 of the y that each x meets, from where on a number reads "at least"
    effective: float = 100.0  # shuffled pairs that E_q[e^T] must rest on
    errors: float = 2.0  # standard errors to each side of the interval
    rising: float = 2.0  # how often what half of the pairs lose is added above it
    unseen: float = 0.03  # of the bits, added above: what no candidate saw on known cases
    least: float = 0.02  # bits that are always added above
    few: float = 0.025  # of the bits: where half of the pairs lose more, there are too few


@dataclass(frozen=True, kw_only=True, eq=False)
class BestBoundEstimate(Estimate):
    """The bits of the combination, and of each candidate alone."""

    candidates: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    growth: float = 0.0  # bits that half of the training pairs lose
    checks: dict[str, float] = field(default_factory=dict)  # bits of KSG and the Gaussian formula, which are no bounds

    def __str__(self) -> str:
        said = ", ".join(f"{name} {bits:z.2f}" for name, bits in self.checks.items())
        return super().__str__() + (f"; checks: {said}" if said else "")


class _Candidate(NamedTuple):
    """Its scores on the choosing and on the judging rows of all splits."""

    name: str
    choosing: Table
    judging: Table


class _Sides(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class _Prepared(NamedTuple):
    """The columns as candidates read them."""

    plain: _Sides  # mean 0, deviation 1
    ranks: _Sides  # normal scores
    independent: _Sides  # normal scores of independent directions
    read: _Sides  # the columns and their principal directions
    atoms: _Sides  # the number of the distinct row that each row is


@dataclass(frozen=True)
class BestBound:
    """A lower bound on I(x; y), as tight as its candidates allow (docs/information.md)."""

    settings: BestBoundSettings = field(default_factory=BestBoundSettings)
    name = "best bound"

    def estimate(
        self, key: PRNGKeyArray, x: Any, y: Any, *, watch: Callable[[str], None] = lambda step: None
    ) -> BestBoundEstimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]; `watch` is told what is fitted next."""
        pair = checked_pair(x, y, sets_allowed=True)
        number, particles = len(pair.x), pair.y.shape[1] if pair.y.ndim == 3 else None
        require(
            number >= LEAST_PAIRS,
            rule=f"the best bound needs at least {LEAST_PAIRS} pairs",
            received=number,
            advice="measure on more pairs, 10000 where possible",
        )
        if is_constant(pair.x) or is_constant(pair.y):
            nothing = {"bits": 0.0, "standard_error": 0.0, "num_samples": number, "num_particles": particles}
            return BestBoundEstimate(**nothing, estimator=self.name)
        key_split, key_fit = jax.random.split(fast_key(key))
        parts = _with_half(splits(key_split, number, self.settings.splits))
        wheres = self._wheres(parts)
        prepared = _prepared(pair, self.settings.most_turned)
        candidates = self._candidates(key_fit, prepared, parts, wheres, watch)
        watch("cross-checks")
        checks = cross_checks(*prepared.plain)
        del prepared  # which tables of scores need no more: they have the room instead
        watch("their combination")
        rules = Rules(self.settings.most_weight, self.settings.gain, self.settings.effective)
        names, *tables = zip(*candidates, strict=True)
        found = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), judged(*tables, rules))
        estimate = self._report(found, list(names), number, particles, wheres.judging.y.shape[1])
        return replace(estimate, checks=checks)

    def _wheres(self, parts: Split) -> Wheres:
        """Every choosing x with every choosing y; every judged x with judged and choosing y, or the first of them."""
        choose, judge = (np.asarray(rows) for rows in parts[1:])
        some = choose[:, : self.settings.most_choosing]
        others = np.concatenate([judge, choose], axis=1)[:, : max(self.settings.most_met, judge.shape[1])]
        return Wheres(Where(some, some), Where(judge, others))

    def _candidates(
        self, key: PRNGKeyArray, prepared: _Prepared, parts: Split, wheres: Wheres, watch: Callable[[str], None]
    ) -> list[_Candidate]:
        key_separable, key_x, key_y = jax.random.split(key, 3)
        recurring = [recurs(atoms, parts) for atoms in prepared.atoms]
        found = []
        for name, (key_side, named) in {"y": (key_y, 1), "x": (key_x, 0)}.items():
            if recurring[named]:  # first, since a GPU fits networks while the processor goes on
                watch(f"classifiers of {name}'s atoms")
                both = prepared.atoms[named], parts, wheres
                networks = mlp_tables(
                    key_side, prepared.read[1 - named], *both, self.settings.classifier, turned=named == 0
                )
                gaussian = class_tables(prepared.plain[1 - named], *both, turned=named == 0)
                found.append(_Candidate(f"MLP of {name}'s atoms", *networks))
                found.append(_Candidate(f"Gaussians of {name}'s atoms", *gaussian))
        watch("Gaussian critics")
        given = {"Gaussian": prepared.plain, "Gaussian of ranks": prepared.ranks}
        given["Gaussian of independent directions"] = prepared.independent
        gaussians = {name: gaussian_tables(*sides, parts, wheres) for name, sides in given.items()}
        if not any(recurring):  # else classifiers see all there is
            _, of_ranks, of_directions = (float(np.mean(values)) for values, *_ in gaussians.values())
            read = prepared.independent if of_directions > self.settings.clearly * of_ranks else prepared.ranks
            found = self._of_continuous(key_separable, prepared.plain, read, parts, wheres, watch)
        return [_Candidate(name, *tables) for name, (_, *tables) in gaussians.items()] + found

    def _of_continuous(
        self, key: PRNGKeyArray, plain: _Sides, read: _Sides, parts: Split, wheres: Wheres, watch: Callable[[str], None]
    ) -> list[_Candidate]:
        """The separable critic, and regressions and a t distribution where there are few columns."""
        watch("separable critics")
        separable = separable_tables(key, Samples(*map(jnp.asarray, read)), parts, wheres, self.settings.separable)
        watch("regressions")
        found = [_Candidate("separable", *separable)]
        for name, (given, said) in {"y": plain, "x": plain[::-1]}.items():
            if said.shape[1] <= self.settings.most_regressed:
                some = regression_tables(given, said, parts, wheres, turned=name == "x")
                found.append(_Candidate(f"regression of {name}", *some))
        if plain.x.shape[1] + plain.y.shape[1] <= self.settings.most_of_student:
            found.append(_Candidate("Student's t", *student_tables(*plain, parts, wheres)))
        return found

    def _report(
        self, found: Judged, names: list[str], number: int, particles: int | None, shuffled: int
    ) -> BestBoundEstimate:
        """In bits. The last split is the one with half of the pairs."""
        whole, combined = slice(None, -1), found.combined
        weights = dict(zip(names, map(float, found.weights[whole].mean(axis=0)), strict=True))
        # A critic that has learnt to tell so many pairs apart knows little of those that are closer.
        learnt = math.log2(self.settings.separable.batch) - 1 if weights.get("separable", 0.0) >= 0.5 else np.inf
        rests_on_few = bool(np.any(combined.effective < self.settings.effective))
        values = (combined.safe if rests_on_few else combined.bound) / np.log(2)
        most = min(math.log2(shuffled) - self.settings.near, learnt)
        open_above = rests_on_few or bool(np.any(values[whole] > most))
        growth, count = float(values[0] - values[-1]), len(values) - 1
        variance = combined.safe_variance if rests_on_few else combined.variance
        within = float(np.mean(variance[whole])) / count / np.log(2) ** 2
        between = float(np.var(values[whole], ddof=1)) / count if count > 1 else 0.0
        # A critic that is 0 everywhere proves 0 bits.
        bits, error = max(float(values[whole].mean()), 0.0), float(np.sqrt(max(within, between)))
        below = max(self.settings.errors * error, self.settings.least)
        above = self.settings.errors * error + self.settings.rising * max(growth, 0.0)
        above += max(self.settings.unseen * bits, self.settings.least)
        few = bool(growth > max(self.settings.few * bits, 2 * error))
        return BestBoundEstimate(
            bits=bits,
            standard_error=error,
            interval=(bits - below, np.inf if open_above else bits + above),
            growth=growth,
            num_samples=number,
            num_particles=particles,
            estimator=self.name,
            ceiling=bits if open_above else None,
            warnings=(AT_LEAST,) * open_above + (TOO_FEW,) * few,
            candidates=dict(zip(names, map(float, found.alone[whole].mean(axis=0) / np.log(2)), strict=True)),
            weights=weights,
        )


@dataclass(frozen=True)
class Trusted(BestBound):
    """The older name of the default estimator."""

    def __post_init__(self):
        warnings.warn("Trusted() is now called BestBound()", DeprecationWarning, stacklevel=3)


def _with_half(parts: Split) -> Split:
    """And once more the first split, with half of its training rows, each twice."""
    train = np.asarray(parts.train[0])
    half = np.resize(train[: len(train) // 2], len(train))
    added = [half, *(np.asarray(rows[0]) for rows in parts[1:])]
    return Split(*(np.concatenate([rows, [more]]) for rows, more in zip(parts, added, strict=True)))


def _prepared(pair: Pair, most_turned: int) -> _Prepared:
    vectors = [side if side.ndim == 2 else set_features(side, side) for side in pair]
    work = [partial(does, side) for does in (partial(_columns, most_turned), row_labels) for side in vectors]
    *columns, atoms_x, atoms_y = in_threads(lambda each: each(), work)
    plain, ranks, turned, read = (_Sides(*each) for each in zip(*columns, strict=True))
    return _Prepared(plain, ranks, turned, read, _Sides(atoms_x, atoms_y))


def _columns(most_turned: int, side: np.ndarray) -> list[np.ndarray]:
    """All but the atoms."""
    columns = standardised(side)
    read = reading(columns)
    plain = read[:, : side.shape[1]]
    turned = ranks = ranks_and_length(columns, columns)
    if 1 < side.shape[1] <= most_turned:
        as_double = plain.astype(np.float64)
        turned = ranks_and_length(independent_directions(as_double), as_double)
    return [plain, ranks, turned, read]


_PATIENCE = 5.0  # seconds, after which it is said what is being done


def mutual_information(memory: Any, belief: Any, *, key: PRNGKeyArray | None = None) -> Estimate:
    """How many bits memories [N, m] and beliefs [N, d] share; a belief may also be a set of particles, [N, M, d].

    It takes NumPy, JAX and PyTorch arrays, those of PyTorch on the CPU. One row is one pair, and pairs should be
    independent of each other: one step of each episode. It needs some thousand pairs and some twenty seconds on one
    core. Without a key the same arrays always give the same number. `interval` says where the truth lies, `warnings`
    what makes the number doubtful, and `shuffled` what the same estimator reads when x and y are paired at random.
    Where beliefs recur, the number is compared with H(b).
    """
    key_measure, key_shuffle, key_control = jax.random.split(fast_key(jax.random.key(0) if key is None else key), 3)
    pair = checked_pair(memory, belief, sets_allowed=True, names=("memory", "belief"))
    say = _Progress()
    found = BestBound().estimate(key_measure, pair.x, pair.y, watch=say)
    say("the shuffled control")
    once = BestBound(BestBoundSettings(splits=1))  # that it shows nothing, one split tells as well as three
    shuffled = once.estimate(key_control, pair.x, generator(key_shuffle).permutation(pair.y))
    doubts: tuple[str, ...] = ()
    if pair.y.ndim == 2 and not (entropy := discrete_entropy(pair.y)).flagged:
        doubts = entropy_warning(found.bits, found.standard_error, entropy.bits)
    return dataclasses.replace(found, shuffled=shuffled, warnings=found.warnings + doubts)


class _Progress:
    """A line on stderr for each step that begins after the first seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, step: str) -> None:
        taken = time.monotonic() - self._start
        if taken > _PATIENCE:
            print(f"mutual_information: {taken:.0f} s, now {step}", file=sys.stderr, flush=True)
