"""The best combination of several critics, judged on pairs that none of them has seen.

For each of three splits of the pairs, three fifths train the critics (candidates.py), one fifth chooses how much of
each goes into T = Σ w_k T_k, and one judges it by the bound of Donsker and Varadhan,

    I(x; y) ≥ E_p[T] − log E_q[e^T],

with every judged x against every y of the judging and choosing fifths: all shuffles there are. The bound is concave in
the weights, so that the best ones are found. Where so few shuffled pairs make up E_q[e^T] that it is not known, the
pairs themselves are counted among the shuffles. The number is then at most log2 of how many y each x has met, and reads
"at least".
"""

import math
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
    Table,
    Where,
    classes_of,
    mlp_logits,
    recurs,
    separable_tables,
)
from beliefscope.information.check import Pair, checked_pair, in_single_precision, is_constant
from beliefscope.information.decoders import Split, reading, splits
from beliefscope.information.entropy import row_labels
from beliefscope.information.interface import NEAR, Estimate
from beliefscope.information.normal_scores import normal_scores
from beliefscope.information.scores import Samples
from beliefscope.information.seeding import generator
from beliefscope.information.set_features import set_features

LEAST_PAIRS = 1000
AT_LEAST = "at least: more cannot be told from so many pairs"


@dataclass(frozen=True)
class BestBoundSettings:
    """How the candidates are combined and judged."""

    splits: int = 3
    shuffles: int = 1_000_000  # shuffled pairs on which weights are chosen
    most_weight: float = 1.2  # of a candidate
    gain: float = 0.005  # nats that a combination must gain over the best candidate alone
    effective: float = 100.0  # shuffled pairs that E_q[e^T] must rest on


@dataclass(frozen=True, kw_only=True, eq=False)
class BestBoundEstimate(Estimate):
    """The bits of the combination, and of each candidate alone."""

    candidates: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


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

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> BestBoundEstimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]."""
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
        parts = splits(key_split, number, self.settings.splits)
        wheres = [
            (Where(choose, choose), Where(judge, np.concatenate([judge, choose])))
            for choose, judge in zip(parts.choose, parts.judge, strict=True)
        ]
        by_split = _candidates(key_fit, _prepared(pair), parts, wheres)
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
        bounds = [(0.0, self.settings.most_weight)] * len(tables)
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
        ceiling = float(np.log2(shuffled))
        combined = [value for _, value, _ in found]
        open_above = any(self._is_open(value, ceiling) for value in combined)
        values = np.array([value.safe if open_above else value.bound for value in combined]) / np.log(2)
        within = float(np.mean([value.variance for value in combined])) / len(found) / np.log(2) ** 2
        between = float(np.var(values, ddof=1)) / len(found) if len(found) > 1 else 0.0
        return BestBoundEstimate(
            bits=float(values.mean()),
            standard_error=float(np.sqrt(max(within, between))),
            num_samples=number,
            num_particles=particles,
            estimator=self.name,
            ceiling=ceiling if open_above else None,
            warnings=(AT_LEAST,) if open_above else (),
            candidates={
                name: float(np.mean([alone[place].bound for _, _, alone in found]) / np.log(2))
                for place, name in enumerate(names)
            },
            weights={
                name: float(np.mean([weights[place] for weights, _, _ in found])) for place, name in enumerate(names)
            },
        )

    def _is_open(self, value: _Value, ceiling: float) -> bool:
        return value.effective < self.settings.effective or value.safe > (ceiling - NEAR) * math.log(2)


class _Sides(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class _Prepared(NamedTuple):
    """The columns as candidates read them."""

    plain: _Sides  # mean 0, deviation 1, double precision
    ranks: _Sides  # normal scores
    read: _Sides  # the columns and their principal directions
    atoms: _Sides  # the number of the distinct row that each row is


def _prepared(pair: Pair) -> _Prepared:
    x, y = in_single_precision("x", pair.x), in_single_precision("y", pair.y)
    if y.ndim == 3:
        y = set_features(y, y)
    read = [reading(side) for side in (x, y)]
    plain = [side[:, : side.shape[1] // 2].astype(np.float64) for side in read]
    ranks = [normal_scores(side, side) for side in (x, y)]
    return _Prepared(*(_Sides(*each) for each in (plain, ranks, read, (row_labels(x), row_labels(y)))))


def _candidates(
    key: PRNGKeyArray, prepared: _Prepared, parts: Split, wheres: list[tuple[Where, Where]]
) -> list[list[_Candidate]]:
    """Those of each split."""
    key_separable, key_x, key_y = jax.random.split(key, 3)
    found: list[list[_Candidate]] = [[] for _ in wheres]
    for name, sides in {"Gaussian": prepared.plain, "Gaussian of ranks": prepared.ranks}.items():
        for place, where in enumerate(wheres):
            train, choose = np.asarray(parts.train[place]), np.asarray(parts.choose[place])
            found[place].append(_Candidate(name, *_gaussian(sides, train, choose, where)))
    with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
        tables = separable_tables(key_separable, Samples(*map(jnp.asarray, prepared.ranks)), parts, wheres)
    for place, pair in enumerate(tables):
        found[place].append(_Candidate("separable", *pair))
    for name, (key_side, reads, named) in {"y": (key_y, 0, 1), "x": (key_x, 1, 0)}.items():
        atoms = prepared.atoms[named]
        if not recurs(atoms, parts):
            continue
        answers = mlp_logits(key_side, prepared.read[reads], atoms, parts)
        for place, where in enumerate(wheres):
            rows = [each.y if named == 0 else each.x for each in where]
            classes, logits = answers[place]
            some = [
                classes.answers(logits[each], one, turned=named == 0) for each, one in zip(rows, where, strict=True)
            ]
            found[place].append(_Candidate(f"MLP of {name}'s atoms", *some))
            some = _gaussian_classes(prepared.plain[reads], atoms, parts, place, rows, where, turned=named == 0)
            found[place].append(_Candidate(f"Gaussians of {name}'s atoms", *some))
    return found


def _gaussian(sides: _Sides, train, choose, where: tuple[Where, Where]) -> tuple[Table, Table]:
    """As many directions as suit the choosing rows; judging rows are scored by a critic that was fitted on both."""
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
    return critic.table(x[where[0].x], y[where[0].y]), judging.table(x[where[1].x], y[where[1].y])


def _gaussian_classes(
    x: Float[np.ndarray, "n d"], atoms, parts: Split, place: int, rows, where: tuple[Where, Where], *, turned: bool
) -> list[Table]:
    train, choose = np.asarray(parts.train[place]), np.asarray(parts.choose[place])
    classes = classes_of(atoms, train, seen=1)
    classifier = GaussianClasses(x, classes, train)
    classifier.choose(x, choose)
    return [
        classes.answers(classifier.logits(x[each]), one, turned=turned) for each, one in zip(rows, where, strict=True)
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
