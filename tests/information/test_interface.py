"""What an estimator accepts, and the sentence for what it does not."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from beliefscope.information import KSG, Estimate, Estimator, Gaussian, checked_pair

ROWS = np.arange(12.0).reshape(6, 2)


class Tensor:
    """Stands for the arrays of other libraries: all it has is __array__."""

    def __array__(self, dtype=None, copy=None):
        return ROWS.astype(np.float32)


class OnlyDLPack:
    """Stands for the arrays of libraries that exchange memory and no more."""

    def __dlpack__(self, **arguments):
        return ROWS.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return ROWS.__dlpack_device__()


def test_every_kind_of_array_is_read_and_single_precision_kept():
    for x, dtype in [
        (ROWS, np.float64),
        (jnp.asarray(ROWS), np.float32),
        (Tensor(), np.float32),
        (OnlyDLPack(), np.float64),
        (torch.from_numpy(ROWS), np.float64),
        (torch.from_numpy(ROWS).float(), np.float32),
        (torch.from_numpy(ROWS).int(), np.float64),
        (ROWS.tolist(), np.float64),
        (ROWS.astype(int), np.float64),
        (ROWS.astype(np.float16), np.float64),
        (jnp.asarray(ROWS, jnp.bfloat16), np.float64),
    ]:
        pair = checked_pair(x, ROWS, sets_allowed=False)
        assert type(pair.x) is np.ndarray
        assert pair.x.dtype == dtype
        np.testing.assert_array_equal(pair.x, ROWS)


def test_a_list_of_numbers_is_one_column():
    pair = checked_pair(np.arange(6), np.arange(6) > 2, sets_allowed=False)
    assert pair.x.shape == pair.y.shape == (6, 1)


def test_sets_pass_where_they_are_allowed():
    assert checked_pair(ROWS, np.zeros((6, 5, 2)), sets_allowed=True).y.shape == (6, 5, 2)


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (np.full((6, 2), np.nan), ROWS, "every number in x is finite, but got '12 NaN or infinite of 12'"),
        (ROWS, np.array([1.0, 2, 3, 4, 5, np.inf]), "every number in y is finite, but got '1 NaN or infinite of 6'"),
        (ROWS, ROWS[:5], r"same number of samples, one pair a row, but got \(6, 5\)"),
        (ROWS[:1], ROWS[:1], "the number of rows of x is at least 2, but got 1"),
        (3.0, ROWS, r"x has the shape \[N, d\], but got \(\)"),
        (ROWS, np.zeros((6, 2, 2, 2)), r"y has the shape \[N, d\] or \[N, M, d\], but got \(6, 2, 2, 2\)"),
        (np.zeros((6, 2, 2)), ROWS, r"x is a batch of vectors \[N, d\] here and not of sets"),
        (ROWS, np.zeros((6, 0)), "at least one number"),
        (ROWS, np.zeros((6, 0, 2)), "at least one number"),
        (ROWS + 1j, ROWS, "x is an array of real numbers"),
        (["one", "two"], ROWS, "x is an array of real numbers that NumPy can read, but got 'list'"),
        ([[1.0], [1.0, 2.0]], ROWS, "x is an array of real numbers"),
        (torch.zeros(6, 2, requires_grad=True), ROWS, r"but got 'Tensor'; .* tensor\.detach\(\)\.cpu\(\)"),
        (None, ROWS, "x is an array of real numbers that NumPy can read, but got 'NoneType'"),
    ],
)
def test_bad_input_is_named_in_one_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        checked_pair(x, y, sets_allowed=True)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("estimator", [KSG(), Gaussian()])
def test_sets_are_refused_by_estimators_of_vectors(estimator):
    with pytest.raises(ValueError, match=r"y is a batch of vectors \[N, d\] here and not of sets, but got \(6, 5, 2\)"):
        estimator.estimate(jnp.zeros(2, jnp.uint32), ROWS, np.zeros((6, 5, 2)))


def test_estimators_are_estimators_and_other_things_are_not():
    assert isinstance(KSG(), Estimator)
    assert isinstance(Gaussian(), Estimator)
    assert not isinstance(np.zeros(3), Estimator)


def estimate(bits, ceiling=None, particles=None, **more):
    facts = {"standard_error": 0.125, "num_samples": 10, "num_particles": particles, "estimator": "none"}
    return Estimate(bits=bits, ceiling=ceiling, **facts, **more)


def test_an_estimate_is_near_its_ceiling_within_half_a_bit():
    assert estimate(5.6, 6.0).near_ceiling
    assert not estimate(5.4, 6.0).near_ceiling
    assert not estimate(5.6).near_ceiling


def test_an_estimate_says_in_words_what_must_stand_beside_its_number():
    assert str(estimate(1.234)) == "1.23 ± 0.12 bits (none, N = 10)"
    assert str(estimate(1.0, 6.0, particles=5)) == "1.00 ± 0.12 bits (none, N = 10, M = 5)"
    doubtful = dataclasses.replace(estimate(5.6, 6.0), warnings=("near the ceiling of 6.0 bits",))
    assert str(doubtful) == "5.60 ± 0.12 bits (none, N = 10); warning: near the ceiling of 6.0 bits"
    assert str(estimate(1.0, shuffled=estimate(0.014))).endswith("(none, N = 10); shuffled 0.01")
