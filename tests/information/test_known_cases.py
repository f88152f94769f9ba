"""The truth of every known case by a second route, from its samples wherever possible."""

import jax
import numpy as np
import pytest
from information.samples import NUM_SAMPLES, SEED, samples
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest, multivariate_t, t

from beliefscope.information import Gaussian, discrete_entropy, gaussian_bits, known_cases

KEY = jax.random.key(0)
CASES = known_cases()


def names(start, end=""):
    return [name for name in CASES if name.startswith(start) and name.endswith(end)]


def doubles(name, num_samples):
    x, y = samples(name, num_samples)
    return x.astype(float), y.astype(float)


def gaussian_estimate_agrees(x, y, bits):
    estimate = Gaussian().estimate(KEY, x, y)
    return abs(estimate.bits - bits) < 4 * estimate.standard_error < 0.2


def seen_by(memory):
    """The two numbers under the 64 tanh of the set cases, up to a linear map, and what is left over."""
    left, sizes, _ = np.linalg.svd(np.arctanh(memory), full_matrices=False)
    return left[:, :2], sizes[2] / sizes[1]


def set_noise(name):
    """τ² of a set case: x shows z + τξ, and the correlation with the mean of the set is what the bits need."""
    num_particles, bits = int(name.split()[2]), CASES[name].bits
    return 1 / ((1 - 2**-bits) * (1 + 0.25 / num_particles)) - 1, num_particles


@pytest.mark.parametrize("name", CASES)
def test_samples_can_be_compiled_and_have_the_shapes_of_their_kind(name):
    x, y = jax.eval_shape(lambda key: CASES[name].sample(key, 7), KEY)
    first_x, first_y = samples(name, 7)
    assert x.shape == first_x.shape
    assert y.shape == first_y.shape
    assert x.dtype == y.dtype == np.float32


@pytest.mark.parametrize("name", ["Gaussian, d = 1, 1 bits", "code of 102 symbols", "set of 100 particles, 2 bits"])
def test_samples_depend_on_the_key_alone_compiled_or_not(name):
    draw = jax.jit(CASES[name].sample, static_argnums=1)
    plain_x, plain_y = samples(name, NUM_SAMPLES[name])
    x, y = draw(jax.random.key(SEED), NUM_SAMPLES[name])
    np.testing.assert_allclose(x, plain_x, atol=1e-5)
    np.testing.assert_allclose(y, plain_y, atol=1e-5)
    other_x, other_y = draw(jax.random.key(SEED + 1), NUM_SAMPLES[name])
    assert not np.array_equal(x, other_x)
    assert not np.array_equal(y, other_y)


def test_the_cases_cover_their_kinds_and_three_are_frozen():
    frozen = [name for name, case in CASES.items() if case.frozen]
    assert [name.split()[0] for name in frozen] == ["Gaussian,", "code", "set"]
    assert all(case.name == name for name, case in CASES.items())
    assert {doubles(name, 2)[1].shape[1:] for name in CASES} >= {(1,), (106,), (206,), (100, 2), (1000, 2)}


@pytest.mark.parametrize("name", names("Gaussian"))
def test_gaussian_cases_have_the_information_of_their_sample_covariance(name):
    x, y = doubles(name, 20_000)
    if name.endswith("cubed"):
        x, y = np.cbrt(x), np.cbrt(y)
    if name.endswith("arcsinh"):
        x, y = np.sinh(x) / 4, np.sinh(y) / 4
    assert gaussian_estimate_agrees(x, y, CASES[name].bits)
    assert kstest(y[:, 0], "norm").pvalue > 1e-3
    assert kstest(x[:, -1], "norm").pvalue > 1e-3


@pytest.mark.parametrize("name", names("Student"))
def test_student_cases_have_the_mean_log_ratio_of_their_densities(name):
    """SciPy's density of the multivariate t, at the samples."""
    dimension = doubles(name, 2)[0].shape[1]
    rho = np.sqrt(0.75)  # one bit for each dimension
    eye = np.eye(dimension)
    dispersion = np.block([[eye, rho * eye], [rho * eye, eye]])
    x, y = doubles(name, 20_000)
    ratio = (
        multivariate_t(shape=dispersion, df=3).logpdf(np.concatenate([x, y], axis=1))
        - multivariate_t(shape=eye, df=3).logpdf(x)
        - multivariate_t(shape=eye, df=3).logpdf(y)
    ) / np.log(2)
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - CASES[name].bits) < 4 * error < 0.08
    assert kstest(y[:, 0], t(3).cdf).pvalue > 1e-3


def test_the_student_pair_agrees_with_numerical_integration():
    joint, single, rho = multivariate_t(shape=[[1, np.sqrt(0.75)], [np.sqrt(0.75), 1]], df=3), t(3), np.sqrt(0.75)

    # Sinh stretches the axes, so that the heavy tails lie in a small square; z = y − ρx follows the ridge.
    grid = np.linspace(-8, 8, 161)
    x, z = np.meshgrid(np.sinh(grid), np.sinh(grid), indexing="ij")
    y = rho * x + z
    log_joint = joint.logpdf(np.stack([x, y], axis=-1))
    jacobian = np.cosh(grid)[:, None] * np.cosh(grid)[None, :]
    integrand = np.exp(log_joint) * (log_joint - single.logpdf(x) - single.logpdf(y)) * jacobian
    bits = np.trapezoid(np.trapezoid(integrand, grid), grid) / np.log(2)
    assert bits == pytest.approx(CASES["Student t(3), d = 1, 1 bits of correlation"].bits, abs=1e-3)


@pytest.mark.parametrize("num_symbols", [102, 202])
def test_symbols_are_equally_likely_and_decoded_without_error(num_symbols):
    x, y = doubles(f"code of {num_symbols} symbols", 20_000)
    symbol = y.argmax(axis=1)
    assert y.shape[1] == num_symbols + 4
    assert np.array_equal(y, np.eye(num_symbols + 4)[symbol])
    assert chisquare(np.bincount(symbol, minlength=num_symbols)).pvalue > 1e-3
    codes = np.stack([x[symbol == s][0] for s in range(num_symbols)])
    assert np.array_equal(codes[symbol], x)
    distances = np.linalg.norm(codes[:, None] - codes, axis=2) + 9 * np.eye(num_symbols)
    assert 0.1 < distances.min() < 1
    assert np.linalg.norm(codes[2:] - codes[:-2], axis=1).max() < 2  # smooth along a branch
    bits = CASES[f"code of {num_symbols} symbols"].bits
    assert discrete_entropy(x).bits == pytest.approx(bits, abs=0.01)
    assert discrete_entropy(y).bits == pytest.approx(bits, abs=0.01)


@pytest.mark.parametrize("name", [name for name in CASES if "with noise" in name])
def test_noisy_codes_have_the_mean_log_posterior_of_their_samples(name):
    """The codes come from the case without noise, the noise from the samples; every atom and draw is sampled."""
    clean = name.split(" with")[0]
    code, belief = doubles(clean, 5000)
    codes = np.stack([code[belief[:, s] == 1][0] for s in range(belief.shape[1] - 4)])
    x, y = doubles(name, 20_000)
    symbol = y.argmax(axis=1)
    deviation = (x - codes[symbol]).std()
    assert deviation == pytest.approx(float(name.split()[-1]), rel=0.01)
    log_likelihood = -((x**2).sum(1)[:, None] - 2 * x @ codes.T + (codes**2).sum(1)) / (2 * deviation**2)
    log_posterior = np.take_along_axis(log_likelihood, symbol[:, None], axis=1)[:, 0] - logsumexp(
        log_likelihood, axis=1
    )
    bits = log_posterior / np.log(2) + np.log2(len(codes))
    case, error = CASES[name], bits.std() / np.sqrt(len(bits))
    assert abs(bits.mean() - case.bits) < 4 * np.hypot(error, case.standard_error)
    assert error < 0.03
    assert 0 < case.standard_error < 0.01
    assert 2 < case.bits < 4.5


@pytest.mark.parametrize("name", names("set"))
def test_sets_tell_no_more_than_their_means(name):
    """The covariance of what x shows with all M particles of one coordinate, not their mean; two coordinates."""
    noise, num_particles = set_noise(name)
    covariance = np.ones((1 + num_particles, 1 + num_particles))
    covariance[0, 0] += noise
    covariance[1:, 1:] += 0.25 * np.eye(num_particles)
    assert 2 * gaussian_bits(covariance, 1) == pytest.approx(CASES[name].bits, abs=1e-6)


@pytest.mark.parametrize("name", names("set"))
def test_set_samples_have_that_covariance(name):
    x, y = doubles(name, 4000)
    seen, left_over = seen_by(x)
    assert np.abs(x).max() <= 1
    assert left_over < 1e-3
    assert gaussian_estimate_agrees(seen, y.mean(axis=1), CASES[name].bits)
    assert (y - y.mean(axis=1, keepdims=True)).std() == pytest.approx(0.5 * np.sqrt(1 - 1 / y.shape[1]), rel=0.01)
    assert np.cov(y[:, 0].T) == pytest.approx(1.25 * np.eye(2), abs=0.1)


@pytest.mark.parametrize("name", names("independent"))
def test_independent_cases_show_no_covariance(name):
    x, y = doubles(name, 4000)
    y = y if y.ndim == 2 else y.reshape(len(y), -1)
    assert CASES[name].bits == 0
    assert gaussian_estimate_agrees(x, y, 0.0)
