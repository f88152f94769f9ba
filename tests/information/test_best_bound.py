"""The best bound on data of known information, and its candidates against formulas."""

import jax
import numpy as np
import pytest

from beliefscope.information import BestBound
from beliefscope.information.best_bound import AT_LEAST
from beliefscope.information.candidates import Classes, Gaussian, GaussianClasses, classes_of
from beliefscope.information.estimator_cases import estimator_cases

KEY = jax.random.key(0)
ROWS = 2000


def gaussian_pairs(bits: float, rows: int = ROWS, seed: int = 0):
    """Two columns a side that share so many bits."""
    draw = np.random.default_rng(seed)
    rho = np.sqrt(1 - 2.0**-bits)
    x, noise = draw.normal(size=(2, rows, 2))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("bits", [1.0, 8.0])
def test_gaussian_columns(bits):
    found = BestBound().estimate(KEY, *gaussian_pairs(bits))
    assert found.bits == pytest.approx(bits, abs=max(4 * found.standard_error, 0.07 * bits))
    assert found.warnings == ()
    assert set(found.candidates) == {"Gaussian", "Gaussian of ranks", "separable"}


def test_independent_columns_share_nothing():
    x, _ = gaussian_pairs(1.0)
    y = np.random.default_rng(9).normal(size=x.shape)
    found, again = (BestBound().estimate(KEY, x, y) for _ in range(2))
    assert abs(found.bits) < 0.02
    assert again.bits == found.bits


def test_infinite_information_reads_at_least():
    x, _ = gaussian_pairs(1.0)
    found = BestBound().estimate(KEY, x, x)
    assert found.warnings == (AT_LEAST,)
    assert found.near_ceiling
    assert 9 < found.bits <= np.log2(2 * ROWS / 5)


def test_a_constant_has_no_information():
    x, y = gaussian_pairs(1.0)
    assert BestBound().estimate(KEY, x, np.ones_like(y)).bits == 0


def test_too_few_pairs_get_one_sentence():
    with pytest.raises(ValueError, match="at least 1000 pairs, but got 500"):
        BestBound().estimate(KEY, *gaussian_pairs(1.0, rows=500))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "beliefs of POMDP 1, rough memory of 64, noise 0.05",
        "beliefs of POMDP 2, x = y",
        "random code of 51 symbols, 32 + 0 columns, noise 1, 51 wide",
        "sets of 120 particles, d = 2, 3 bits",
    ],
)
def test_known_cases_to_learn_from(name):
    case = estimator_cases(frozen=False)[name]
    found = BestBound().estimate(KEY, *case.sample(1, 10_000))
    assert found.bits == pytest.approx(case.bits, rel=0.07)


def test_the_gaussian_critic_is_the_log_density_ratio():
    x, y = gaussian_pairs(2.0, rows=200_000)
    rho2 = 1 - 2.0**-2
    u, v = x[:5, None], y[None, :5]
    exact = -0.5 * np.log(1 - rho2) + (np.sqrt(rho2) * u * v - 0.5 * rho2 * (u**2 + v**2)) / (1 - rho2)
    scores = np.asarray(Gaussian(x, y).table(x[:5], y[:5]).scores())
    limited = 14 * np.tanh(exact.sum(axis=2) / 14)
    np.testing.assert_allclose(scores, limited, atol=0.05)


def test_gaussian_classes_answer_as_bayes_does():
    """Codes with known means and noise: the posterior of each atom, which so many rows determine."""
    draw = np.random.default_rng(0)
    codes, atoms = draw.normal(size=(4, 3)), draw.integers(0, 4, size=40_000)
    x = codes[atoms] + 0.7 * draw.normal(size=(40_000, 3))
    rows = np.arange(40_000)
    classifier = GaussianClasses(x, classes_of(atoms, rows, seen=1), rows)
    logits = classifier.logits(x[:200])[:, 1:]
    exact = -0.5 * np.sum((x[:200, None] - codes) ** 2, axis=2) / 0.7**2
    found, truth = (np.exp(each - each.max(axis=1, keepdims=True)) for each in (logits, exact))
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), truth / truth.sum(1, keepdims=True), atol=0.03)


def test_atoms_that_were_not_seen_are_expected_as_often_as_single_ones():
    atoms = np.array([0, 0, 0, 1, 1, 2, 3, 4])
    classes = classes_of(atoms, np.arange(7), seen=1)
    assert isinstance(classes, Classes)
    assert list(classes.of_row) == [1, 1, 1, 2, 2, 3, 4, 0]
    np.testing.assert_allclose(np.exp(classes.log_prior), np.array([2, 3, 2, 1, 1]) / 9)
