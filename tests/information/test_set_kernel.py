"""The fused kernels against the same sums written plainly. Off a GPU they are interpreted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.information.networks import Layers
from beliefscope.information.set_kernel import Weights, fits, split, sum_hidden

_INTERPRET = jax.default_backend() != "gpu"


def plain(weights: Weights, sets):
    (first, second), (first_bias, second_bias) = weights
    with jax.default_matmul_precision("highest"):  # a GPU multiplies with 10 bits otherwise
        return jnp.sum(jax.nn.relu(jax.nn.relu(sets @ first + first_bias) @ second + second_bias), axis=1)


def weights_of(inputs: int, *, clear: bool = False) -> Weights:
    """`clear`: no unit of the second layer is so close to 0 that rounding decides whether it is above."""
    layers = Layers(jax.random.key(inputs), (inputs, 32, 64, 16))
    second = jnp.where(jnp.arange(64) % 3 == 0, -20.0, 20.0) if clear else layers.biases[1]
    return Weights(layers.weights[:2], (layers.biases[0], second))


def relative(found, truth) -> float:
    return float(jnp.max(jnp.abs(found - truth)) / jnp.max(jnp.abs(truth)))


@pytest.mark.parametrize(
    ("sets", "members", "inputs", "clear"),
    [
        (1, 1, 3, True),
        (1, 64, 1, True),
        (3, 7, 6, True),
        (4, 65, 5, True),
        (9, 130, 4, True),
        (3, 20, 31, True),
        (50, 100, 2, False),
    ],
)
def test_sums_and_gradients_agree_with_plain_ones(sets, members, inputs, clear):
    draw = np.random.default_rng(sets)
    given = jnp.asarray(draw.normal(size=(sets, members, inputs)), jnp.float32)
    slopes, weights = jnp.asarray(draw.normal(size=(sets, 64)), jnp.float32), weights_of(inputs, clear=clear)
    found, back = jax.vjp(lambda weights: sum_hidden(weights, given, _INTERPRET), weights)
    truth, back_plain = jax.vjp(lambda weights: plain(weights, given), weights)
    assert relative(found, truth) < 5e-5
    for gradient, expected in zip(*map(jax.tree.leaves, (back(slopes)[0], back_plain(slopes)[0])), strict=True):
        assert relative(gradient, expected) < (0.01 if clear else 0.02)  # 8 bits


def test_many_sets():
    given = jax.random.normal(jax.random.key(0), (300 if _INTERPRET else 5_000, 2, 1))
    weights = weights_of(1)
    assert relative(sum_hidden(weights, given, _INTERPRET), plain(weights, given)) < 5e-5


def test_fits_of_several_critics_side_by_side():
    """Of each its own gradient, when a batch of fits is one program."""
    given = jax.random.normal(jax.random.key(0), (3, 4, 70, 2))
    weights = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf, 3 * leaf]), weights_of(2, clear=True))

    def gradient(function):
        return jax.vmap(jax.grad(lambda weights, sets: jnp.sum(function(weights, sets) ** 2)))(weights, given)

    found, truth = map(jax.tree.leaves, (gradient(lambda *a: sum_hidden(*a, _INTERPRET)), gradient(plain)))
    for one, other in zip(found, truth, strict=True):
        assert relative(one, other) < 0.01


def test_a_number_is_two_of_half_its_bits():
    numbers = jax.random.normal(jax.random.key(0), (1000,)) * 10.0 ** jnp.arange(-10, 10).repeat(50)
    high, low = split(numbers)
    assert high.dtype == low.dtype == jnp.bfloat16
    assert float(jnp.max(jnp.abs(high.astype(float) + low.astype(float) - numbers) / jnp.abs(numbers))) < 2**-15


def test_layers_of_other_sizes_are_left_to_the_compiler():
    assert fits(2, 32, 64)
    assert fits(31, 32, 64)
    assert not fits(32, 32, 64)
    assert not fits(2, 32, 60)
    assert not fits(2, 8, 64)
