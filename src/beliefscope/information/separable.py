"""A critic that scores every x of a batch with every y at the cost of one product of matrices.

T(x, y) = f(x)·g(y) + a(x) + b(y), softly limited to ±12. Each code is linear in its input plus the output of a small
network that starts at zero. So data with only linear relations are fitted quickly. a and b also have the squares of the
columns; with them the log density ratio of Gaussian vectors has exactly this form.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.information.bounds import DonskerVaradhan, Samples, Scores
from beliefscope.information.critics import Layers

_CODE = 64
_HIDDEN = 128
LIMIT = 12.0  # nats, 17 bits: more than samples in their thousands could show
BATCH = 256  # pairs that are told apart: log2 of it is what training shows a critic
_STEPS = 1080  # at least, in at least 40 epochs: few samples need as many steps as many do
_ASKED = 1000  # choosing pairs that say which epoch was best
_ROWS = 250  # of a table of scores at a time, which bounds the memory
_RATE, _AVERAGE = 5e-3, 0.98  # of AdamW, and of the moving average of the weights
_DECAYS, _MANY = (0.1, 0.5), 32  # of the weights, for few columns of both sides together and for many


class Codes(NamedTuple):
    """One side of the score: T = limit(f·g + a + b)."""

    vector: Float[Array | np.ndarray, "n code"]
    offset: Float[Array | np.ndarray, "n *each"]


class _Encoder(eqx.Module):
    linear: Float[Array, "inputs code"]
    squares: Float[Array, " inputs"]
    network: Layers

    def __init__(self, key: PRNGKeyArray, size: int):
        key_linear, key_network = jax.random.split(key)
        self.linear = jax.random.normal(key_linear, (size, _CODE)) * size**-0.5
        self.squares = jnp.zeros(size)
        network = Layers(key_network, (size, _HIDDEN, _HIDDEN, _CODE + 1))
        last = (0 * network.weights[-1], 0 * network.biases[-1])  # not jnp.zeros: see decoders.silent
        self.network = eqx.tree_at(lambda layers: (layers.weights[-1], layers.biases[-1]), network, last)

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


def _decayed(critic: SeparableCritic) -> SeparableCritic:
    """Which parameters weight decay pulls to zero: the networks', not the linear maps and squares."""
    everything = jax.tree.map(lambda _: True, critic)
    kept = ("linear", "squares")
    return eqx.tree_at(
        lambda c: [getattr(side, name) for side in (c.read_x, c.read_y) for name in kept], everything, [False] * 4
    )


def _limited(scores: Float[Array | np.ndarray, "*n"]) -> Float[Array, "*n"]:
    return LIMIT * jnp.tanh(scores / LIMIT)


def fit_separable(
    key: PRNGKeyArray, train: Samples, choose: Samples
) -> tuple[SeparableCritic, Float[Array, " epochs"]]:
    """One critic: the moving average of its weights after the epoch that was best on the choosing pairs."""
    key_init, key_epochs = jax.random.split(key)
    critic = SeparableCritic(key_init, train.x.shape[1], train.y.shape[1])
    steps = len(train.x) // BATCH
    epochs = max(40, -(-_STEPS // steps))
    columns, asked = train.x.shape[1] + train.y.shape[1], Samples(*(side[:_ASKED] for side in choose))
    optimiser = _optimiser(epochs * steps, decay=_DECAYS[columns > _MANY])

    def step(carry, rows):
        critic, state, average = carry
        gradient = jax.grad(_loss)(critic, Samples(train.x[rows], train.y[rows]))
        updates, state = optimiser.update(gradient, state, critic)
        critic = eqx.apply_updates(critic, updates)
        average = jax.tree.map(lambda old, new: _AVERAGE * old + (1 - _AVERAGE) * new, average, critic)
        return (critic, state, average), None

    def epoch(carry, key_epoch):
        learning, best, best_bits = carry
        rows = jax.random.permutation(key_epoch, len(train.x))[: steps * BATCH].reshape(steps, BATCH)
        learning, _ = lax.scan(step, learning, rows)
        average = learning[2]
        bits = DonskerVaradhan().bits(score_all(average, asked))
        best = jax.tree.map(lambda new, old: jnp.where(bits > best_bits, new, old), average, best)
        return (learning, best, jnp.maximum(bits, best_bits)), bits

    start = (critic, optimiser.init(critic), critic)  # pyright: ignore[reportArgumentType]
    (_, best, _), curve = lax.scan(epoch, (start, critic, jnp.asarray(-jnp.inf)), jax.random.split(key_epochs, epochs))
    return best, curve


def _optimiser(steps: int, *, decay: float) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(_RATE, steps)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=decay, mask=_decayed))


def _loss(critic: SeparableCritic, batch: Samples) -> Float[Array, ""]:
    """InfoNCE in both directions: which y belongs to an x, and which x to a y."""
    scores = table(critic.read_x(batch.x), critic.read_y(batch.y))
    rows, columns = (jnp.mean(jax.nn.logsumexp(scores, axis=axis)) for axis in (0, 1))
    return (rows + columns) / 2 - jnp.mean(jnp.diagonal(scores))


def score_all(critic: SeparableCritic, samples: Samples) -> Scores:
    """For each x its score with its own y, and the log mean e^T over all other y."""
    x, y, number = critic.read_x(samples.x), critic.read_y(samples.y), len(samples.x)

    def row(place: Int[Array, ""], x_here: Codes) -> tuple[Float[Array, ""], Float[Array, ""]]:
        scores = table(jax.tree.map(lambda leaf: leaf[None], x_here), y)[0]
        others = jnp.where(jnp.arange(number) == place, -jnp.inf, scores)
        return scores[place], jax.nn.logsumexp(others) - np.log(number - 1)

    joint, product = lax.map(lambda at: row(*at), (jnp.arange(number), x), batch_size=min(_ROWS, number))
    return Scores(joint, product[None])
