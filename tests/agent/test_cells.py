"""The five cells against their equations: by hand, in NumPy and in PyTorch; and what every cell must be."""

import math
from functools import partial
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.agent import BRC, GRU, LSTM, MGU, NBRC

CELLS = [LSTM, GRU, BRC, NBRC, MGU]
INPUTS, SIZE, STEPS = 2, 3, 5


def with_parameters(kind, values):
    """A cell whose fields are those of `values`."""
    inputs, columns = np.shape(values["input_weights"])
    size = columns // {LSTM: 4, GRU: 3, BRC: 3, NBRC: 3, MGU: 2}[kind]
    cell = eqx.filter_eval_shape(kind, jax.random.key(0), inputs, size)
    assert len(values) == len(jax.tree.leaves(cell))
    for name, value in values.items():
        value = jnp.asarray(value, jnp.float32)
        assert value.shape == getattr(cell, name).shape
        cell = eqx.tree_at(lambda cell, name=name: getattr(cell, name), cell, value)
    return cell


def logistic(x):
    return 1 / (1 + math.exp(-x))


@jax.jit
def one_step(cell, memory, x):
    return cell.step(memory, x)


def hidden_states(cell, inputs):
    memory, states = cell.init_memory(), []
    for x in inputs:
        memory = one_step(cell, memory, jnp.asarray(x, jnp.float32))
        states.append(np.asarray(jax.tree.leaves(memory)[0]))
    return np.stack(states), memory


X1, X2 = 0.7, -1.3


def test_two_steps_of_the_lstm_are_those_computed_by_hand():
    cell = with_parameters(
        LSTM,  # i, f, o, g
        {
            "input_weights": [[0.5, -0.4, 0.3, 0.9]],
            "recurrent_weights": [[-0.6, 0.7, 1.1, -0.8]],
            "bias": [0.1, 0.2, -0.3, 0.05],
        },
    )
    c1 = logistic(0.5 * X1 + 0.1) * math.tanh(0.9 * X1 + 0.05)
    h1 = logistic(0.3 * X1 - 0.3) * math.tanh(c1)
    kept = logistic(-0.4 * X2 + 0.7 * h1 + 0.2) * c1
    c2 = kept + logistic(0.5 * X2 - 0.6 * h1 + 0.1) * math.tanh(0.9 * X2 - 0.8 * h1 + 0.05)
    h2 = logistic(0.3 * X2 + 1.1 * h1 - 0.3) * math.tanh(c2)
    states, (_, carried) = hidden_states(cell, [[X1], [X2]])
    np.testing.assert_allclose(states[:, 0], [h1, h2], rtol=1e-6, atol=1e-7)
    assert carried[0] == pytest.approx(c2, rel=1e-6)


def test_two_steps_of_the_gru_are_those_computed_by_hand():
    cell = with_parameters(
        GRU,  # r, z, n; biases r, z, b'_n, b_n
        {
            "input_weights": [[0.5, -0.4, 0.9]],
            "recurrent_weights": [[-0.6, 0.7, 1.1]],
            "bias": [0.1, 0.2, -0.35, 0.25],
        },
    )
    r1, z1 = logistic(0.5 * X1 + 0.1), logistic(-0.4 * X1 + 0.2)
    h1 = (1 - z1) * math.tanh(0.9 * X1 + 0.25 + r1 * -0.35)
    r2, z2 = logistic(0.5 * X2 - 0.6 * h1 + 0.1), logistic(-0.4 * X2 + 0.7 * h1 + 0.2)
    h2 = (1 - z2) * math.tanh(0.9 * X2 + 0.25 + r2 * (1.1 * h1 - 0.35)) + z2 * h1
    np.testing.assert_allclose(hidden_states(cell, [[X1], [X2]])[0][:, 0], [h1, h2], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("kind", "recurrent"), [(BRC, [-0.6, 0.7]), (NBRC, [[-0.6, 0.7]])])
def test_two_steps_of_the_bistable_cells_are_those_computed_by_hand(kind, recurrent):
    cell = with_parameters(
        kind,  # c, a, then U and b
        {"input_weights": [[0.5, -0.4, 0.9]], "recurrent_weights": recurrent, "bias": [0.1, 0.2, -0.3]},
    )
    h1 = (1 - logistic(0.5 * X1 + 0.1)) * math.tanh(0.9 * X1 - 0.3)
    c2, a2 = logistic(0.5 * X2 - 0.6 * h1 + 0.1), 1 + math.tanh(-0.4 * X2 + 0.7 * h1 + 0.2)
    h2 = c2 * h1 + (1 - c2) * math.tanh(0.9 * X2 + a2 * h1 - 0.3)
    np.testing.assert_allclose(hidden_states(cell, [[X1], [X2]])[0][:, 0], [h1, h2], rtol=1e-6, atol=1e-7)


def test_two_steps_of_the_mgu_are_those_computed_by_hand():
    cell = with_parameters(
        MGU,  # f, n
        {
            "input_weights": [[0.5, 0.9]],
            "recurrent_weights": [[-0.6]],
            "inner_weights": [[1.1]],
            "bias": [0.1, -0.3],
        },
    )
    h1 = logistic(0.5 * X1 + 0.1) * math.tanh(0.9 * X1 - 0.3)
    f2 = logistic(0.5 * X2 - 0.6 * h1 + 0.1)
    h2 = (1 - f2) * h1 + f2 * math.tanh(0.9 * X2 + 1.1 * (f2 * h1) - 0.3)
    np.testing.assert_allclose(hidden_states(cell, [[X1], [X2]])[0][:, 0], [h1, h2], rtol=1e-6, atol=1e-7)


def drawn(seed, *names):
    """Matrices in the orientation of the equations: W [n, inputs], U [n, n], w and b [n]."""
    rng = np.random.default_rng(seed)
    shapes = {"W": (SIZE, INPUTS), "U": (SIZE, SIZE), "w": (SIZE,), "b": (SIZE,)}
    # Numbers that single precision holds exactly, so that both sides read the same ones.
    values = {name: rng.normal(size=shapes[name[0]]).astype(np.float32).astype(float) for name in names}
    return SimpleNamespace(**values)


def across(*matrices):
    """Matrices of the equations as the columns of one."""
    return np.concatenate([matrix.T for matrix in matrices], axis=-1)


def sigma(x):
    return 1 / (1 + np.exp(-x))


def numpy_lstm(seed):
    p = drawn(seed, "Wi", "Wf", "Wo", "Wg", "Ui", "Uf", "Uo", "Ug", "bi", "bf", "bo", "bg")

    def step(memory, x):
        h, c = memory
        i, f = sigma(p.Wi @ x + p.Ui @ h + p.bi), sigma(p.Wf @ x + p.Uf @ h + p.bf)
        o, g = sigma(p.Wo @ x + p.Uo @ h + p.bo), np.tanh(p.Wg @ x + p.Ug @ h + p.bg)
        c = f * c + i * g
        return o * np.tanh(c), c

    values = {
        "input_weights": across(p.Wi, p.Wf, p.Wo, p.Wg),
        "recurrent_weights": across(p.Ui, p.Uf, p.Uo, p.Ug),
        "bias": across(p.bi, p.bf, p.bo, p.bg),
    }
    return step, values


def numpy_gru(seed):
    p = drawn(seed, "Wr", "Wz", "Wn", "Ur", "Uz", "Un", "br", "bz", "bn", "b_inner")

    def step(memory, x):
        (h,) = memory
        r, z = sigma(p.Wr @ x + p.Ur @ h + p.br), sigma(p.Wz @ x + p.Uz @ h + p.bz)
        n = np.tanh(p.Wn @ x + p.bn + r * (p.Un @ h + p.b_inner))
        return ((1 - z) * n + z * h,)

    values = {
        "input_weights": across(p.Wr, p.Wz, p.Wn),
        "recurrent_weights": across(p.Ur, p.Uz, p.Un),
        "bias": across(p.br, p.bz, p.b_inner, p.bn),
    }
    return step, values


def numpy_bistable(seed, recurrent):
    p = drawn(seed, "Wc", "Wa", "W", "bc", "ba", "b", f"{recurrent}c", f"{recurrent}a")
    through_c, through_a = vars(p)[f"{recurrent}c"], vars(p)[f"{recurrent}a"]

    def times(weights, h):
        return weights @ h if recurrent == "U" else weights * h

    def step(memory, x):
        (h,) = memory
        c = sigma(p.Wc @ x + times(through_c, h) + p.bc)
        a = 1 + np.tanh(p.Wa @ x + times(through_a, h) + p.ba)
        return (c * h + (1 - c) * np.tanh(p.W @ x + a * h + p.b),)

    values = {
        "input_weights": across(p.Wc, p.Wa, p.W),
        "recurrent_weights": across(through_c, through_a),
        "bias": across(p.bc, p.ba, p.b),
    }
    return step, values


def numpy_mgu(seed):
    p = drawn(seed, "Wf", "W", "Uf", "U", "bf", "b")

    def step(memory, x):
        (h,) = memory
        f = sigma(p.Wf @ x + p.Uf @ h + p.bf)
        return ((1 - f) * h + f * np.tanh(p.W @ x + p.U @ (f * h) + p.b),)

    values = {
        "input_weights": across(p.Wf, p.W),
        "recurrent_weights": p.Uf.T,
        "inner_weights": p.U.T,
        "bias": across(p.bf, p.b),
    }
    return step, values


@pytest.mark.parametrize(
    ("kind", "transcribed"),
    [
        (LSTM, numpy_lstm),
        (GRU, numpy_gru),
        (BRC, lambda seed: numpy_bistable(seed, "w")),
        (NBRC, lambda seed: numpy_bistable(seed, "U")),
        (MGU, numpy_mgu),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_five_steps_are_those_of_the_equations_in_numpy(kind, transcribed):
    for seed in range(3):
        step, values = transcribed(seed)
        cell = with_parameters(kind, values)
        inputs = np.random.default_rng(100 + seed).normal(size=(STEPS, INPUTS)).astype(np.float32)
        memory, expected = (np.zeros(SIZE),) * (2 if kind is LSTM else 1), []
        for x in inputs.astype(float):
            memory = step(memory, x)
            expected.append(memory[0])
        states, ended = hidden_states(cell, inputs)
        np.testing.assert_allclose(states, expected, atol=2e-6)
        np.testing.assert_allclose(np.stack(ended), np.stack(memory), atol=2e-6)


def torch_layer(torch, kind, order, values, input_bias, hidden_bias):
    """A layer of PyTorch in double precision; `order` says which of our blocks its rows hold."""

    def reordered(matrix):
        return np.concatenate([np.split(np.asarray(matrix), len(order), axis=-1)[block] for block in order], axis=-1).T

    layer = kind(INPUTS, SIZE).double()
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.tensor(reordered(values["input_weights"])))
        layer.weight_hh_l0.copy_(torch.tensor(reordered(values["recurrent_weights"])))
        layer.bias_ih_l0.copy_(torch.tensor(input_bias))
        layer.bias_hh_l0.copy_(torch.tensor(hidden_bias))
    return layer


def test_the_gru_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    _, values = numpy_gru(7)
    r, z, inner, new = np.split(values["bias"], 4)
    # PyTorch has two biases for each gate: any two with the right sum.
    input_bias, hidden_bias = np.concatenate([r - 0.3, z + 0.2, new]), np.concatenate([[0.3] * 3, [-0.2] * 3, inner])
    layer = torch_layer(torch, torch.nn.GRU, (0, 1, 2), values, input_bias, hidden_bias)
    inputs = np.random.default_rng(8).normal(size=(STEPS, INPUTS)).astype(np.float32)
    with torch.no_grad():
        expected = layer(torch.tensor(inputs).double())[0].numpy()
    np.testing.assert_allclose(hidden_states(with_parameters(GRU, values), inputs)[0], expected, atol=2e-6)


def test_the_lstm_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    _, values = numpy_lstm(9)
    i, f, o, g = np.split(values["bias"], 4)
    layer = torch_layer(
        torch, torch.nn.LSTM, (0, 1, 3, 2), values, np.concatenate([i, f, g, o]) - 0.3, np.full(4 * SIZE, 0.3)
    )
    inputs = np.random.default_rng(10).normal(size=(STEPS, INPUTS)).astype(np.float32)
    with torch.no_grad():
        expected, (_, carried) = layer(torch.tensor(inputs).double())
    states, memory = hidden_states(with_parameters(LSTM, values), inputs)
    np.testing.assert_allclose(states, expected.numpy(), atol=2e-6)
    np.testing.assert_allclose(memory[1], carried.numpy()[0], atol=2e-6)


LARGE, FEW_INPUTS = 256, 10


@partial(jax.jit, static_argnums=(0, 2, 3))
def begun(kind, key, inputs, size):
    return kind(key, inputs, size)


def assert_uniform(values, limit):
    """Within ±limit, close to it at both ends, and spread as a uniform distribution is."""
    values = np.asarray(values, float)
    assert np.abs(values).max() <= limit * (1 + 1e-6)
    assert values.max() > 0.98 * limit
    assert values.min() < -0.98 * limit
    assert values.std() == pytest.approx(limit / math.sqrt(3), rel=0.08)
    assert abs(values.mean()) < 5 * limit / math.sqrt(3 * values.size)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_every_parameter_of_gru_and_lstm_starts_uniform_within_one_over_the_root_of_n(kind):
    cell = begun(kind, jax.random.key(3), FEW_INPUTS, LARGE)
    for values in jax.tree.leaves(cell):
        assert_uniform(values, 1 / 16)
    # The forget bias is like any other.
    for block in np.split(np.asarray(cell.bias), 4):
        assert_uniform(block, 1 / 16)


@pytest.mark.parametrize("kind", [BRC, NBRC, MGU])
def test_the_matrices_of_bistable_cells_and_mgu_start_glorot_uniform_and_their_biases_at_zero(kind):
    cell = begun(kind, jax.random.key(4), FEW_INPUTS, LARGE)
    for block in np.split(np.asarray(cell.input_weights), 2 if kind is MGU else 3, axis=1):
        assert_uniform(block, math.sqrt(6 / (FEW_INPUTS + LARGE)))
    assert not np.any(cell.bias)
    if kind is BRC:
        assert cell.recurrent_weights.shape == (2 * LARGE,)
        assert np.all(np.asarray(cell.recurrent_weights) == 1)
        return
    for block in np.split(np.asarray(cell.recurrent_weights), 1 if kind is MGU else 2, axis=1):
        assert_uniform(block, math.sqrt(6 / (LARGE + LARGE)))
    if kind is MGU:
        assert_uniform(cell.inner_weights, math.sqrt(6 / (LARGE + LARGE)))
        assert np.max(np.abs(cell.inner_weights - cell.recurrent_weights)) > 0.01


@pytest.mark.parametrize("kind", CELLS)
def test_another_key_draws_other_parameters_and_the_same_key_the_same(kind):
    one, again, other = (begun(kind, jax.random.key(seed), INPUTS, SIZE) for seed in (0, 0, 1))
    for a, b, c in zip(*map(jax.tree.leaves, (one, again, other)), strict=True):
        assert np.array_equal(a, b)
        constant = np.ptp(np.asarray(a)) == 0  # biases that start at 0, weights that start at 1
        assert constant or not np.any(np.asarray(a) == np.asarray(c))
    assert np.ptp(np.asarray(one.input_weights)) > 0


@pytest.mark.parametrize("kind", CELLS)
def test_the_memory_before_the_first_input_is_zero_and_led_by_the_hidden_state(kind):
    memory = begun(kind, jax.random.key(0), INPUTS, SIZE).init_memory()
    leaves = jax.tree.leaves(memory)
    assert leaves[0].shape == (SIZE,)
    assert len(leaves) == (2 if kind is LSTM else 1)
    assert not any(np.any(leaf) for leaf in leaves)


@pytest.mark.parametrize("kind", CELLS)
def test_a_step_keeps_the_memorys_structure_and_is_the_same_compiled_and_mapped(kind):
    cell = begun(kind, jax.random.key(1), INPUTS, SIZE)
    inputs = np.random.default_rng(2).normal(size=(4, INPUTS)).astype(np.float32)
    empty = cell.init_memory()
    singly = [one_step(cell, one_step(cell, empty, x), -x) for x in inputs]
    for memory in singly:
        assert jax.tree.structure(memory) == jax.tree.structure(empty)
        for after, before in zip(jax.tree.leaves(memory), jax.tree.leaves(empty), strict=True):
            assert (after.shape, after.dtype) == (before.shape, before.dtype)
    mapped = jax.jit(jax.vmap(lambda x: cell.step(cell.step(empty, x), -x)))(inputs)
    for row, memory in enumerate(singly):
        for got, expected in zip(jax.tree.leaves(mapped), jax.tree.leaves(memory), strict=True):
            np.testing.assert_allclose(got[row], expected, atol=1e-6)
