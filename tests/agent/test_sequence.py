"""The sequence pass and its own backward pass against plain differentiation of single steps, and against differences.

All in double precision, where a wrong term in a gradient cannot hide behind rounding.
"""

from functools import partial
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from beliefscope.agent import BRC, GRU, LSTM, MGU, NBRC, Cell, sequence, sequence_kernel
from beliefscope.agent.gated import GatedCell
from beliefscope.agent.sequence import loop_backward, loop_forward, run_layer

CELLS = [LSTM, GRU, BRC, NBRC, MGU]
H, ROWS, INPUTS, LOWER, UPPER = 9, 6, 2, 4, 3
# What is tested is the same however hard the compiler tries, and compiling is most of the time.
quickly_compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def random_cell(kind, inputs, size, rng):
    """A cell with every parameter random: no bias at zero, no weight at one."""
    shapes = eqx.filter_eval_shape(kind, jax.random.key(0), inputs, size)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(scale=0.6, size=leaf.shape)), shapes)


def stacked(kind, seed=0):
    """Two layers of different sizes."""
    rng = np.random.default_rng(seed)
    return random_cell(kind, INPUTS, LOWER, rng), random_cell(kind, LOWER, UPPER, rng)


def drawn(rows, seed=1):
    """Inputs, and one weight of the loss for each output."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(H, rows, INPUTS))), jnp.asarray(rng.normal(size=(H, rows, UPPER)))


@quickly_compiled
def fast(cells, inputs, weights, fresh, steps):
    """(loss, outputs) and the loss's gradients with respect to all parameters and to the inputs."""

    def loss(cells, inputs):
        hidden = inputs
        for cell in cells:
            hidden = run_layer(cell, hidden, fresh, steps)
        return jnp.sum(weights * hidden + weights**2 * hidden**2), hidden

    return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(cells, inputs)


@quickly_compiled
def plain(cells, inputs, weights):
    """The same for rows of one sequence each: a scan of single steps over all H, differentiated by JAX."""

    def follow(cells, row):
        def step(memories, x):
            after = []
            for cell, memory in zip(cells, memories, strict=True):
                after.append(cell.step(memory, x))
                x = after[-1][0]
            return tuple(after), x

        return lax.scan(step, tuple(cell.init_memory() for cell in cells), row)[1]

    def loss(cells, inputs):
        hidden = jax.vmap(follow, (None, 1), 1)(cells, inputs)
        return jnp.sum(weights * hidden + weights**2 * hidden**2), hidden

    return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(cells, inputs)


def assert_same(got, expected):
    """Equal leaf by leaf, measured by each leaf's largest number."""
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert one.dtype == jnp.float64
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * max(1.0, np.abs(other).max()))


def within(weights, steps):
    return np.where(np.arange(H)[:, None, None] < steps, weights, 0)


@pytest.mark.parametrize("kind", CELLS)
def test_values_and_gradients_of_every_prefix_are_those_of_plain_differentiation(kind):
    cells, (inputs, weights) = stacked(kind), drawn(ROWS)
    for steps in range(1, H + 1):
        result = fast(cells, inputs, within(weights, steps), None, jnp.asarray(steps))
        (loss, hidden), gradients = jax.device_get(result)
        (expected_loss, expected), expected_gradients = jax.device_get(plain(cells, inputs, within(weights, steps)))
        assert_same((loss, hidden[:steps]), (expected_loss, expected[:steps]))
        assert not np.any(hidden[steps:])
        assert_same(gradients, expected_gradients)
        assert steps == 1 or all(np.any(leaf) for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("kind", CELLS)
def test_what_stands_behind_the_last_step_changes_nothing_and_has_no_gradient(kind):
    cells, (inputs, weights) = stacked(kind), drawn(ROWS)
    steps = jnp.asarray(5)
    result = fast(cells, inputs, within(weights, 5), None, steps)
    # The loss now reads outputs behind the last step, and other inputs stand there.
    other = np.where(np.arange(H)[:, None, None] < 5, inputs, 100 * inputs + 1)
    unmasked = jax.device_get(fast(cells, other, weights, None, steps))
    assert_same(unmasked, result)
    assert not np.any(unmasked[1][1][5:])


# Three rows of H steps: two sequences, three sequences, and one that says itself that it begins.
SHARED = [[5, 3], [2, 3, 3], [7]]


def share_rows(apart):
    """Sequences [H, 6, ...] one behind the other in three rows; what is left stays 0."""
    together, number = np.zeros((H, len(SHARED), apart.shape[-1])), 0
    for row, lengths in enumerate(SHARED):
        for length, begin in zip(lengths, np.cumsum([0, *lengths]), strict=False):
            together[begin : begin + length, row] = apart[:length, number]
            number += 1
    return together


def marks():
    fresh = np.zeros((H, len(SHARED)), bool)
    for row, lengths in enumerate(SHARED):
        fresh[np.cumsum(lengths[:-1], dtype=int), row] = True
    fresh[0, 2] = True
    return fresh


def trimmed(weights):
    """The loss's weights of six sequences, 0 behind the end of each."""
    lengths = np.concatenate(SHARED)
    return np.where(np.arange(H)[:, None, None] < lengths[:, None], weights, 0)


@pytest.mark.parametrize("kind", CELLS)
def test_sequences_that_share_a_row_give_what_they_give_apart(kind):
    cells, (inputs, weights) = stacked(kind, seed=2), drawn(6, seed=3)
    weights = trimmed(weights)
    (expected_loss, hidden), (d_cells, d_inputs) = plain(cells, inputs, weights)
    used = share_rows(trimmed(np.ones((H, 6, 1)))) == 1
    got = fast(cells, share_rows(np.asarray(inputs)), share_rows(weights), marks(), jnp.asarray(8))
    assert_same(got[0][0], expected_loss)
    assert_same(np.where(used, got[0][1], 0), share_rows(np.asarray(hidden)))
    assert_same(got[1], (d_cells, share_rows(np.asarray(d_inputs))))


@pytest.mark.parametrize("kind", CELLS)
def test_every_coordinate_of_the_gradient_is_a_difference_quotient(kind):
    cells, (inputs, weights) = stacked(kind, seed=4), drawn(len(SHARED), seed=5)
    steps = jnp.asarray(8)
    point, structure = jax.tree.flatten(jax.tree.map(np.asarray, (cells, inputs)))
    gradients = jax.tree.leaves(jax.device_get(fast(cells, inputs, weights, marks(), steps)[1]))

    def loss(leaf, index, change):
        moved = [array.copy() for array in point]
        moved[leaf].flat[index] += change
        return float(fast(*jax.tree.unflatten(structure, moved), weights, marks(), steps)[0][0])

    rng = np.random.default_rng(6)
    for leaf, gradient in enumerate(gradients):
        for index in rng.permutation(gradient.size)[:6]:
            difference = (loss(leaf, index, 1e-6) - loss(leaf, index, -1e-6)) / 2e-6
            assert difference == pytest.approx(gradient.ravel()[index].item(), rel=1e-6, abs=1e-7)


# The kernels, interpreted: sixteen rows to a program, memories of a power of two.
SIZE, TIME = 16, 4


def kernel_case(kind, rows, seed):
    """Products of the inputs, the cell's weights, and a gradient with respect to the hidden states."""
    rng = np.random.default_rng(seed)
    cell = kind(jax.random.key(0), INPUTS, SIZE)
    projected = rng.normal(size=(TIME, rows, kind.blocks * SIZE))
    recurrent = 0.4 * rng.normal(size=cell.recurrent_weights.shape)
    matrices = tuple(0.4 * rng.normal(size=matrix.shape) for matrix in cell.gate_matrices())
    return projected, recurrent, matrices, rng.normal(size=(TIME, rows, SIZE))


def both_ways(kind, projected, recurrent, matrices, d_hidden):
    """Memories, activations and gradients of the products, by the kernels and by the loops."""
    memories, kept = sequence_kernel.run_forward(kind, projected, recurrent, matrices, interpret=True)
    before = tuple(part[:-1] for part in memories)
    d_products = sequence_kernel.run_backward(kind, kept, before, d_hidden, recurrent, matrices, interpret=True)
    looped = loop_forward(kind, projected, recurrent, matrices, None, TIME)
    d_looped = loop_backward(kind, looped[1], looped[0], d_hidden, recurrent, matrices, None, TIME)
    return (memories, kept, d_products), (*looped, d_looped)


@pytest.mark.parametrize("kind", CELLS)
def test_the_kernels_walk_two_programs_rows_as_the_loops_do(kind):
    kernels, loops = quickly_compiled(partial(both_ways, kind))(*kernel_case(kind, 32, seed=7))
    assert kernels[0][0].shape == (TIME + 1, 32, SIZE)
    assert_same(kernels, loops)


@pytest.mark.parametrize("kind", CELLS)
def test_the_kernels_walk_one_programs_rows_as_the_loops_do_for_several_agents_at_once(kind):
    cases = [kernel_case(kind, 16, seed) for seed in (8, 9)]
    batch = jax.tree.map(lambda *parts: np.stack(parts), *cases)
    kernels, loops = quickly_compiled(jax.vmap(partial(both_ways, kind)))(*batch)
    assert_same(kernels, loops)
    assert np.abs(np.diff(np.asarray(kernels[2]), axis=0)).max() > 0.01  # the agents differ


@pytest.mark.parametrize(
    ("rows", "size", "expected"),
    [
        (16, 16, True),
        (32, 32, True),
        (48, 64, True),
        (17, 32, False),
        (8, 32, False),
        (32, 8, False),
        (32, 24, False),
        (32, 48, False),
        (32, 0, False),
        (32, 1, False),
    ],
)
def test_the_kernels_take_multiples_of_sixteen_rows_and_powers_of_two(rows, size, expected):
    assert sequence_kernel.fits(rows, size) is expected


@pytest.mark.parametrize("kind", [LSTM, MGU])
def test_a_layer_on_a_gpu_goes_through_the_kernels_where_it_can(kind, monkeypatch):
    taken = []

    def interpreted(run):
        def call(*arguments):
            taken.append(run.__name__)
            return run(*arguments, interpret=True)

        return call

    rng = np.random.default_rng(1)
    cell = random_cell(kind, INPUTS, SIZE, rng)
    inputs, weights = jnp.asarray(rng.normal(size=(TIME, 16, INPUTS))), rng.normal(size=(TIME, 16, SIZE))

    def gradients():
        def loss(cell, inputs):
            return jnp.sum(weights * run_layer(cell, inputs, None, TIME))

        return quickly_compiled(jax.value_and_grad(loss, argnums=(0, 1)))(cell, inputs)

    expected = gradients()
    assert taken == []
    kernels = SimpleNamespace(
        fits=sequence_kernel.fits,
        run_forward=interpreted(sequence_kernel.run_forward),
        run_backward=interpreted(sequence_kernel.run_backward),
    )
    monkeypatch.setattr(sequence, "sequence_kernel", kernels)
    monkeypatch.setattr(sequence, "jax", SimpleNamespace(default_backend=lambda: "gpu"))
    assert_same(gradients(), expected)
    assert taken == ["run_forward", "run_backward"]
    # A row of two sequences, an end known late, a number of rows that does not fit: loops.
    jax.eval_shape(lambda: run_layer(cell, inputs, jnp.zeros((TIME, 16), bool), TIME))
    jax.eval_shape(lambda: run_layer(cell, inputs, None, jnp.asarray(TIME)))
    jax.eval_shape(lambda: run_layer(cell, inputs[:, :15], None, TIME))
    assert len(taken) == 2


class Averager(Cell):
    """A cell of one's own, in no gated form: h runs towards the input, ever more slowly, from a start that is not 0."""

    matrix: jax.Array
    start: jax.Array

    def __init__(self, key, input_size, hidden_size):
        self.matrix = jax.random.normal(key, (input_size, hidden_size))
        self.start = jnp.linspace(-0.5, 0.5, hidden_size)

    def init_memory(self):
        return self.start, jnp.asarray(1)

    def step(self, memory, inputs):
        h, count = memory
        return h + (jnp.sin(inputs @ self.matrix) * jnp.sum(h) - h) / count, count + 1


def averaged(cell, inputs, begins):
    """A Python loop for one row."""
    matrix, states, count, h = np.asarray(cell.matrix), [], 1, np.asarray(cell.start)
    for x, begin in zip(np.asarray(inputs), begins, strict=True):
        if begin:
            h, count = np.asarray(cell.start), 1
        h = h + (np.sin(x @ matrix) * h.sum() - h) / count
        count += 1
        states.append(h)
    return np.stack(states)


@pytest.mark.parametrize("shared", [False, True])
def test_a_cell_of_ones_own_gives_what_a_loop_over_its_steps_gives(shared):
    cell = Averager(jax.random.key(0), INPUTS, UPPER)
    assert not isinstance(cell, GatedCell)
    inputs, weights = drawn(len(SHARED), seed=8)
    fresh = marks() if shared else None
    (_, hidden), (d_cell, _) = jax.device_get(fast((cell,), inputs, weights, fresh, H))
    inputs, weights = np.asarray(inputs), np.asarray(weights)
    begins = marks() & shared
    for row in range(len(SHARED)):
        np.testing.assert_allclose(hidden[:, row], averaged(cell, inputs[:, row], begins[:, row]), rtol=1e-10)

    def loss(change):
        moved = SimpleNamespace(matrix=np.asarray(cell.matrix) + change, start=cell.start)
        rows = [averaged(moved, inputs[:, row], begins[:, row]) for row in range(len(SHARED))]
        states = np.stack(rows, axis=1)
        return np.sum(weights * states + weights**2 * states**2)

    for index in np.ndindex(cell.matrix.shape):
        change = np.zeros(cell.matrix.shape)
        change[index] = 1e-6
        assert (loss(change) - loss(-change)) / 2e-6 == pytest.approx(d_cell[0].matrix[index].item(), rel=1e-6)
