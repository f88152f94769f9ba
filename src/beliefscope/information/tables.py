"""The scores of every x of some rows with every y of others, in the form that needs the least memory.

A table is a tree of arrays, so that those of several splits can be stacked and scored in one compiled program.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from beliefscope.information.separable import Codes

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
