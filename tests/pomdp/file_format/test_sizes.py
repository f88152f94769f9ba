"""Sizes are checked before memory is taken, and large files are read in memory that follows their non-zeros."""

import tracemalloc

import numpy as np
import pytest

from beliefscope.pomdp.file_format import PomdpFileError, parse_pomdp
from beliefscope.pomdp.file_format.reader import parse_tables

ABSURD = {
    "rows": "states: 1000000 actions: 31 observations: 1 T: * identity O: * uniform",
    "observation columns": "states: 2 actions: 31 observations: 1000000 T: * identity O: * : * : 0 1",
    "keys": "states: 1000000 actions: 20 observations: 1000000 T: * identity O: * : * : 0 1",
    "uniform transitions": "states: 100000 actions: 1 observations: 1 T: * uniform O: * uniform",
    "uniform observations": "states: 100000 actions: 1 observations: 1000 T: * identity O: * uniform",
    "many small statements": "states: 20000 actions: 1 observations: 1" + " T: * : 3 reset" * 2000,
}


@pytest.mark.parametrize("text", ABSURD.values(), ids=ABSURD.keys())
def test_absurd_sizes_are_refused_without_taking_memory(text, monkeypatch):
    if "reset" in text:
        monkeypatch.setattr("beliefscope.pomdp.file_format.body.MAX_CELLS", 300_000)
    tracemalloc.start()
    try:
        with pytest.raises(PomdpFileError, match=r"expected at most|more than 30000000 non-zero|table rows"):
            parse_tables("discount: 1 " + text)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_rewards_for_too_many_observations_are_refused(monkeypatch):
    monkeypatch.setattr("beliefscope.pomdp.file_format.reader.MAX_CELLS", 10_000)
    text = "discount: 1 states: 50 actions: 1 observations: 50 T: * uniform O: * uniform R: * : * : * : 0 1"
    with pytest.raises(
        PomdpFileError, match=r"expected at most 10000 pairs of a transition and an observation.*125000"
    ):
        parse_tables(text)


def test_a_dense_matrix_takes_little_more_memory_than_its_numbers():
    states = 400
    row = " ".join(["0.0025"] * states)
    text = f"discount: 1 states: {states} actions: 1 observations: 1 O: * uniform T: 0 " + "\n".join([row] * states)
    tracemalloc.start()
    try:
        tables = parse_tables(text)
        assert tracemalloc.get_traced_memory()[1] < 120 * states**2  # a list of words alone would take 64 bytes each
    finally:
        tracemalloc.stop()
    assert tables.moves.nnz == states**2


@pytest.mark.slow
def test_a_sparse_file_of_two_thousand_states_is_read_as_written():
    rng = np.random.default_rng(0)
    actions, states, observations, successors = 5, 2000, 50, 5
    targets = rng.permuted(np.tile(np.arange(states), (actions * states, 1)), axis=1)[:, :successors]
    lines = [
        f"{letter}: {row // states} : {row % states} : {target % width} 0.2"
        for letter, width in (("T", states), ("O", observations))
        for row in range(actions * states)
        for target in (targets[row] if letter == "T" else range(row, row + successors))
    ]
    head = f"discount: 0.95 states: {states} actions: {actions} observations: {observations}\n"
    pomdp = parse_pomdp(head + "\n".join(lines), horizon=10)
    np.testing.assert_array_equal(
        np.asarray(pomdp.successors.column)[: targets.size].reshape(targets.shape), np.sort(targets, axis=1)
    )
