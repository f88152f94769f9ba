"""The atoms bound against channels whose information is known, and the beliefs of a small POMDP."""

import jax
import numpy as np
import pytest
from scipy.stats import entropy

from beliefscope.information import AtomsBound
from beliefscope.information.entropy import discrete_entropy

KEY = jax.random.key(0)
N = 3000
RNG = np.random.default_rng(0)
BELIEFS = RNG.dirichlet(np.ones(3), size=8)
WEIGHTS = 0.5 ** np.arange(1, 9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ATOMS = RNG.choice(8, size=N, p=WEIGHTS)
NOISE = RNG.normal(size=(N, 3))


def bound(x, atoms=ATOMS):
    return AtomsBound().estimate(KEY, x, BELIEFS[atoms])


def test_beliefs_share_their_whole_entropy_with_themselves():
    found = bound(BELIEFS[ATOMS])
    assert found.bits == pytest.approx(discrete_entropy(BELIEFS[ATOMS]).bits, abs=0.02)
    assert found.bits <= found.entropy + 1e-9
    assert (found.num_atoms, found.num_judged, found.num_samples) == (8, 2 * N // 5, N)
    assert found.warnings == ()


def test_noise_proves_nothing():
    found = bound(NOISE)
    assert found.bits == pytest.approx(0, abs=0.01)
    assert found.standard_error < 0.01


def test_the_error_has_that_of_the_entropy():
    """A memory that names the atom: all that errs is H, by counting."""
    surprise = -np.log2(WEIGHTS)
    expected = np.sqrt(np.sum(WEIGHTS * surprise**2) - np.sum(WEIGHTS * surprise) ** 2) / np.sqrt(N)
    assert bound(np.eye(8)[ATOMS]).standard_error == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("wrong", [0.1, 0.5])
def test_a_channel_that_is_sometimes_wrong_lets_through_what_is_known(wrong):
    """The memory names the atom, or one of the eight at random: I(h; b) from the table of both."""
    rng = np.random.default_rng(1)
    named = np.where(rng.random(N) < wrong, rng.integers(0, 8, size=N), ATOMS)
    joint = np.diag(WEIGHTS) * (1 - wrong) + WEIGHTS[:, None] * wrong / 8
    truth = entropy(WEIGHTS, base=2) + entropy(joint.sum(axis=0), base=2) - entropy(joint.ravel(), base=2)
    found = bound(np.eye(8)[named])
    assert found.bits == pytest.approx(truth, abs=0.12)
    assert found.bits < truth + 3 * found.standard_error


@pytest.mark.slow
def test_the_bound_is_one_and_functions_of_a_memory_do_not_exceed_it():
    memory = 3 * BELIEFS[ATOMS] + 0.3 * NOISE
    whole = bound(memory)
    for function in (memory[:, [0, 0, 0]], memory + NOISE[::-1], np.round(memory)):
        found = bound(function)
        assert found.bits <= whole.bits + 2 * (whole.standard_error + found.standard_error)


def test_rare_atoms_are_one_class_and_many_of_them_are_told():
    """Half of the rows have beliefs of their own: what is proven is about the class, and a warning says so."""
    rng = np.random.default_rng(2)
    beliefs = np.where((ATOMS > 0)[:, None], BELIEFS[0], rng.dirichlet(np.ones(3), size=N))
    memory = np.stack([ATOMS > 0, *NOISE.T[:2]], axis=1).astype(float)
    found = AtomsBound().estimate(KEY, memory, beliefs)
    share = np.mean(ATOMS == 0)
    assert found.num_classes == 2
    assert found.bits == pytest.approx(entropy([share, 1 - share], base=2), abs=0.02)
    assert found.rare == pytest.approx(share)
    assert "rare atoms" in found.warnings[0]


def test_it_says_what_it_rests_on():
    text = str(bound(BELIEFS[ATOMS]))
    assert "8 atoms" in text
    assert "1200 judged rows" in text
    assert bound(BELIEFS[ATOMS]).entropy_bias == pytest.approx(8 / (2 * N * np.log(2)))


def test_too_few_pairs_get_one_sentence():
    with pytest.raises(ValueError, match="the atoms bound needs at least 500 pairs, but got 100"):
        AtomsBound().estimate(KEY, NOISE[:100], NOISE[:100])
