"""The atoms of a deterministic T-Maze against what can be written down by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope import ExactFilter, TMaze
from beliefscope.measurement import exact_information, visited_atoms
from beliefscope.measurement.exact import can_enumerate
from beliefscope.pomdp.t_maze import DOWN, RIGHT, SEES_DOWN, SEES_JUNCTION, SEES_UP, UP

LENGTH = 4


class Scholar:
    """Plays the best policy; its memory is the time and the first observation, or nothing that can be told apart."""

    def __init__(self, *, forgets: bool = False):
        self.forgets = forgets

    def init_memory(self):
        return jnp.asarray([-1.0, 0.0])

    def step(self, memory, previous_action, observation):
        time, side = memory[0] + 1, memory[1] + observation[SEES_UP] - observation[SEES_DOWN]
        turn = jnp.where(side > 0, UP, DOWN)
        action = jnp.where(observation[SEES_JUNCTION] > 0, turn, RIGHT)
        return jnp.stack([time, side]), jax.nn.one_hot(action, 4)

    def memory_vector(self, memory):
        return memory * 0 if self.forgets else memory


@pytest.fixture(scope="module")
def atoms():
    return visited_atoms(Scholar(), TMaze(LENGTH), ExactFilter(TMaze(LENGTH)))


def test_the_best_policy_visits_every_cell_of_both_mazes_equally_often(atoms):
    assert len(atoms.weight) == 2 * (LENGTH + 1)
    np.testing.assert_allclose(atoms.weight, 1 / (2 * (LENGTH + 1)))
    visited = {(float(time), float(side)) for time, side in atoms.memory}
    assert visited == {(time, side) for time in range(LENGTH + 1) for side in (-1.0, 1.0)}
    np.testing.assert_allclose(np.max(atoms.belief, axis=1), 1)  # whoever has seen the first cell knows all
    assert len({row.tobytes() for row in atoms.belief}) == 2 * (LENGTH + 1)


def test_a_memory_of_all_that_matters_shares_the_whole_entropy_and_none_shares_nothing(atoms):
    entropy = np.log2(2 * (LENGTH + 1))
    for found in exact_information(jax.random.key(0), atoms).values():
        np.testing.assert_allclose([found.bits, found.entropy], entropy, rtol=1e-6)
    forgotten = exact_information(jax.random.key(0), atoms._replace(memory=atoms.memory * 0))
    for found in forgotten.values():
        np.testing.assert_allclose(found.bits, 0, atol=1e-9)


def test_only_greedy_episodes_of_a_deterministic_maze_can_be_enumerated():
    assert can_enumerate(TMaze(3), 0.0)
    assert not can_enumerate(TMaze(3), 0.2)
    assert not can_enumerate(TMaze(3, 0.3), 0.0)
