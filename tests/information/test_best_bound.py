"""The best bound on data of known information, its candidates against formulas, and the one call for one's own data."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from information.samples import samples
from scipy.special import log_softmax
from scipy.stats import multivariate_t

from beliefscope.information import BestBound, BestBoundSettings, Estimator, Gaussian, Trusted, mutual_information
from beliefscope.information.atoms import Classes, ClassSettings, GaussianClasses, classes_of
from beliefscope.information.best_bound import AT_LEAST, TOO_FEW
from beliefscope.information.candidates import Gaussian as GaussianCritic
from beliefscope.information.candidates import Moments, Regression, Student, moments_of_each
from beliefscope.information.judging import Products
from beliefscope.information.networks import Codes
from benchmarks.known_information.cases import estimator_cases

KEY = jax.random.key(0)
ROWS = 2000
ONCE = BestBound(BestBoundSettings(splits=1))


def gaussian_pairs(bits: float, rows: int = ROWS, seed: int = 0):
    """Two columns a side that share so many bits."""
    draw = np.random.default_rng(seed)
    rho = np.sqrt(1 - 2.0**-bits)
    x, noise = draw.normal(size=(2, rows, 2))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("bits", [1.0, pytest.param(7.0, marks=pytest.mark.slow)])
def test_gaussian_columns(bits):
    found = BestBound().estimate(KEY, *gaussian_pairs(bits))
    assert found.bits == pytest.approx(bits, abs=max(4 * found.standard_error, 0.07 * bits))
    assert found.warnings == ()
    assert found.interval is not None
    assert found.interval[0] < bits < found.interval[1]
    assert {"Gaussian", "Gaussian of ranks", "Gaussian of independent directions", "separable"} < set(found.candidates)
    assert found.checks["Gaussian formula"] == pytest.approx(bits, abs=0.15)
    assert found.checks["KSG of 2000 pairs"] == pytest.approx(bits, abs=0.05 + 0.1 * bits)
    assert str(found).endswith(
        f"; checks: KSG of 2000 pairs {found.checks['KSG of 2000 pairs']:.2f}, "
        f"Gaussian formula {found.checks['Gaussian formula']:.2f}"
    )


@pytest.mark.slow
def test_independent_columns_share_nothing():
    x, _ = gaussian_pairs(1.0)
    y = np.random.default_rng(9).normal(size=x.shape)
    found, again = (ONCE.estimate(KEY, x, y) for _ in range(2))
    assert abs(found.bits) < 0.02
    assert again.bits == found.bits


@pytest.mark.slow
def test_infinite_information_reads_at_least():
    x, _ = gaussian_pairs(1.0)
    found = ONCE.estimate(KEY, x, x)
    assert found.warnings == (AT_LEAST,)
    assert found.near_ceiling
    assert found.interval is not None
    assert found.interval[1] == np.inf
    assert 9 < found.bits <= np.log2(2 * ROWS / 5)


@pytest.mark.slow
def test_infinite_information_in_one_column_reads_at_least():
    """Of 10,000 pairs there are so many near ones that the weights of the bound itself show nothing."""
    x = np.random.default_rng(1).normal(size=(10_000, 1))
    found = ONCE.estimate(jax.random.key(1), x, x)
    assert found.warnings == (AT_LEAST,)
    assert found.bits > 10


def test_a_constant_has_no_information():
    x, y = gaussian_pairs(1.0)
    assert BestBound().estimate(KEY, x, np.ones_like(y)).bits == 0


def test_too_few_pairs_get_one_sentence():
    with pytest.raises(ValueError, match="at least 1000 pairs, but got 500"):
        BestBound().estimate(KEY, *gaussian_pairs(1.0, rows=500))


def test_its_older_name_says_so():
    with pytest.warns(DeprecationWarning, match=r"now called BestBound\(\)"):
        assert isinstance(Trusted(), BestBound)
    assert isinstance(BestBound(), Estimator)


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (np.full((1003, 2), np.nan), np.ones(1003), "every number in x is finite"),
        (np.ones((1003, 2)), np.ones(1001), r"the same number of samples, one pair a row, but got \(1003, 1001\)"),
    ],
)
def test_bad_input_is_named_in_one_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        BestBound().estimate(KEY, x, y)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_more_classes_than_so_few_pairs_can_teach_are_told_of():
    """A hundred symbols in 1,500 rows: half of them would read much less."""
    draw = np.random.default_rng(0)
    codes, symbols = draw.normal(size=(100, 16)), draw.integers(0, 100, size=1500)
    found = BestBound().estimate(KEY, codes[symbols] + draw.normal(size=(1500, 16)), np.eye(100)[symbols])
    assert TOO_FEW in found.warnings
    assert found.growth > 0.1


@pytest.mark.slow
def test_what_changes_no_information_changes_little():
    """An offset that single precision cannot hold, growing maps of the columns, a rotation, a useless column."""
    x, y = gaussian_pairs(2.0)
    plain = BestBound().estimate(KEY, x, y)
    turned = np.cbrt(x) @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    wider = np.column_stack([x, np.random.default_rng(2).normal(size=len(x))])
    for given in (1e9 + x, np.exp(x), turned, wider):
        found = BestBound().estimate(KEY, given, y**3)
        assert found.bits == pytest.approx(plain.bits, abs=0.15)


@pytest.mark.slow
def test_a_function_of_the_memory_knows_no_more_than_the_memory():
    """Data processing, within the intervals: columns left out, rounded, squashed, of codes with noise."""
    draw = np.random.default_rng(0)
    codes, symbols = draw.normal(size=(20, 6)), draw.integers(0, 20, size=2000)
    x, y = codes[symbols] + 0.7 * draw.normal(size=(2000, 6)), np.eye(20)[symbols]
    whole = BestBound().estimate(KEY, x, y)
    assert whole.interval is not None
    for less in (x[:, :3], np.round(x), np.tanh(x @ draw.normal(size=(6, 2)))):
        found = BestBound().estimate(KEY, less, y)
        assert found.interval is not None
        assert found.interval[0] <= whole.interval[1]
        assert found.bits <= whole.interval[1]


@pytest.mark.slow
def test_sets_of_particles_are_measured_whatever_their_order():
    case = estimator_cases(frozen=False)["sets of 120 particles, d = 2, 3 bits"]
    x, y = case.sample(2, 2000)
    order = np.argsort(np.random.default_rng(3).random(size=y.shape[:2]), axis=1)
    found, again = (BestBound().estimate(KEY, x, sets) for sets in (y, np.take_along_axis(y, order[:, :, None], 1)))
    assert found.bits == pytest.approx(3, abs=0.3)
    assert again.bits == pytest.approx(found.bits, abs=0.03)
    assert found.num_particles == 120


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "beliefs of POMDP 1, rough memory of 64, noise 0.05",
        "beliefs of POMDP 2, x = y",
        "random code of 51 symbols, 32 + 0 columns, noise 1, 51 wide",
        "sets of 120 particles, d = 2, 3 bits",
        "cube, rotated, d = 8, 4 bits",
        "uniform noise of ±0.75, d = 1",
    ],
)
def test_known_cases_to_learn_from(name):
    case = estimator_cases(frozen=False)[name]
    found = BestBound().estimate(KEY, *case.sample(1, 10_000))
    assert found.bits == pytest.approx(case.bits, rel=0.07, abs=0.1)


def test_the_gaussian_critic_is_the_log_density_ratio():
    x, y = gaussian_pairs(2.0, rows=200_000)
    rho2 = 1 - 2.0**-2
    u, v = x[:5, None], y[None, :5]
    exact = -0.5 * np.log(1 - rho2) + (np.sqrt(rho2) * u * v - 0.5 * rho2 * (u**2 + v**2)) / (1 - rho2)
    critic = GaussianCritic(Moments.of(x, y))
    of_x, of_y = (Codes(each.vector, each.offset[:, -1]) for each in critic.codes(x[:5], y[:5], len(critic)))
    scores = np.asarray(Products(of_x, of_y).scores())
    limited = 14 * np.tanh(exact.sum(axis=2) / 14)
    np.testing.assert_allclose(scores, limited, atol=0.05)


def test_moments_of_overlapping_subsets_are_those_of_their_rows():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(50, 3)).astype(np.float32), draw.normal(size=(50, 2)).astype(np.float32)
    subsets = [np.arange(30), np.arange(20, 50), draw.permutation(50)[:17]]
    for rows, found in zip(subsets, moments_of_each(x, y, subsets), strict=True):
        alone = Moments.of(x[rows], y[rows])
        assert (found.number, found.columns_x) == (len(rows), 3)
        np.testing.assert_allclose(found.total, alone.total, atol=1e-12)
        np.testing.assert_allclose(found.squares, alone.squares, atol=1e-12)


def test_the_critic_of_heavy_tails_is_the_log_density_ratio():
    """Of a t distribution with three degrees of freedom, as scipy has it."""
    draw = np.random.default_rng(0)
    shape = np.array([[1, 0.2, 0.6], [0.2, 2, -0.5], [0.6, -0.5, 1.5]])
    rows = multivariate_t(shape=shape, df=3).rvs(100_000, random_state=draw)
    x, y = rows[:, :2], rows[:, 2:]
    critic = Student(x, y)
    assert critic.freedom == 3
    both = np.array([[*one, *other] for one in x[:6] for other in y[:6]])
    joint, of_x, of_y = (
        multivariate_t(shape=shape[part, part], df=3).logpdf(both[:, part])
        for part in (slice(None), slice(2), slice(2, 3))
    )
    exact = (joint - of_x - of_y).reshape(6, 6)
    np.testing.assert_allclose(np.asarray(critic.table(x[:6], y[:6]).scores()), 14 * np.tanh(exact / 14), atol=0.05)


def test_a_regression_knows_the_limits_of_uniform_noise():
    """y = x + noise in ±0.1, x in [0, 1]: inside the limits log f / p(y) = log 5 where p(y) = 1, outside nothing."""
    draw = np.random.default_rng(0)
    x = draw.random((100_000, 1))
    critic = Regression(x, x + draw.uniform(-0.1, 0.1, size=x.shape))
    scores = np.asarray(critic.table(np.array([[0.5]]), np.array([[0.45], [0.55], [0.65], [0.2]])).scores())[0]
    np.testing.assert_allclose(scores[:2], np.log(5), atol=0.1)
    assert np.all(scores[2:] < -3)
    turned = np.asarray(critic.table(np.array([[0.5]]), np.array([[0.45], [0.65]]), turned=True).scores())
    assert turned.shape == (2, 1)


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


def test_classes_of_the_same_mean_are_pooled():
    """Forty symbols of four codes in 16 columns: means rest on the rows of ten symbols, not on those of one."""
    draw = np.random.default_rng(0)
    codes, atoms = np.repeat(draw.normal(size=(4, 16)), 10, axis=0), draw.integers(0, 40, size=4400)
    x, rows = codes[atoms] + draw.normal(size=(4400, 16)), np.arange(400)
    exact = -0.5 * np.sum((x[400:, None] - codes) ** 2, axis=2)
    losses = []
    for pooled in (0.0, 12.0):
        classes = classes_of(atoms, rows, seen=1)
        classifier = GaussianClasses(x, classes, rows, ClassSettings(pooled=pooled))
        logits = log_softmax(classifier.logits(x[400:]), axis=1)
        losses.append(-np.mean(logits[np.arange(4000), classes.of_row[400:]]))
    best = -np.mean(log_softmax(exact, axis=1)[np.arange(4000), atoms[400:]])
    assert losses[1] - best < 0.5 * (losses[0] - best)


def test_atoms_that_were_not_seen_are_expected_as_often_as_single_ones():
    atoms = np.array([0, 0, 0, 1, 1, 2, 3, 4])
    classes = classes_of(atoms, np.arange(7), seen=1)
    assert isinstance(classes, Classes)
    assert list(classes.of_row) == [1, 1, 1, 2, 2, 3, 4, 0]
    np.testing.assert_allclose(np.exp(classes.log_prior), np.array([2, 3, 2, 1, 1]) / 9)


RNG = np.random.default_rng(0)
MEMORY = RNG.normal(size=(1000, 2)).astype(np.float32)
BELIEF = (MEMORY + RNG.normal(size=(1000, 2))).astype(np.float32)


class Asked(NamedTuple):
    """What the estimator was asked."""

    key: list
    x: np.ndarray
    y: np.ndarray


@pytest.fixture
def asked(monkeypatch):
    """The closed form of Gaussian vectors stands in for the best bound, and writes down what it is asked."""
    questions = []

    def estimate(self, key, x, y, *, watch=None):
        questions.append(Asked(jax.random.key_data(key).tolist(), x, y))
        return Gaussian().estimate(key, x, y)

    monkeypatch.setattr(BestBound, "estimate", estimate)
    return questions


def test_the_control_has_the_same_memories_beside_beliefs_dealt_at_random(asked):
    estimate = mutual_information(MEMORY, BELIEF)
    found, control = asked
    np.testing.assert_array_equal(found.x, MEMORY)
    np.testing.assert_array_equal(found.y, BELIEF)
    np.testing.assert_array_equal(control.x, MEMORY)
    np.testing.assert_array_equal(np.unique(control.y, axis=0), np.unique(BELIEF, axis=0))
    assert np.mean(np.all(control.y == BELIEF, axis=1)) < 0.01
    assert found.key != control.key
    assert estimate.bits == pytest.approx(1, abs=0.15)
    assert estimate.shuffled is not None
    assert estimate.shuffled.bits == pytest.approx(0, abs=0.02)
    assert "bits (Gaussian, N = 1000); shuffled " in str(estimate)


@pytest.mark.parametrize(
    ("memory", "belief", "key"),
    [
        (MEMORY, BELIEF, None),
        (MEMORY, BELIEF, jax.random.key(0)),
        (MEMORY, BELIEF, jax.random.PRNGKey(0)),
        (jnp.asarray(MEMORY), jnp.asarray(BELIEF), None),
        (torch.from_numpy(MEMORY), torch.from_numpy(BELIEF).double(), None),
        (MEMORY.tolist(), torch.from_numpy(BELIEF), None),
    ],
)
def test_the_same_numbers_are_the_same_question_whatever_the_kind_of_array(asked, memory, belief, key):
    mutual_information(memory, belief, key=key)
    mutual_information(MEMORY, BELIEF)
    for one, other in zip(asked[:2], asked[2:], strict=True):
        assert one.key == other.key
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)


def test_another_key_is_another_question(asked):
    mutual_information(MEMORY, BELIEF)
    mutual_information(MEMORY, BELIEF, key=jax.random.key(1))
    assert len({str(question.key) for question in asked}) == 4
    assert not np.array_equal(asked[1].y, asked[3].y)


@pytest.mark.parametrize(
    ("memory", "belief", "sentence"),
    [
        (MEMORY * np.nan, BELIEF, "every number in memory is finite, but got '2000 NaN or infinite of 2000'"),
        (MEMORY, BELIEF[:, :, None] * np.nan, "every number in belief is finite"),
        (MEMORY, BELIEF[:-1], r"memory and belief need the same number of samples, one pair a row, but got"),
        (MEMORY[:999], BELIEF[:999], "needs at least 1000 pairs, but got 999"),
        (MEMORY[:, None], BELIEF, r"memory is a batch of vectors \[N, d\] here and not of sets"),
        (torch.zeros(1000, 2, requires_grad=True), BELIEF, r"memory is an array of real numbers .* tensor\.detach"),
    ],
)
def test_bad_memories_and_beliefs_are_named_in_one_sentence(memory, belief, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        mutual_information(memory, belief)
    assert "\n" not in str(error.value)


def test_a_constant_memory_has_exactly_no_information_and_neither_has_its_control():
    estimate = mutual_information(np.ones(1000), BELIEF)
    assert estimate.shuffled is not None
    assert estimate.bits == estimate.shuffled.bits == 0


@pytest.mark.slow
def test_two_bits_of_gaussian_vectors_are_found_beside_a_control_of_none():
    estimate = mutual_information(*samples("Gaussian, d = 4, 2 bits", 4000))
    assert estimate.bits == pytest.approx(2, abs=0.14)
    assert estimate.interval is not None
    assert estimate.interval[0] < 2 < estimate.interval[1]
    assert 0 < estimate.standard_error < 0.1
    assert estimate.shuffled is not None
    assert estimate.num_samples == estimate.shuffled.num_samples == 4000
    assert estimate.shuffled.bits == pytest.approx(0, abs=0.05)
    assert "(best bound, N = 4000); shuffled " in str(estimate)
