"""Histories laid out as rows: each one whole, in order, and where the layout says it is."""

from functools import partial
from itertools import pairwise, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.agent.sequence import lay_out, pairing, steps_needed

H = 7


def drawn_lengths():
    """Batches of lengths in 1 … H: even and odd, all equal, all as short or as long as they can be."""
    batches = [np.full(size, length) for size in (1, 2, 8, 9) for length in (1, 3, H)]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        batches += [rng.integers(1, H + 1, size) for size in (1, 2, 8, 9)]
    return batches


@partial(jax.jit, static_argnames="per_row")
def packed(starts, lengths, per_row):
    time = per_row * H
    return lay_out(starts, lengths, per_row=per_row, time=time), steps_needed(lengths, per_row=per_row)


def laid_out(starts, lengths, per_row):
    rows, steps = packed(jnp.asarray(starts), jnp.asarray(lengths), per_row)
    return jax.tree.map(np.asarray, rows), int(steps)


def assert_whole_and_in_order(rows, starts, lengths):
    taken = np.zeros(rows.numbers.shape, int)
    for start, length, row, last in zip(starts, lengths, rows.row, rows.last, strict=True):
        first = last - length + 1
        assert first >= 0
        assert rows.numbers[first : last + 1, row].tolist() == list(range(start, start + length))
        taken[first : last + 1, row] += 1
    assert taken.max() == 1  # no step is shared
    assert taken.sum() == np.sum(lengths)
    return taken


@pytest.mark.parametrize("lengths", drawn_lengths(), ids=lambda lengths: "-".join(map(str, lengths)))
def test_two_histories_share_a_row_whole_and_in_order(lengths):
    order = np.asarray(pairing(jnp.asarray(lengths)))
    assert sorted(order) == list(range(len(lengths)))
    starts = np.random.default_rng(0).permutation(1000)[: len(lengths)]
    starts, lengths = starts[order], lengths[order]
    rows, steps = laid_out(starts, lengths, 2)
    taken = assert_whole_and_in_order(rows, starts, lengths)

    count = (len(lengths) + 1) // 2
    assert rows.numbers.shape == (2 * H, count)
    assert np.bincount(rows.row, minlength=count).tolist() == [2] * (len(lengths) // 2) + [1] * (len(lengths) % 2)
    second_begins = np.zeros_like(taken, dtype=bool)
    for row in range(count):
        here = sorted((rows.last[i] - lengths[i] + 1, rows.last[i]) for i in np.flatnonzero(rows.row == row))
        assert here[0][0] == 0  # the first begins at once, the second directly behind it
        for (_, before), (first, _) in pairwise(here):
            assert first == before + 1
            second_begins[first, row] = True
    assert np.array_equal(rows.fresh & (taken == 1), second_begins)
    # A mark behind everything that is read resets nothing; rows of two have none.
    assert not np.any(rows.fresh[:, : len(lengths) // 2] & (taken == 0)[:, : len(lengths) // 2])
    assert steps == rows.last.max() + 1
    assert steps == max(np.bincount(rows.row, weights=lengths))
    assert steps <= 2 * H


@pytest.mark.parametrize("lengths", drawn_lengths(), ids=lambda lengths: "-".join(map(str, lengths)))
def test_one_history_to_a_row_begins_at_once(lengths):
    starts = np.random.default_rng(1).permutation(1000)[: len(lengths)]
    rows, steps = laid_out(starts, lengths, 1)
    assert_whole_and_in_order(rows, starts, lengths)
    assert rows.fresh is None
    assert rows.row.tolist() == list(range(len(lengths)))
    assert rows.last.tolist() == [length - 1 for length in lengths]
    assert steps == max(lengths) == rows.last.max() + 1


def test_no_other_pairing_of_an_even_batch_needs_fewer_steps():
    for seed in range(8):
        lengths = np.random.default_rng(seed).integers(1, H + 1, 6)
        best = min(max(a + b, c + d, e + f) for a, b, c, d, e, f in permutations(lengths.tolist()))
        ordered = jnp.asarray(lengths)[pairing(jnp.asarray(lengths))]
        assert int(steps_needed(ordered, per_row=2)) == best
