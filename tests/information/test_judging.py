"""Values and weights of tables of scores, against formulas and another optimiser."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from beliefscope.information.best_bound import BestBound
from beliefscope.information.judging import Judged, Products, Rules, Value, chosen_weights, judged, value
from beliefscope.information.networks import Codes

RULES = Rules(most_weight=1.2, gain=0.0, effective=100.0)


def pointwise(correlation: float, x, y):
    """log p/q of a pair of Gaussian numbers."""
    rest = 1 - correlation**2
    return -0.5 * np.log(rest) + (correlation * x * y - 0.5 * correlation**2 * (x**2 + y**2)) / rest


def pair(correlation: float, number: int, seed: int = 0):
    x, noise = np.random.default_rng(seed).normal(size=(2, number))
    return x, correlation * x + np.sqrt(1 - correlation**2) * noise


def table(correlation: float, x, y):
    return pointwise(correlation, x[:, None], y)


def test_the_log_ratio_is_worth_the_information():
    x, y = pair(0.8, 2000)
    found = value(jnp.asarray(table(0.8, x, y)))
    assert found.bound == pytest.approx(-0.5 * np.log(0.36), abs=4 * float(found.variance) ** 0.5)
    assert found.safe < found.bound
    assert found.effective > 10_000


def test_the_variance_is_that_of_many_samples():
    bounds, variances = zip(
        *((float(each.bound), float(each.variance)) for seed in range(60) for each in [_value(0.8, 300, seed)]),
        strict=True,
    )
    assert np.mean(variances) == pytest.approx(np.var(bounds, ddof=1), rel=0.5)


def _value(correlation, number, seed):
    return value(jnp.asarray(table(correlation, *pair(correlation, number, seed))))


def test_scores_that_only_pairs_have_rest_on_nothing():
    """Each x knows its own y and no other: log2 of the shuffled pairs bounds what can be told."""
    found = value(jnp.asarray(20 * np.eye(1000) - 10))
    assert found.effective < 1
    assert found.safe == pytest.approx(np.log(1000), abs=0.01)


@pytest.mark.parametrize("scale", [0.8, 1.0, 2.0])
def test_weights_undo_a_wrong_scale(scale):
    x, y = pair(0.8, 1500)
    right = table(0.8, x, y)
    weights = chosen_weights(jnp.asarray(np.stack([right / scale, np.zeros_like(right)])), RULES)
    assert weights[0] == pytest.approx(min(scale, 1.2), abs=0.1)
    assert weights[1] == 0


def test_weights_are_those_of_another_optimiser():
    """Two columns, of which each critic sees one, and a third critic that errs and is left out."""
    (x, y), (z, w) = pair(0.8, 500), pair(0.6, 500, seed=1)
    wrong = np.random.default_rng(2).normal(size=(500, 500))
    scores = np.stack([1.1 * table(0.8, x, y), 1.3 * table(0.6, z, w), wrong])
    own, off = np.diagonal(scores, axis1=1, axis2=2), ~np.eye(500, dtype=bool)

    def loss(weights):
        return logsumexp(weights @ scores[:, off]) - np.log(off.sum()) - np.mean(weights @ own)

    exact = minimize(loss, np.ones(3) / 2, bounds=[(0, 1.2), (0, 1.2), (0, 0)])
    found = np.asarray(chosen_weights(jnp.asarray(scores), RULES))
    assert loss(found) == pytest.approx(exact.fun, abs=2e-4)
    np.testing.assert_allclose(found, exact.x, atol=0.03)


def products(x, y) -> Products:
    """T = x y / 2, softly limited to ±14: a table for one split, of numbers [n] and [m]."""
    of_x, of_y = (Codes(jnp.asarray(side)[None, :, None], jnp.zeros((1, len(side)))) for side in (x / 2, y))
    return Products(of_x, of_y)


def test_no_judged_score_is_above_those_that_weights_were_chosen_by():
    """One x and one y of the judged rows are outliers: their pair would be most of the mean of e^T."""
    x, y = pair(0.5, 600)
    outliers = np.where(np.arange(600) == 0, 8.0, x), np.where(np.arange(600) == 300, 8.0, y)
    calm, wild = (judged([products(x, y)], [products(*each)], RULES) for each in ((x, y), outliers))
    assert calm.weights[0, 0] > 0
    assert wild.weights[0, 0] == calm.weights[0, 0]
    assert wild.combined.bound[0] > calm.combined.bound[0] - 0.1
    unlimited = value(calm.weights[0, 0] * jnp.asarray(14 * np.tanh(np.outer(*outliers) / 28), jnp.float32))
    assert unlimited.bound < calm.combined.bound[0] - 0.2


def test_weights_are_zero_where_all_shuffled_pairs_together_show_nothing():
    """Weights are fitted on the first 500 columns: what speaks against a critic is in the others."""
    x, y = pair(0.3, 1500)
    scores = table(0.3, x, y)
    assert chosen_weights(jnp.asarray(scores)[None], RULES)[0] > 0
    scores[:20, -300:] = 9.0
    assert chosen_weights(jnp.asarray(scores)[None], RULES)[0] == 0


def test_a_combination_that_is_worse_than_nothing_reads_nothing():
    flat = jnp.full(4, 1e-4)
    combined = Value(
        bound=jnp.full(4, -0.1), safe=jnp.full(4, -0.1), effective=1e6 * flat, variance=flat, safe_variance=flat
    )
    nothing = Judged(weights=jnp.ones((4, 1)), combined=combined, alone=jnp.full((4, 1), -0.1))
    found = BestBound()._report(nothing, ["Gaussian"], 10_000, None, 4000)
    assert found.bits == 0.0
    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]
