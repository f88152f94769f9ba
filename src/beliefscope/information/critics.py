"""The functions T_φ that neural estimators fit: a vector critic, and a deep-set critic for beliefs given as particles.

A critic reads a batch of pairs. Both end in a network of two hidden layers of 256 units (appendix E).
Weights start as PyTorch's do: uniform in ±1/√inputs.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope.information import set_kernel

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

    def sum(self, x: Float[Array, "sets members inputs"]) -> Float[Array, "sets outputs"]:
        """The sum over the members of each set. The last layer is linear, so that it may read the sum instead."""
        return self._sum_hidden(x) @ self.weights[-1] + x.shape[1] * self.biases[-1]

    def _sum_hidden(self, x: Float[Array, "sets members inputs"]) -> Float[Array, "sets hidden"]:
        if jax.default_backend() == "gpu" and len(self.weights) == 3 and set_kernel.fits(*self.weights[1].shape):
            return set_kernel.sum_hidden(set_kernel.Weights(self.weights[:2], self.biases[:2]), x)

        def summed(members: Float[Array, "members inputs"]) -> Float[Array, " hidden"]:
            return jnp.ones(len(members)) @ self.hidden(members)  # on CPU faster than jnp.sum

        return _for_each_set(summed, x)


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


def _for_each_set(
    function: Callable[[Array], Array], sets: Float[Array, "sets members inputs"]
) -> Float[Array, "sets outputs"]:
    if jax.default_backend() == "cpu":  # computed again in the backward pass, rather than kept and fetched
        return lax.map(jax.checkpoint(function), sets, batch_size=max(1, _MEMBERS_AT_ONCE // sets.shape[1]))
    if len(sets) <= _SETS_AT_ONCE:
        return jax.vmap(function)(sets)
    return lax.map(function, sets, batch_size=_SETS_AT_ONCE)


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> Array:
    return jax.random.uniform(key, shape, minval=-(inputs**-0.5), maxval=inputs**-0.5)
