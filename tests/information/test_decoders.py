"""The decoders and the loop that fits them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from beliefscope.information.decoders import Descent, Family, Fits, Split, silent, splits

_ROWS, _COLUMNS, _TIMES = 3000, 128, 53
_DESCENT = Descent(learning_rate=0.05, steps=20, looks=2)


@pytest.fixture(scope="module")
def case():
    """Memories that say nothing, and beliefs of which a baseline knows a part: rows, splits and the baseline's loss."""
    draw = np.random.default_rng(0)
    which = draw.integers(0, _TIMES, size=_ROWS)
    belief = np.eye(2 * _TIMES)[2 * which + draw.integers(0, 2, size=_ROWS)]
    baseline = np.repeat(np.eye(_TIMES), 2, axis=1) + 1e-3
    baseline = np.log(baseline / baseline.sum(axis=1, keepdims=True))
    parts = splits(jax.random.key(1), _ROWS, 2)
    loss = [-np.mean(np.sum(belief[choose] * baseline[which[choose]], axis=1)) for choose in parts.choose]
    arrays = (jnp.asarray(array, jnp.float32) for array in (draw.normal(size=(_ROWS, _COLUMNS)), belief))
    rest = jnp.asarray(which), jnp.asarray(np.stack([baseline] * 2), jnp.float32), Split(*map(jnp.asarray, parts))
    return (*arrays, *rest), np.array(loss)


@pytest.mark.parametrize("hidden", [(), (128,)])
def test_a_decoder_that_learns_nothing_true_answers_as_the_baseline(case, hidden):
    given, loss = case
    family = Family("any", hidden, _DESCENT)
    chosen = Fits(jax.random.key(0), *given, families=[family]).cross_entropies()["any"].chosen
    np.testing.assert_allclose(chosen, loss, rtol=1e-5)  # the start is among the weights to choose from


@pytest.mark.parametrize("hidden", [(), (128,)])
def test_a_silent_decoder_is_silent_when_compiled(case, hidden):
    """JAX 0.10 computes this loss wrongly, now and then as NaN, where the last weights are the constant 0."""
    (x, y, which, baselines, parts), loss = case

    @jax.jit
    def compiled(x, which, baseline):
        decoder = silent(jax.random.key(0), _COLUMNS, Family("any", hidden, _DESCENT), 2 * _TIMES)
        return jnp.mean(optax.softmax_cross_entropy(decoder(x) + baseline[which], y[parts.choose[0]]))

    rows = parts.choose[0]
    assert float(compiled(x[rows], which[rows], baselines[0])) == pytest.approx(loss[0], rel=1e-5)


def test_a_decoder_without_a_finite_loss_is_refused(case):
    (x, y, which, baselines, parts), _ = case
    family = Family("linear", (), _DESCENT)
    with pytest.raises(ValueError, match="the loss of a decoder is finite, but got 'nan of the linear decoder'"):
        Fits(jax.random.key(0), x * jnp.nan, y, which, baselines, parts, [family]).cross_entropies()
