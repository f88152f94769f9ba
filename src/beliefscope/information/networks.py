"""Networks: layers, the critics T_φ that are made of them, and the one loop that fits them.

A critic reads a batch of pairs. The vector critic, and the deep-set critic for beliefs given as particles, end in a
network of two hidden layers of 256 units (appendix E). The separable critic scores every x of a batch with every y at
the cost of one product of matrices. Weights start as PyTorch's do: uniform in ±1/√inputs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Key, PRNGKeyArray, PyTree

from beliefscope.information import set_kernel
from beliefscope.information.set_kernel import Weights

_CODE, _HIDDEN = 64, 128  # of the separable critic
NEVER = -1e30  # the logarithm of the probability of what is padding: its probability and its gradient are 0
SEPARABLE_LIMIT = 12.0  # nats, 17 bits: more than samples in their thousands could show
_MEMBERS_AT_ONCE = 1000  # on CPU: what is computed of so many stays in its cache
_SETS_AT_ONCE = 4096  # on GPU: smaller blocks take longer, and much more may not fit in its memory


class Layers(eqx.Module):
    """Linear layers with ReLU between them, none behind the last."""

    weights: tuple[Float[Array, "inputs outputs"], ...]
    biases: tuple[Float[Array, " outputs"], ...]

    def __init__(self, key: PRNGKeyArray, sizes: tuple[int, ...]):
        keys = jax.random.split(key, (len(sizes) - 1, 2))
        pairs = list(zip(keys, sizes[:-1], sizes[1:], strict=True))
        self.weights = tuple(_uniform(k[0], (inputs, outputs), inputs) for k, inputs, outputs in pairs)
        self.biases = tuple(_uniform(k[1], (outputs,), inputs) for k, inputs, outputs in pairs)

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return self.hidden(x) @ self.weights[-1] + self.biases[-1]

    def hidden(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch hidden"]:
        """What the last layer reads."""
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = jax.nn.relu(x @ weights + bias)
        return x

    def silenced(self) -> "Layers":
        """The same, but with 0 for an answer: nothing to unlearn where there is no information."""
        # Not jnp.zeros: JAX 0.10.2 on CPU gives wrong products with a constant matrix of equal entries, even NaN.
        last = (0 * self.weights[-1], 0 * self.biases[-1])
        return eqx.tree_at(lambda layers: (layers.weights[-1], layers.biases[-1]), self, last)

    def sum(self, x: Float[Array, "sets members inputs"]) -> Float[Array, "sets outputs"]:
        """The sum over the members of each set. The last layer is linear, so that it may read the sum instead."""
        return self._sum_hidden(x) @ self.weights[-1] + x.shape[1] * self.biases[-1]

    def _sum_hidden(self, x: Float[Array, "sets members inputs"]) -> Float[Array, "sets hidden"]:
        hidden, backend = Weights(self.weights[:-1], self.biases[:-1]), jax.default_backend()
        if backend == "cpu":
            return _sum_in_cache(hidden, x)
        if backend == "gpu" and len(self.weights) == 3 and set_kernel.fits(x.shape[2], *self.weights[1].shape):
            return set_kernel.sum_hidden(hidden, x)
        return lax.map(lambda members: jnp.sum(self.hidden(members), axis=0), x, batch_size=min(_SETS_AT_ONCE, len(x)))


@jax.custom_vjp
def _sum_in_cache(hidden: Weights, sets: Float[Array, "sets members inputs"]) -> Float[Array, "sets outputs"]:
    """The sum of the last hidden layer over the members of each set, for a few sets at a time.

    The gradient of the weights is written out, because autodiff's takes one and a half times as long. None is taken
    through the members.
    """
    blocks = _in_blocks(sets)
    sums = lax.map(lambda some: jnp.sum(_of_rows(hidden, some)[-1].reshape(*some.shape[:2], -1), axis=1), blocks)
    return sums.reshape(-1, sums.shape[-1])[: len(sets)]


def _sum_forward(hidden: Weights, sets: Float[Array, "sets members inputs"]):
    return _sum_in_cache(hidden, sets), (hidden, sets)


def _sum_backward(kept, d_sum: Float[Array, "sets outputs"]):
    hidden, sets = kept

    def add(total: Weights, block: tuple[Array, Array]) -> tuple[Weights, None]:
        some, slope = block
        layers, found = _of_rows(hidden, some), []
        each = jnp.ones(len(layers[0]))
        d_output = jnp.repeat(slope, some.shape[1], axis=0)
        for matrix, below, output in zip(hidden.matrices[::-1], layers[-2::-1], layers[:0:-1], strict=True):
            d_output = jnp.where(output > 0, d_output, 0)
            found.append((below.T @ d_output, each @ d_output))
            d_output = d_output @ matrix.T
        return jax.tree.map(jnp.add, total, Weights(*zip(*found[::-1], strict=True))), None

    start = jax.tree.map(jnp.zeros_like, hidden)
    return lax.scan(add, start, (_in_blocks(sets), _in_blocks(d_sum, sets.shape[1])))[0], jnp.zeros_like(sets)


_sum_in_cache.defvjp(_sum_forward, _sum_backward)


def _of_rows(hidden: Weights, sets: Float[Array, "sets members inputs"]) -> list[Float[Array, "rows _"]]:
    """The members as rows, and what each layer makes of them."""
    layers = [sets.reshape(-1, sets.shape[2])]
    for matrix, bias in zip(*hidden, strict=True):
        layers.append(jax.nn.relu(layers[-1] @ matrix + bias))
    return layers


def _in_blocks(array: Float[Array, "sets *rest"], members: int | None = None) -> Float[Array, "blocks some *rest"]:
    """As many sets at a time as the cache has room for; the last block is filled up with zeros."""
    some = max(1, _MEMBERS_AT_ONCE // (members or array.shape[1]))
    padded = jnp.pad(array, [(0, -len(array) % some)] + [(0, 0)] * (array.ndim - 1))
    return padded.reshape(-1, some, *array.shape[1:])


class VectorCritic(eqx.Module):
    """T_φ(x, y) of two vectors."""

    layers: Layers

    def __init__(self, key: PRNGKeyArray, x_size: int, y_size: int):
        self.layers = Layers(key, (x_size + y_size, 256, 256, 1))

    def __call__(self, x: Float[Array, "*batch x"], y: Float[Array, "*batch y"]) -> Float[Array, "*batch"]:
        return self.layers(jnp.concatenate([x, y], axis=-1))[..., 0]


class SetCritic(eqx.Module):
    """T_φ(x, S) = μ(x, ρ(Σ_{s ∈ S} ψ(s))), whatever the order of the particles (Zaheer et al., 2017)."""

    psi: Layers
    rho: Layers
    mu: VectorCritic

    def __init__(self, key: PRNGKeyArray, x_size: int, y_size: int):
        key_psi, key_rho, key_mu = jax.random.split(key, 3)
        self.psi = Layers(key_psi, (y_size, 32, 64, 16))
        self.rho = Layers(key_rho, (16, 16))
        self.mu = VectorCritic(key_mu, x_size, 16)

    def __call__(self, x: Float[Array, "n x"], y: Float[Array, "n particles y"]) -> Float[Array, " n"]:
        return self.mu(x, self.embed(y))

    def embed(self, y: Float[Array, "n particles y"]) -> Float[Array, "n 16"]:
        """The vector that represents each set."""
        return self.rho(self.psi.sum(y))


Critic = VectorCritic | SetCritic


def critic_for(key: PRNGKeyArray, x: Float[Array, "n x"], y: Float[Array, "n *set y"]) -> Critic:
    """The critic that reads these samples."""
    kind = VectorCritic if y.ndim == 2 else SetCritic
    return kind(key, x.shape[-1], y.shape[-1])


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> Array:
    return jax.random.uniform(key, shape, minval=-(inputs**-0.5), maxval=inputs**-0.5)


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
        self.network = network.silenced()

    def __call__(self, rows: Float[Array, "n inputs"]) -> Codes:
        added = self.network(rows)
        return Codes((rows @ self.linear + added[:, :-1]) * _CODE**-0.25, rows**2 @ self.squares + added[:, -1])


class SeparableCritic(eqx.Module):
    """T(x, y) = f(x)·g(y) + a(x) + b(y) of two vectors, softly limited to ±12.

    Each code is linear in its input plus the output of a small network that starts at zero. So data with only linear
    relations are fitted quickly. a and b also have the squares of the columns; with them the log density ratio of
    Gaussian vectors has exactly this form.
    """

    read_x: _Encoder
    read_y: _Encoder

    def __init__(self, key: PRNGKeyArray, x_size: int, y_size: int):
        key_x, key_y = jax.random.split(key)
        self.read_x, self.read_y = _Encoder(key_x, x_size), _Encoder(key_y, y_size)


Model = TypeVar("Model")
State = TypeVar("State")


class Fitted(NamedTuple):
    """What a fit found."""

    best: Any  # the network after the epoch of the largest value
    values: Float[Array, " epochs"]  # the start's first, where it is included
    last: Any  # the state after all epochs


def fit_network(
    keys: Key[Array, " epochs"],
    start: State,
    *,
    batches: Callable[[PRNGKeyArray], PyTree],
    step: Callable[[State, PyTree], State],
    network: Callable[[State], Model],
    value: Callable[[Model], Float[Array, ""]],
    include_start: bool,
) -> Fitted:
    """The loop that fits all networks: epochs of steps, and the network of the best epoch is kept.

    An epoch takes a step for each of `batches(key)`. Then `network(state)` is judged by its `value` on rows that train
    nothing. Where no epoch has a value that is a number, the start is kept.
    """
    first = value(network(start)) if include_start else jnp.asarray(-jnp.inf)

    def epoch(carry, key: PRNGKeyArray):
        state, best, most = carry
        state, _ = lax.scan(lambda state, batch: (step(state, batch), None), state, batches(key))
        found = network(state)
        now = value(found)
        best = jax.tree.map(lambda new, old: jnp.where(now > most, new, old), found, best)
        return (state, best, jnp.where(now > most, now, most)), now

    (last, best, _), values = lax.scan(epoch, (start, network(start), first), keys)
    return Fitted(best, jnp.concatenate([first[None], values]) if include_start else values, last)


def on_each(function: Callable[..., Any], *arguments: PyTree) -> PyTree:
    """`function` of each row of the arguments in one program: in turn on CPU, which is faster there, at once on GPU.

    On CPU the result of a row does not depend on the others.
    """
    if jax.default_backend() == "cpu":
        return lax.map(lambda row: function(*row), arguments)
    return jax.vmap(function)(*arguments)
