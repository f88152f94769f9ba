"""The fused kernels against the same sums written plainly. Off a GPU they are interpreted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.critics import Layers
from beliefscope.information.set_kernel import Weights, fits, split, sum_hidden

_INTERPRET = jax.default_backend() != "gpu"


def plain(weights: Weights, sets):
    hidden = jax.nn.relu(sets @ weights.first + weights.first_bias)
    return jnp.sum(jax.nn.relu(hidden @ weights.second + weights.second_bias), axis=1)


def weights_of(inputs: int) -> Weights:
    layers = Layers(jax.random.key(inputs), (inputs, 32, 64, 16))
    return Weights(layers.weights[0], layers.biases[0], layers.weights[1], layers.biases[1])


def relative(found, truth) -> float:
    return float(jnp.max(jnp.abs(found - truth)) / jnp.max(jnp.abs(truth)))


@pytest.mark.parametrize(
    ("sets", "members", "inputs"), [(5, 100, 2), (1, 64, 1), (1, 1, 3), (3, 7, 6), (9, 130, 4), (4, 65, 5)]
)
def test_sums_and_gradients_agree_with_plain_ones(sets, members, inputs):
    draw = np.random.default_rng(sets)
    given = jnp.asarray(draw.normal(size=(sets, members, inputs)), jnp.float32)
    slopes, weights = jnp.asarray(draw.normal(size=(sets, 64)), jnp.float32), weights_of(inputs)
    found, back = jax.vjp(lambda weights: sum_hidden(weights, given, _INTERPRET), weights)
    truth, back_plain = jax.vjp(lambda weights: plain(weights, given), weights)
    assert relative(found, truth) < 5e-5
    for name, gradient, expected in zip(Weights._fields, back(slopes)[0], back_plain(slopes)[0], strict=True):
        assert relative(gradient, expected) < 5e-4, name


def test_many_sets():
    given = jax.random.normal(jax.random.key(0), (20_000, 2, 1))
    weights = weights_of(1)
    assert relative(sum_hidden(weights, given, _INTERPRET), plain(weights, given)) < 5e-5


def test_fits_of_several_critics_side_by_side():
    """Of each its own gradient, when a batch of fits is one program."""
    given = jax.random.normal(jax.random.key(0), (3, 4, 70, 2))
    weights = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(_scaled(weights_of(2), scale) for scale in (1, 2, 3)))

    def gradient(function):
        return jax.vmap(jax.grad(lambda weights, sets: jnp.sum(function(weights, sets) ** 2)))(weights, given)

    for found, truth in zip(gradient(lambda *a: sum_hidden(*a, _INTERPRET)), gradient(plain), strict=True):
        assert relative(found, truth) < 5e-4


def _scaled(weights: Weights, scale: float) -> Weights:
    return Weights(*(scale * array for array in weights))


def test_a_number_is_two_of_half_its_bits():
    numbers = jax.random.normal(jax.random.key(0), (1000,)) * 10.0 ** jnp.arange(-10, 10).repeat(50)
    high, low = split(numbers)
    assert high.dtype == low.dtype == jnp.bfloat16
    assert float(jnp.max(jnp.abs(high.astype(float) + low.astype(float) - numbers) / jnp.abs(numbers))) < 2**-15


def test_layers_of_other_sizes_are_left_to_the_compiler():
    assert fits(weights_of(2))
    assert not fits(weights_of(2)._replace(second=jnp.zeros((32, 60))))
