"""The truths of both halves by a second route; references and their errors on the learning half alone."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import KDTree
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm

from beliefscope.information import discrete_entropy, exact_entropy, gaussian_bits
from benchmarks.known_information import families
from benchmarks.known_information.cases import estimator_cases, later_cases, tail_cases
from benchmarks.known_information.families import belief_atoms, random_tables, tiger_tables
from benchmarks.known_information.models import (
    ARCSINH,
    CUBE,
    Codes,
    GaussianPairs,
    Invertible,
    Particles,
    Shuffled,
    Student,
    UniformNoise,
    rotated,
    spiral,
)

LEARNING, FROZEN, TAILS = estimator_cases(frozen=False), estimator_cases(frozen=True), tail_cases()
LATER = later_cases()
CASES = LEARNING | FROZEN | TAILS | LATER
FAMILIES = {
    "POMDP beliefs",
    "codes",
    "Gaussian",
    "uniform noise",
    "Student's t",
    "rotations",
    "independent",
    "particles",
    "infinite",
}
TIGER = tiger_tables(doors=3, actions=2, accuracy=0.7)
RANDOM = random_tables(7, states=4, observations=3, actions=2, resets=False)
RESETTING = random_tables(8, states=6, observations=2, actions=2, resets=True)


def of(*families):
    return [name for name, case in CASES.items() if case.family in families]


def doubles(name, num_samples, seed=3):
    return [part.astype(np.float64) for part in CASES[name].sample(seed, num_samples)]


def agrees(log_ratio, case):
    """The mean of log ratios in nats with the bits of a case."""
    bits = log_ratio / np.log(2)
    error = np.hypot(bits.std() / np.sqrt(len(bits)), case.standard_error)
    return abs(bits.mean() - case.bits) < 4 * error + 1e-6 and error < 0.05 + 0.02 * case.bits


def gaussian_log_ratio(x, y, correlation):
    return np.sum(norm.logpdf(y, correlation * x, np.sqrt(1 - correlation**2)) - norm.logpdf(y), axis=1)


def simulated_beliefs(tables, horizon, num_episodes, rng):
    """States, actions and observations are drawn, and Bayes' rule is applied to each history by itself."""

    def drawn(probabilities):
        return (rng.random((len(probabilities), 1)) > np.cumsum(probabilities, axis=1)).sum(axis=1)

    last = rng.integers(1, horizon + 1, num_episodes)
    belief = np.tile(tables.initial, (num_episodes, 1))
    state = drawn(belief)
    at_last = np.zeros_like(belief)
    for step in range(1, horizon + 1):
        action = rng.integers(len(tables.transition), size=num_episodes)
        state = drawn(tables.transition[action, state])
        seen = drawn(tables.observation[action, state])
        belief = np.einsum("ns,nst->nt", belief, tables.transition[action])
        belief *= tables.observation[action, :, seen]
        belief /= belief.sum(axis=1, keepdims=True)
        at_last[last == step] = belief[last == step]
    return at_last


def test_names_are_unique_and_each_half_has_every_family():
    assert len(CASES) == len(LEARNING) + len(FROZEN) + len(TAILS) + len(LATER)
    assert (len(LEARNING), len(FROZEN), len(TAILS), len(LATER)) == (82, 44, 27, 43)
    assert all(case.frozen for case in TAILS.values())
    for half, frozen in ((LEARNING, False), (FROZEN, True), (LATER, True)):
        assert {case.family for case in half.values()} == FAMILIES
        assert all(case.frozen is frozen and case.name == name for name, case in half.items())
        known = [case for case in half.values() if case.closed_form is not None]
        assert all(np.isfinite(case.bits) == (case.family != "infinite") for case in known)


@pytest.mark.parametrize("half", [LEARNING, FROZEN], ids=["learning", "frozen"])
def test_each_half_has_both_ends_of_each_range(half):
    names = " | ".join(half)
    ends = [
        *("of 51 symbols", "of 404 symbols", "noise 0.01", "noise 1,", "32 + ", "256 + ", "+ 100", "808 wide", "x = y"),
        *(
            "random code",
            "smooth code",
            "hierarchical code",
            "memory of 32",
            "memory of 64",
            "tiger",
            "rough",
            "smooth",
        ),
        *("dense", "in pairs", "sparse", "d = 50", "0.3 bits", "12 bits", "Student t(1)", "Student t(5)"),
        *("asinh", "cube", "spiral", "rotated, d = 2,", "rotated, d = 25", "heavy tails", "1 and 1", "256 and 808"),
        *(
            "sets of 50",
            "sets of 300",
            "particles, d = 1, ",
            "particles, d = 3, ",
            "independent, sets",
            "independent, code",
        ),
    ]
    assert [end for end in ends if end not in names] == []
    bits = [case.bits for case in half.values() if case.family == "particles"]
    assert (min(bits), max(bits)) == (1, 5)
    states = {case.sample(0, 1)[1].shape[1] for case in half.values() if case.family == "POMDP beliefs"}
    assert {2, 6} <= states


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_shapes_of_their_names_and_seeds_reproduce_them(name):
    x, y = CASES[name].sample(0, 20)
    assert x.dtype == y.dtype == np.float32
    assert len(x) == len(y) == 20
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()
    if found := re.search(r"(\d+) \+ (\d+) columns, .* (\d+) wide", name):
        assert (x.shape[1], y.shape[1]) == (int(found[1]) + int(found[2]), int(found[3]))
    if found := re.search(r"(\d+) and (\d+)", name):
        assert (x.shape[1], y.shape[1]) == (int(found[1]), int(found[2]))
    if found := re.search(r"d = (\d+)", name):
        assert y.shape[-1] == int(found[1])
    if found := re.search(r"sets of (\d+)", name):
        assert y.shape[1] == int(found[1])
    assert y.ndim == 2 + ("sets of" in name)
    again_x, again_y = CASES[name].sample(0, 20)
    assert np.array_equal(x, again_x)
    assert np.array_equal(y, again_y)
    other_x, other_y = CASES[name].sample(1, 20)
    assert not np.array_equal(x, other_x)
    assert not np.array_equal(y, other_y)


@pytest.mark.parametrize("name", of("Gaussian", "rotations", "heavy tails"))
def test_gaussian_cases_have_the_mean_log_ratio_of_their_densities(name):
    model = CASES[name].model
    assert isinstance(model, GaussianPairs)
    x, y = doubles(name, 10_000)
    x, y = model.map_x.inverse(x), model.map_y.inverse(y)
    assert agrees(gaussian_log_ratio(x, y, model.correlations), CASES[name])
    assert abs(x.std() - 1) < 0.05
    assert abs(y.std() - 1) < 0.05


@pytest.mark.parametrize(
    "invertible", [rotated(np.eye(5)[::-1], CUBE), rotated(np.eye(5), ARCSINH), spiral(np.eye(5), 2.0)]
)
def test_maps_are_inverted(invertible):
    rows = np.random.default_rng(0).normal(size=(50, 5))
    np.testing.assert_allclose(invertible.inverse(invertible.forward(rows)), rows, atol=1e-9)
    assert not np.allclose(invertible.forward(rows), rows, atol=0.1)


def test_a_spiral_turns_rows_by_their_length():
    rows = np.array([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(
        spiral(np.eye(2), np.pi / 2).forward(rows), [[0, 1], [0, -2]], atol=1e-12, err_msg="a quarter, and a half turn"
    )


@pytest.mark.parametrize("name", of("uniform noise"))
def test_uniform_noise_has_the_mean_log_ratio_of_its_densities(name):
    model = CASES[name].model
    assert isinstance(model, UniformNoise)
    width = model.width
    x, y = doubles(name, 10_000)
    assert np.abs(y - x).max() <= width + 1e-6
    overlap = np.minimum(y + width, 1) - np.maximum(y - width, 0)
    assert agrees(-np.log(np.maximum(overlap, 1e-9)).sum(axis=1), CASES[name])


@pytest.mark.parametrize("name", of("Student's t"))
def test_student_cases_have_the_mean_log_ratio_of_their_densities(name):
    model = CASES[name].model
    assert isinstance(model, Student)
    eye = np.eye(model.columns)
    both = np.kron([[1, model.correlation], [model.correlation, 1]], eye)
    x, y = doubles(name, 10_000)
    log_joint = multivariate_t(shape=both, df=model.freedom).logpdf(np.concatenate([x, y], axis=1))
    alone = multivariate_t(shape=eye, df=model.freedom)
    assert agrees(log_joint - alone.logpdf(x) - alone.logpdf(y), CASES[name])


def one_in_six_fast(names):
    """Their truths are means over much noise, a second or more each."""
    return [pytest.param(name, marks=[pytest.mark.slow] if place % 6 else []) for place, name in enumerate(names)]


@pytest.mark.parametrize("name", one_in_six_fast(of("codes", "POMDP beliefs")))
def test_codes_have_the_mean_log_posterior_of_their_samples(name):
    case = CASES[name]
    assert isinstance(case.model, Codes)
    x, y = case.sample(3, 4000)
    atom, codes = case.model.atoms_of(y), case.model.codes.astype(np.float64)
    assert np.array_equal(case.model.values[atom], y)
    noise = max(case.model.noise, 1e-8)
    squares = -2 * x[:, : codes.shape[1]].astype(np.float64) @ codes.T + np.sum(codes**2, axis=1)
    log_joint = np.log(case.model.weights) - squares / (2 * noise**2)
    log_posterior = log_joint[np.arange(len(atom)), atom] - logsumexp(log_joint, axis=1)
    assert agrees(log_posterior - np.log(case.model.weights[atom]), case)
    assert 0 < case.bits <= exact_entropy(case.model.weights) + 1e-9
    assert case.standard_error < 0.02


def test_a_code_tells_all_without_noise_and_nothing_in_much():
    model = families.code("a code", "hierarchical", 51, 32, noise=1.0, width=51)
    clear = families.EstimatorCase("clear", "codes", None, replace(model, noise=1e-4))
    lost = families.EstimatorCase("lost", "codes", None, replace(model, noise=1e4))
    assert clear.bits == pytest.approx(np.log2(51), abs=1e-6)
    assert lost.bits == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("tables", "horizon"), [(TIGER, 8), (RANDOM, 3), (RESETTING, 6)])
def test_atoms_are_the_beliefs_of_simulated_histories(tables, horizon):
    atoms, num_episodes = belief_atoms(tables, horizon), 40_000
    beliefs = simulated_beliefs(tables, horizon, num_episodes, np.random.default_rng(0))
    distance, atom = KDTree(atoms.values.astype(np.float64)).query(beliefs)
    assert np.max(distance) < 5e-6
    counts = np.bincount(atom, minlength=len(atoms.weights))
    errors = np.sqrt(num_episodes * atoms.weights * (1 - atoms.weights))
    assert (np.abs(counts - num_episodes * atoms.weights) < 5 * errors + 5).all()
    assert discrete_entropy(atoms.values[atom]).bits == pytest.approx(exact_entropy(atoms.weights), abs=0.03)
    assert atoms.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", of("particles"))
def test_sets_tell_no_more_than_their_means(name):
    """The covariance of what x shows with all particles, then the log ratio of samples with their mean."""
    case, model = CASES[name], CASES[name].model
    assert isinstance(model, Particles)
    size = len(model.weights)
    covariance = np.ones((1 + model.num_particles, 1 + model.num_particles))
    covariance[0, 0] += model.noise**2
    covariance[1:, 1:] += model.deviation**2 * np.eye(model.num_particles)
    assert size * gaussian_bits(covariance, 1) == pytest.approx(case.bits, abs=1e-6)

    x, y = doubles(name, 4000)
    assert np.abs(x).max() < 1
    seen = np.arctanh(x) @ np.linalg.pinv(model.weights)
    np.testing.assert_allclose(np.tanh(seen @ model.weights), x, atol=1e-4)
    deviations = np.sqrt([1 + model.noise**2, 1 + model.deviation**2 / model.num_particles])
    ratio = gaussian_log_ratio(seen / deviations[0], y.mean(axis=1) / deviations[1], 1 / deviations.prod())
    assert agrees(ratio, case)
    assert (y - y.mean(axis=1, keepdims=True)).std() == pytest.approx(model.deviation, rel=0.02)


def test_shuffled_symbols_meet_by_chance():
    case = LEARNING["independent, code of 102 symbols"]
    assert isinstance(case.model, Shuffled)
    assert isinstance(case.model.model, Codes)
    codes = case.model.model.codes
    x, y = case.sample(3, 10_000)
    squares = np.sum(codes**2, axis=1) - 2 * x @ codes.T
    assert np.mean(squares.argmin(axis=1) == y.argmax(axis=1)) < 3 / 102


@pytest.mark.parametrize("name", of("infinite"))
def test_infinite_cases_are_functions_that_can_be_inverted(name):
    model = CASES[name].model
    assert isinstance(model, Invertible)
    x, y = CASES[name].sample(0, 1000)
    assert CASES[name].bits == np.inf
    found = model.map_y.inverse(y)
    np.testing.assert_allclose(model.map_y.forward(found), model.map_y.forward(x), atol=1e-4)
    assert np.median(np.abs(found - x)) < 1e-5  # near 0 the root of a rounded cube is less exact


REFERRED = """
beliefs of tiger of 2 doors, smooth memory of 32, noise 0.6
beliefs of tiger of 2 doors, x = y
beliefs of POMDP 1, rough memory of 64, noise 0.05
random code of 51 symbols, 32 + 0 columns, noise 1, 51 wide
smooth code of 102 symbols, 64 + 100 columns, noise 0.01, 106 wide
Gaussian, dense, d = 20, rank 2, 2 bits
Gaussian, in pairs, d = 10, rank 10, 12 bits
Gaussian, sparse, d = 50, rank 2, 3 bits
uniform noise of ±0.1, d = 5
Student t(3), d = 2, 3 bits of correlation
spiral, rotated, d = 3, 2 bits
cube, rotated, d = 8, 4 bits
sets of 120 particles, d = 2, 3 bits
independent, 4 and 4, normal
""".strip().splitlines()


@pytest.mark.parametrize("name", REFERRED)
def test_references_come_near_the_truth_and_not_above_it(name):
    case = CASES[name]
    x, y = case.sample(3, 10_000)
    train, blocks = slice(None, 5000), np.arange(5000, 10_000).reshape(5, 1000)
    bits = np.array([case.reference(x, y, train, judge) for judge in blocks])
    error = np.hypot(bits.std(ddof=1) / np.sqrt(len(bits)), case.standard_error)
    assert bits.mean() < case.bits + 4 * error + 0.03 * case.bits + 1e-9
    assert bits.mean() > 0.9 * case.bits - 4 * error - 1e-9


def test_the_reference_of_infinite_information_is_infinite():
    case = LEARNING["infinite, y = x, d = 1"]
    x, y = case.sample(0, 10)
    assert case.reference(x, y, slice(5), slice(5, None)) == np.inf
