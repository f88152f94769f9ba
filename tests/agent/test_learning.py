"""Agents learn what can be learnt, and do not learn what cannot. Minutes, so these tests are slow ones."""

import jax
import jax.numpy as jnp
import pytest

from beliefscope.agent import BRC, DRQN, GRU, LSTM, MGU, NBRC, Cell, TrainingSpec, evaluate, train
from beliefscope.pomdp import TMaze

GOOD = 0.95  # of 4 γ^L, the return of one who goes straight to the treasure


class Memoryless(Cell):
    """A layer that forgets: h' = tanh(W x + b)."""

    weights: jax.Array
    bias: jax.Array

    def __init__(self, key, input_size, hidden_size):
        limit = input_size**-0.5
        self.weights = jax.random.uniform(key, (input_size, hidden_size), minval=-limit, maxval=limit)
        self.bias = jnp.zeros(hidden_size)

    def init_memory(self):
        return jnp.zeros_like(self.bias)

    def step(self, memory, inputs):
        return jnp.tanh(inputs @ self.weights + self.bias)


class CutGRU(Cell):
    """A GRU through whose memory no gradient flows back in time."""

    gru: GRU

    def __init__(self, key, input_size, hidden_size):
        self.gru = GRU(key, input_size, hidden_size)

    def init_memory(self):
        return self.gru.init_memory()

    def step(self, memory, inputs):
        return self.gru.step(jax.lax.stop_gradient(memory), inputs)


def final_returns(cell: type[Cell], folder, *, length: int, episodes: int, seeds: int) -> list[float]:
    """The last greedy returns of some agents."""
    learner = DRQN(cell=cell, num_episodes=episodes)
    specs = [TrainingSpec(pomdp=TMaze(length), learner=learner, seed=seed) for seed in range(seeds)]
    returns = [run.metrics()[-1]["return"] for run in train(specs, folder)]
    print(f"{cell.__name__}, L = {length}: {returns}")
    return returns


def count_good(returns: list[float], length: int) -> int:
    return sum(value >= GOOD * 4 * 0.98**length for value in returns)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [LSTM, GRU, BRC, NBRC, MGU])
def test_every_cell_learns_the_short_t_maze(cell, tmp_path):
    assert count_good(final_returns(cell, tmp_path, length=5, episodes=500, seeds=4), 5) >= 3


@pytest.mark.slow
def test_without_memory_there_is_no_more_than_a_guess_at_the_junction(tmp_path):
    """The best without memory earns 1.763 on average; of 100,000 episodes the mean is known to 0.006."""
    maze, learner = TMaze(5), DRQN(cell=Memoryless, num_episodes=500)
    for run in train([TrainingSpec(pomdp=maze, learner=learner, seed=seed) for seed in range(4)], tmp_path):
        earned = evaluate(jax.random.key(0), maze, run.network(500), num_episodes=100_000).discounted_return
        assert earned <= 1.80


@pytest.mark.slow
@pytest.mark.parametrize("cell", [GRU, MGU, NBRC])
def test_the_longer_t_maze_is_learnt(cell, tmp_path):
    assert count_good(final_returns(cell, tmp_path, length=20, episodes=1500, seeds=4), 20) >= 3


@pytest.mark.slow
def test_the_longer_t_maze_is_missed_when_gradients_are_cut_through_time(tmp_path):
    assert count_good(final_returns(CutGRU, tmp_path, length=20, episodes=1500, seeds=4), 20) < 3


@pytest.mark.slow
@pytest.mark.parametrize("cell", [LSTM, BRC, NBRC, MGU])
def test_agents_of_every_cell_are_bit_identical_alone_and_in_a_batch(cell, tmp_path):
    learner = DRQN(cell=cell, num_episodes=50, checkpoint_period=50)
    specs = [TrainingSpec(pomdp=TMaze(5), learner=learner, seed=seed) for seed in range(3)]
    together, (alone,) = train(specs, tmp_path / "together"), train(specs[2:], tmp_path / "alone")
    for name in ("resume.eqx", "metrics.jsonl", "params/50.eqx"):
        assert (together[2].path / name).read_bytes() == (alone.path / name).read_bytes()
