"""A critic that scores every x of a batch with every y for the price of one product of matrices.

T(x, y) = f(x)·g(y) + a(x) + b(y), softly held within ±12. Each code is linear in its input plus what a small network
adds, which starts at zero, so that data in which linear relations say all are soon fitted; a and b also have the
squares of the columns, with which the log density ratio of Gaussian vectors is of exactly this form.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.information.critics import Layers

_CODE = 64
_HIDDEN = 128
_LIMIT = 12.0  # nats, 17 bits: more than samples in their thousands could show


class Codes(NamedTuple):
    """One side of the score: T = limit(f·g + a + b)."""

    vector: Float[Array, "n code"]
    offset: Float[Array, " n"]


class _Encoder(eqx.Module):
    linear: Float[Array, "inputs code"]
    squares: Float[Array, " inputs"]
    network: Layers

    def __init__(self, key: PRNGKeyArray, size: int):
        key_linear, key_network = jax.random.split(key)
        self.linear = jax.random.normal(key_linear, (size, _CODE)) * size**-0.5
        self.squares = jnp.zeros(size)
        network = Layers(key_network, (size, _HIDDEN, _HIDDEN, _CODE + 1))
        self.network = eqx.tree_at(
            lambda layers: (layers.weights[-1], layers.biases[-1]), network, replace_fn=jnp.zeros_like
        )

    def __call__(self, rows: Float[Array, "n inputs"]) -> Codes:
        added = self.network(rows)
        return Codes((rows @ self.linear + added[:, :-1]) * _CODE**-0.25, rows**2 @ self.squares + added[:, -1])


class SeparableCritic(eqx.Module):
    """T of two vectors."""

    read_x: _Encoder
    read_y: _Encoder

    def __init__(self, key: PRNGKeyArray, x_size: int, y_size: int):
        key_x, key_y = jax.random.split(key)
        self.read_x, self.read_y = _Encoder(key_x, x_size), _Encoder(key_y, y_size)


def table(x: Codes, y: Codes) -> Float[Array, "n m"]:
    """The scores of every x with every y."""
    return _limited(x.vector @ y.vector.T + x.offset[:, None] + y.offset)


def decayed(critic: SeparableCritic) -> SeparableCritic:
    """Which parameters weight decay pulls to zero: the networks', not the linear maps and squares."""
    everything = jax.tree.map(lambda _: True, critic)
    kept = ("linear", "squares")
    return eqx.tree_at(
        lambda c: [getattr(side, name) for side in (c.read_x, c.read_y) for name in kept], everything, [False] * 4
    )


def _limited(scores: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return _LIMIT * jnp.tanh(scores / _LIMIT)
