"""Tables of scores, what one proves, and the weights with which several prove most.

A table has the scores of every x of some rows with every y of others, in the form that needs the least memory. It is a
tree of arrays, so that those of several splits can be stacked. All splits are one compiled program: the weights are
found on each split's choosing rows, and the combination is judged on its judging rows. Tables are made, added up and
discarded one by one.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from beliefscope.information.networks import Codes, on_each

KEPT = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # directions, of which the choosing rows choose
LIMIT = 14.0  # nats, 20 bits: more than samples in their thousands could show


class Products(eqx.Module):
    """T = limit(f(x)·g(y) + a(x) + b(y))."""

    x: Codes
    y: Codes
    limit: float = eqx.field(static=True, default=LIMIT)

    def scores(self) -> Float[Array, "n m"]:
        return limited(_products(self.x, self.y), self.limit)


class Elliptical(eqx.Module):
    """T = limit(a(x) + b(y) − power log(1 + (f(x)·g(y) + p(x) + q(y)) / freedom))."""

    x: Codes
    y: Codes
    alone_x: Float[Array, " n"]
    alone_y: Float[Array, " m"]
    freedom: Float[Array, ""]
    power: Float[Array, ""]

    def scores(self) -> Float[Array, "n m"]:
        lengths = jnp.maximum(_products(self.x, self.y), 0)
        scores = self.alone_x[:, None] + self.alone_y - self.power * jnp.log1p(lengths / self.freedom)
        return limited(scores, LIMIT)


class Answers(eqx.Module):
    """T is the entry of each x's row for each y's class; `turned` where classes are of x and rows of y.

    `scores` takes one split; those of all splits are made side by side.
    """

    rows: Float[Array, "*splits n classes"]
    classes: Int[Array, "*splits m"]
    turned: bool = eqx.field(static=True, default=False)

    def scores(self) -> Float[Array, "n m"]:
        scores = jnp.asarray(self.rows)[:, jnp.asarray(self.classes)]
        return scores.T if self.turned else scores


class Residuals(eqx.Module):
    """T = Σ log f(y_i − p_i(x)) + a(y), with the logarithm of f on a fine grid."""

    predicted: Float[Array, "n d"]  # p(x), in steps of each column's grid
    y: Float[Array, "m d"]  # the same, from the start of the grid
    offset: Float[Array, " m"]
    densities: Float[Array, "d grid"]
    turned: bool = eqx.field(static=True, default=False)

    def scores(self) -> Float[Array, "n m"]:
        scores = _residuals(self.predicted, self.y, self.offset, self.densities)
        return scores.T if self.turned else scores


class Where(NamedTuple):
    """The rows whose x is scored, and those with whose y: the same, then others."""

    x: Int[np.ndarray, " n"]
    y: Int[np.ndarray, " m"]


class Wheres(NamedTuple):
    """Of all splits, the split the leading axis."""

    choosing: Where
    judging: Where

    def of(self, place: int) -> tuple[Where, Where]:
        """Those of one split."""
        choosing, judging = (Where(each.x[place], each.y[place]) for each in self)
        return choosing, judging


Table = Products | Elliptical | Answers | Residuals


def stacked(tables: list[Table]) -> Table:
    """Those of several splits as one, the split the leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *tables)


def _products(x: Codes, y: Codes) -> Float[Array, "n m"]:
    with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
        return jnp.asarray(x.vector) @ y.vector.T + x.offset[:, None] + y.offset


def _residuals(predicted, y, offset, densities) -> Float[Array, "n m"]:
    def add(total, column):
        of_x, of_y, density = column
        place = (of_y - of_x[:, None]).astype(jnp.int32)  # beyond the grid: its ends, where f is faint
        return total + density[jnp.clip(place, 0, len(density) - 1)], None

    start = jnp.broadcast_to(offset, (len(predicted), len(y)))
    return limited(lax.scan(add, start, (predicted.T, y.T, densities))[0], LIMIT)


def limited(scores, limit: float):
    return limit * jnp.tanh(scores / limit)


_COLUMNS = 500  # y of the choosing rows that weights are fitted on, against all their x
_LOOKS = 30  # at the loss, at most
_ENOUGH = 1e-5  # nats: a step that promises less is the last
_SWEEPS = 10  # of the descent in single weights on a quadratic model
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the way from the safe weights to the free ones
_FEW = 1e-30


class Value(NamedTuple):
    """In nats; each entry may be an array."""

    bound: Float[Array, "*splits"]
    safe: Float[Array, "*splits"]  # with the pairs themselves among the shuffles
    effective: Float[Array, "*splits"]  # of the shuffled pairs
    variance: Float[Array, "*splits"]  # of the bound
    safe_variance: Float[Array, "*splits"]  # of the safe one


class Judged(NamedTuple):
    """Of each split."""

    weights: Float[Array, "splits k"]
    combined: Value
    alone: Float[Array, "splits k"]  # the bound of each candidate, in nats


class Rules(NamedTuple):
    """How weights are chosen."""

    most_weight: float
    gain: float  # nats that a combination must gain over the best candidate alone
    effective: float  # shuffled pairs that the mean of e^T must rest on, if the pairs themselves are left out of it


def value(scores: Float[Array, "n m"]) -> Value:
    """Of scores whose first n columns are those of the rows' own y."""
    number, columns = scores.shape
    own, top = jnp.diagonal(scores), jnp.max(scores)
    off = jnp.where(jnp.eye(number, columns, dtype=bool), 0, jnp.exp(scores - top))
    of_x, of_y = jnp.sum(off, axis=1), jnp.sum(off, axis=0)
    total = jnp.maximum(jnp.sum(of_x), _FEW)
    bound = jnp.mean(own) - top - jnp.log(total / (number * (columns - 1)))
    # Of as many equal scores, but also of as many pairs like the rows' own: none of these may have been met by chance.
    like_own = number * (columns - 1) * jnp.exp(-bound)
    effective = jnp.minimum(total**2 / jnp.maximum(jnp.sum(jnp.sum(off**2, axis=1)), _FEW), like_own)
    safe = jnp.mean(own) - top - jnp.log((total + jnp.sum(jnp.exp(own - top))) / (number * columns))
    # What one x and one y add to the bound, to first order, and single pairs of large score.
    variance = jnp.var(own - of_x * (number / total)) / number + jnp.var(of_y * (columns / total)) / columns
    return Value(bound, safe, effective, variance + 1 / jnp.maximum(effective, 1.0), jnp.var(own) / number)


def safe_value(scores: Float[Array, "n n"]) -> Float[Array, ""]:
    """The bound in nats with the pairs themselves among the shuffles, and nothing else."""
    return jnp.mean(jnp.diagonal(scores)) - jax.nn.logsumexp(scores) + np.log(scores.size)


@partial(jax.jit, static_argnames="rules")
def judged(choosing: Sequence[Table], judging: Sequence[Table], rules: Rules) -> Judged:
    """Of tables with a leading axis of splits, two for each candidate."""

    def one(choosing: Sequence[Table], judging: Sequence[Table]) -> Judged:
        with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
            seen = jnp.stack([table.scores() for table in choosing])
            weights = chosen_weights(seen, rules)
            largest = _largest(weights, seen)
        combined, alone = jnp.zeros(()), []
        for weight, table in zip(weights, judging, strict=True):
            scores = table.scores()
            alone.append(_alone(scores))
            combined = combined + weight * scores
        # Heavy tails meet in scores far beyond those that the weights were chosen by: one such pair would be most of
        # E_q[e^T].
        return Judged(weights, value(jnp.minimum(combined, largest)), jnp.stack(alone))

    return on_each(one, choosing, judging)


def _alone(scores: Float[Array, "n m"]) -> Float[Array, ""]:
    """The bound, against the rows' own y alone: half of the work."""
    number = len(scores)
    square = jnp.where(jnp.eye(number, dtype=bool), -jnp.inf, scores[:, :number])
    return jnp.mean(jnp.diagonal(scores)) - jax.nn.logsumexp(square) + np.log(number * (number - 1))


def chosen_weights(scores: Float[Array, "k n n"], rules: Rules) -> Float[Array, " k"]:
    """The best weights by the bound itself, or the nearest ones for which enough shuffled pairs make up its mean."""
    free, safe = lax.map(lambda own: _best_weights(scores, rules, own), jnp.array([0.0, 1.0]))

    def is_known(share: Float[Array, ""]) -> Float[Array, ""]:
        mixed = jnp.tensordot(share * free + (1 - share) * safe, scores, axes=1)
        return jnp.where(value(mixed).effective >= rules.effective, share, 0)

    def shows(weights: Float[Array, " k"]) -> Bool[Array, ""]:
        return value(jnp.tensordot(weights, scores, axes=1)).safe > 0

    share = jnp.max(lax.map(is_known, jnp.array(_SHARES)))
    weights = share * free + (1 - share) * safe
    # Fitted on some of the shuffled pairs. Where all of them together show nothing, 0 is the better critic. The free
    # weights may do so where the information is infinite: then the safe ones are left.
    return jnp.where(shows(weights), weights, jnp.where(shows(safe), safe, 0))


def _largest(weights: Float[Array, " k"], scores: Float[Array, "k n n"]) -> Float[Array, ""]:
    """The largest combined score of the pairs that the weights were fitted on."""
    pairs = jnp.diagonal(scores, axis1=1, axis2=2)
    return jnp.maximum(jnp.max(weights @ pairs), jnp.max(jnp.tensordot(weights, scores[:, :, :_COLUMNS], axes=1)))


class _Model(NamedTuple):
    """Minus the bound at some weights, in nats, with its slopes and curvature."""

    loss: Float[Array, ""]
    slope: Float[Array, " k"]
    curvature: Float[Array, "k k"]


def _best_weights(scores: Float[Array, "k n n"], rules: Rules, own: Float[Array, ""]) -> Float[Array, " k"]:
    """By Newton's method within the box: minus the bound is convex. `own` is 1 where pairs are among the shuffles."""
    count, number = scores.shape[:2]
    columns = min(_COLUMNS, number)
    diagonal = jnp.arange(number)[:, None] == jnp.arange(columns)
    shuffled = scores[:, :, :columns].reshape(count, -1)
    weight = jnp.where(diagonal, -jnp.inf, -np.log((number - 1) * columns)).reshape(-1)
    pairs = jnp.diagonal(scores, axis1=1, axis2=2)

    def at(weights: Float[Array, " k"]) -> _Model:
        off = weights @ shuffled + weight + jnp.log(1 - own / number)
        on = weights @ pairs + (jnp.log(own) - 2 * np.log(number))
        top = jnp.maximum(jnp.max(off), jnp.max(on))
        of_off, of_on = jnp.exp(off - top), jnp.exp(on - top)
        total = jnp.sum(of_off) + jnp.sum(of_on)
        mean = (shuffled @ of_off + pairs @ of_on) / total
        square = ((shuffled * of_off) @ shuffled.T + (pairs * of_on) @ pairs.T) / total
        loss = jnp.log(total) + top - jnp.mean(weights @ pairs)
        return _Model(loss, mean - jnp.mean(pairs, axis=1), square - jnp.outer(mean, mean))

    losses = lax.map(lambda weights: at(weights).loss, jnp.eye(count))
    best = jnp.where(jnp.min(losses) < 0, jnp.eye(count)[jnp.argmin(losses)], 0.0)
    most = jnp.where(losses < 0, rules.most_weight, 0.0)  # what fails alone is out
    found, loss = _descended(at, best, most)
    return jnp.where(loss < jnp.minimum(jnp.min(losses), 0.0) - rules.gain, found, best)


def _descended(at, start: Float[Array, " k"], most: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    def look(carry):
        number, weights, model, length, _ = carry
        step = _step(model, weights, most)
        trial = jnp.clip(weights + length * step, 0, most)
        tried = at(trial)
        better = tried.loss < model.loss
        gained = jnp.where(better, model.loss - tried.loss, jnp.inf)
        weights, model = jax.tree.map(lambda new, old: jnp.where(better, new, old), (trial, tried), (weights, model))
        promised = jnp.where(better, gained, -length * jnp.sum(step * model.slope))
        return number + 1, weights, model, jnp.where(better, jnp.minimum(2 * length, 1), length / 2), promised

    def goes_on(carry):
        number, _, _, _, promised = carry
        return (number < _LOOKS) & (promised > _ENOUGH)

    # Infinitely bad and level, so that the first look is at the start itself.
    unknown = _Model(jnp.asarray(jnp.inf), jnp.zeros_like(start), jnp.eye(len(start)))
    first = (jnp.zeros((), jnp.int32), start, unknown, jnp.ones(()), jnp.asarray(jnp.inf))
    _, weights, model, _, _ = lax.while_loop(goes_on, look, first)
    return weights, model.loss


def _step(model: _Model, weights: Float[Array, " k"], most: Float[Array, " k"]) -> Float[Array, " k"]:
    """To the least of the quadratic model within 0 and `most`, weight by weight."""
    curvature = model.curvature + 1e-6 * jnp.eye(len(weights))

    def sweep(_, step):
        for place in range(len(weights)):
            slope = model.slope[place] + jnp.sum(curvature[place] * step)
            moved = step[place] - slope / curvature[place, place]
            step = step.at[place].set(jnp.clip(moved, -weights[place], most[place] - weights[place]))
        return step

    return lax.fori_loop(0, _SWEEPS, sweep, jnp.zeros_like(weights))
