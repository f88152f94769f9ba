"""The best combination of several critics, judged on pairs that it was not fitted on.

For each of three splits of the pairs, three fifths train the critics (candidates.py), one fifth chooses how much of
each goes into T = Σ w_k T_k, and one judges it by the bound of Donsker and Varadhan,

    I(x; y) ≥ E_p[T] − log E_q[e^T],

with every judged x against every y of the judging and choosing fifths. (Critics in closed form are fitted once more for
that, on the choosing pairs too; no judged x or y is among them.) The bound is concave in the weights, so that the best
ones are found. Where so few shuffled pairs make up E_q[e^T] that it is not known, the
pairs themselves are counted among the shuffles. The number is then at most log2 of how many y each x has met, and reads
"at least".

One more fit has only half of the training pairs. What it loses says what more pairs would gain: where that is much, the
number reads "too few pairs". The interval is made of that, of the scatter of the judged pairs, and of 3 %.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.information.candidates import (
    Gaussian,
    GaussianClasses,
    Regression,
    Table,
    Where,
    classes_of,
    mlp_logits,
    recurs,
    separable_tables,
)
from beliefscope.information.check import Pair, checked_pair, is_constant
from beliefscope.information.decoders import Split, reading, splits
from beliefscope.information.entropy import row_labels
from beliefscope.information.interface import Estimate
from beliefscope.information.normal_scores import independent_directions, ranks_and_length, standardised
from beliefscope.information.scores import Samples
from beliefscope.information.seeding import generator
from beliefscope.information.separable import BATCH
from beliefscope.information.set_features import set_features

LEAST_PAIRS = 1000
_MOST_REGRESSED = 8  # columns of the side that a regression predicts
_CLEARLY = 1.1  # times as much as ranks must independent directions show, if networks are to read them
_MOST_TURNED = 64  # columns whose independent directions are sought
AT_LEAST = "at least: more cannot be told from so many pairs"
TOO_FEW = "too few pairs: with half of them it would read much less"


@dataclass(frozen=True)
class BestBoundSettings:
    """How the candidates are combined and judged."""

    splits: int = 3
    shuffles: int = 1_000_000  # shuffled pairs on which weights are chosen
    most_weight: float = 1.2  # of a candidate
    gain: float = 0.005  # nats that a combination must gain over the best candidate alone
    near: float = 1.5  # bits below log2 of the y that each x meets, from where on a number reads "at least"
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


class _Value(NamedTuple):
    """In nats."""

    bound: float
    safe: float  # with the pairs themselves among the shuffles
    effective: float  # of the shuffled pairs
    variance: float  # of the bound


class _Candidate(NamedTuple):
    name: str
    choosing: Table
    judging: Table


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
        wheres = [
            (Where(choose, choose), Where(judge, np.concatenate([judge, choose])))
            for choose, judge in zip(parts.choose, parts.judge, strict=True)
        ]
        by_split = _candidates(key_fit, _prepared(pair), parts, wheres, watch)
        watch("their combination")
        found = [self._judged(generator(jax.random.fold_in(key, place)), each) for place, each in enumerate(by_split)]
        return self._report(found, [each.name for each in by_split[0]], number, particles, len(wheres[0][1].y))

    def _judged(
        self, draw: np.random.Generator, candidates: list[_Candidate]
    ) -> tuple[Float[np.ndarray, " k"], _Value, list[_Value]]:
        """The weights, the value of the combination, and that of each candidate alone."""
        weights = self._weights(draw, [each.choosing for each in candidates])
        combined, alone = jnp.zeros(()), []
        for weight, each in zip(weights, candidates, strict=True):
            scores = each.judging.scores()
            alone.append(_value(scores))
            combined = combined + weight * scores
        return weights, _value(combined), alone

    def _weights(self, draw: np.random.Generator, tables: list[Table]) -> Float[np.ndarray, " k"]:
        """Those of the best bound on the choosing rows, with the pairs themselves among the shuffles."""
        shuffled, own = [], []
        place = other = np.zeros(0, int)
        for table in tables:
            scores = np.asarray(table.scores())
            if not own:
                place = draw.integers(0, len(scores), self.settings.shuffles)
                other = (place + draw.integers(1, len(scores), self.settings.shuffles)) % len(scores)
            shuffled.append(scores[place, other])
            own.append(np.diagonal(scores))
        given = jnp.asarray(np.stack(shuffled)), jnp.asarray(np.stack(own))

        def loss(weights: Float[np.ndarray, " k"]) -> tuple[float, Float[np.ndarray, " k"]]:
            value, slope = _loss(jnp.asarray(weights, jnp.float32), *given)
            return float(value), np.asarray(slope, np.float64)

        alone = np.eye(len(tables))
        losses = [loss(weights)[0] for weights in alone]
        best = alone[int(np.argmin(losses))] if min(losses) < 0 else np.zeros(len(tables))
        bounds = [(0.0, self.settings.most_weight if lost < 0 else 0.0) for lost in losses]  # what fails alone is out
        found = minimize(loss, best, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25})
        return found.x if found.fun < min(*losses, 0.0) - self.settings.gain else best

    def _report(
        self,
        found: list[tuple[Float[np.ndarray, " k"], _Value, list[_Value]]],
        names: list[str],
        number: int,
        particles: int | None,
        shuffled: int,
    ) -> BestBoundEstimate:
        *found, half = found
        ceiling = math.log2(shuffled)
        combined = [value for _, value, _ in found]
        weighted = dict(zip(names, np.mean([weights for weights, _, _ in found], axis=0), strict=True))
        # A critic that has learnt to tell so many pairs apart knows little of those that are closer.
        learnt = math.log2(BATCH) - 1 if weighted.get("separable", 0.0) >= 0.5 else np.inf
        open_above = any(self._is_open(value, min(ceiling - self.settings.near, learnt)) for value in combined)
        values = np.array([value.safe if open_above else value.bound for value in combined]) / np.log(2)
        growth = (combined[0].safe - half[1].safe) / np.log(2)
        within = float(np.mean([value.variance for value in combined])) / len(found) / np.log(2) ** 2
        between = float(np.var(values, ddof=1)) / len(found) if len(found) > 1 else 0.0
        bits, error = float(values.mean()), float(np.sqrt(max(within, between)))
        above = self.settings.errors * error + self.settings.rising * max(growth, 0.0)
        above += max(self.settings.unseen * bits, self.settings.least)
        few = bool(growth > max(self.settings.few * bits, 2 * error))
        return BestBoundEstimate(
            bits=bits,
            standard_error=error,
            interval=(bits - self.settings.errors * error, np.inf if open_above else bits + above),
            growth=growth,
            num_samples=number,
            num_particles=particles,
            estimator=self.name,
            ceiling=bits if open_above else None,
            warnings=(AT_LEAST,) * open_above + (TOO_FEW,) * few,
            candidates={
                name: float(np.mean([alone[place].bound for _, _, alone in found]) / np.log(2))
                for place, name in enumerate(names)
            },
            weights={name: float(weight) for name, weight in weighted.items()},
        )

    def _is_open(self, value: _Value, most: float) -> bool:
        return value.effective < self.settings.effective or value.bound > most * math.log(2)


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


class _Sides(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class _Prepared(NamedTuple):
    """The columns as candidates read them."""

    plain: _Sides  # mean 0, deviation 1, double precision
    ranks: _Sides  # normal scores
    independent: _Sides  # normal scores of independent directions
    read: _Sides  # the columns and their principal directions
    atoms: _Sides  # the number of the distinct row that each row is


def _prepared(pair: Pair) -> _Prepared:
    vectors = [side if side.ndim == 2 else set_features(side, side) for side in pair]
    atoms = [row_labels(side) for side in vectors]
    x, y = (standardised(side) for side in vectors)
    read = [reading(side) for side in (x, y)]
    plain = [side[:, : side.shape[1] // 2].astype(np.float64) for side in read]
    ranks = [ranks_and_length(side, side) for side in (x, y)]
    turned = [
        ranks_and_length(independent_directions(side), side) if 1 < side.shape[1] <= _MOST_TURNED else ranked
        for side, ranked in zip(plain, ranks, strict=True)
    ]
    return _Prepared(*(_Sides(*each) for each in (plain, ranks, turned, read, atoms)))


def _candidates(
    key: PRNGKeyArray,
    prepared: _Prepared,
    parts: Split,
    wheres: list[tuple[Where, Where]],
    watch: Callable[[str], None],
) -> list[list[_Candidate]]:
    """Those of each split."""
    key_separable, key_x, key_y = jax.random.split(key, 3)
    watch("Gaussian critics")
    found, clearer = _of_gaussians(prepared, parts, wheres)
    recurring = [recurs(atoms, parts) for atoms in prepared.atoms]
    if not any(recurring):  # else classifiers see all there is
        watch("separable critics")
        sides = prepared.independent if clearer else prepared.ranks
        more = _of_continuous(key_separable, prepared.plain, sides, parts, wheres)
        found = [[*one, *other] for one, other in zip(found, more, strict=True)]
    for name, (key_side, named) in {"y": (key_y, 1), "x": (key_x, 0)}.items():
        if recurring[named]:
            watch(f"classifiers of {name}'s atoms")
            more = _of_atoms(key_side, prepared, named, name, parts, wheres)
            found = [[*one, *other] for one, other in zip(found, more, strict=True)]
    return found


def _of_gaussians(
    prepared: _Prepared, parts: Split, wheres: list[tuple[Where, Where]]
) -> tuple[list[list[_Candidate]], bool]:
    """And whether independent directions show clearly more than the columns do."""
    given = {"Gaussian": prepared.plain, "Gaussian of ranks": prepared.ranks}
    given["Gaussian of independent directions"] = prepared.independent
    found: list[list[_Candidate]] = [[] for _ in wheres]
    shown = dict.fromkeys(given, 0.0)
    for name, sides in given.items():
        for place, where in enumerate(wheres):
            train, choose = np.unique(parts.train[place]), np.asarray(parts.choose[place])
            value, *tables = _gaussian(sides, train, choose, where)
            found[place].append(_Candidate(name, *tables))
            shown[name] += value
    _, of_ranks, of_directions = shown.values()
    return found, of_directions > _CLEARLY * of_ranks


def _of_continuous(
    key: PRNGKeyArray, plain: _Sides, read: _Sides, parts: Split, wheres: list[tuple[Where, Where]]
) -> list[list[_Candidate]]:
    """The separable critic, and regressions where there are few columns."""
    with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
        tables = separable_tables(key, Samples(*map(jnp.asarray, read)), parts, wheres)
    found = [[_Candidate("separable", *pair)] for pair in tables]
    for place, where in enumerate(wheres):
        train = np.unique(parts.train[place])
        for name, (given, said) in {"y": plain, "x": plain[::-1]}.items():
            if said.shape[1] <= _MOST_REGRESSED:
                some = _regression(given, said, train, where, turned=name == "x")
                found[place].append(_Candidate(f"regression of {name}", *some))
    return found


def _of_atoms(
    key: PRNGKeyArray, prepared: _Prepared, named: int, name: str, parts: Split, wheres: list[tuple[Where, Where]]
) -> list[list[_Candidate]]:
    """Classifiers that read the other side and name the atom of side `named`."""
    atoms, turned, found = prepared.atoms[named], named == 0, []
    answers = mlp_logits(key, prepared.read[1 - named], atoms, parts)
    for place, where in enumerate(wheres):
        rows = [each.y if turned else each.x for each in where]
        classes, logits = answers[place]
        networks = [classes.answers(logits[each], one, turned=turned) for each, one in zip(rows, where, strict=True)]
        gaussians = _gaussian_classes(prepared.plain[1 - named], atoms, parts, place, rows, where, turned=turned)
        both = {"MLP": networks, "Gaussians": gaussians}
        found.append([_Candidate(f"{kind} of {name}'s atoms", *tables) for kind, tables in both.items()])
    return found


def _gaussian(sides: _Sides, train, choose, where: tuple[Where, Where]) -> tuple[float, Table, Table]:
    """As many directions as suit the choosing rows, and their value there; judging rows are scored by a critic that
    was fitted on both.
    """
    x, y = (np.asarray(side, np.float64) for side in sides)
    critic, best, kept = Gaussian(x[train], y[train]), 0.0, 0
    for number in critic.numbers():
        critic.kept = number
        value = _value(critic.table(x[choose], y[choose]).scores()).safe
        if value > best:
            best, kept = value, number
    critic.kept = kept
    both = np.concatenate([train, choose])
    judging = Gaussian(x[both], y[both], kept)
    return best, critic.table(x[where[0].x], y[where[0].y]), judging.table(x[where[1].x], y[where[1].y])


def _regression(given, said, train, where: tuple[Where, Where], *, turned: bool) -> list[Table]:
    critic = Regression(given[train], said[train])
    rows = [(each.y, each.x) if turned else (each.x, each.y) for each in where]
    return [critic.table(given[of_given], said[of_said], turned=turned) for of_given, of_said in rows]


def _gaussian_classes(
    x: Float[np.ndarray, "n d"], atoms, parts: Split, place: int, rows, where: tuple[Where, Where], *, turned: bool
) -> list[Table]:
    train, choose = np.unique(parts.train[place]), np.asarray(parts.choose[place])
    chosen = GaussianClasses(x, classes_of(atoms, train, seen=1), train)
    chosen.choose(x, choose)
    both = np.concatenate([train, choose])
    judging = GaussianClasses(x, classes_of(atoms, both, seen=1), both, like=chosen)
    return [
        each.classes.answers(each.logits(x[some]), one, turned=turned)
        for each, some, one in zip((chosen, judging), rows, where, strict=True)
    ]


def _value(scores: Float[Array, "n m"]) -> _Value:
    """Of scores whose first n columns are those of the rows' own y."""
    return _Value(*(float(part) for part in _bound(scores)))


@jax.jit
def _bound(scores: Float[Array, "n m"]):
    number, columns = scores.shape
    own = jnp.diagonal(scores)
    top = jnp.max(scores)
    shared, of_own = jnp.exp(scores - top), jnp.exp(own - top)
    off = jnp.where(jnp.eye(number, columns, dtype=bool), 0, shared)
    total = jnp.sum(jnp.sum(off, axis=1))
    effective = total**2 / jnp.maximum(jnp.sum(jnp.sum(off**2, axis=1)), 1e-30)
    bound = jnp.mean(own) - top - jnp.log(jnp.maximum(total, 1e-30) / (number * (columns - 1)))
    safe = jnp.mean(own) - top - jnp.log((total + jnp.sum(of_own)) / (number * columns))
    return bound, safe, effective, jnp.var(own) / number + 1 / jnp.maximum(effective, 1.0)


@jax.jit
@jax.value_and_grad
def _loss(
    weights: Float[Array, " k"], shuffled: Float[Array, "k shuffles"], own: Float[Array, "k n"]
) -> Float[Array, ""]:
    """Minus the bound."""
    number = own.shape[1]
    off, on = weights @ shuffled, weights @ own
    of_off = jax.nn.logsumexp(off) + np.log((1 - 1 / number) / len(off))
    return jnp.logaddexp(of_off, jax.nn.logsumexp(on) - 2 * np.log(number)) - jnp.mean(on)
