"""The pieces of an intervention against closed forms: projections, erasers, steering, intervals, continued episodes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interventions.agents import HandBuilt
from scipy.special import softmax

from beliefscope.agent import GRU, LSTM, QNetwork
from beliefscope.belief import ExactFilter, ParticleFilter
from beliefscope.interventions import FlatAgent, erase, fit_belief_decoder, fit_eraser, interchange, memory_parts
from beliefscope.interventions.episodes import Continued, Moments, Played, continue_episodes, play_moments
from beliefscope.interventions.subspaces import (
    projection,
    random_directions,
    ratio_of_sums,
    shuffled_within,
    whitening,
)
from beliefscope.interventions.swaps import Trial, _decisions
from beliefscope.pomdp import MountainHike, TMaze
from beliefscope.pomdp.rollout import Trajectory

MAZE = TMaze(4, 0.3)


def network(cell, key=0) -> QNetwork:
    sizes = {"observation_size": 4, "num_actions": 4, "hidden_size": 5, "num_layers": 2}
    return QNetwork(jax.random.key(key), cell, **sizes)


def played(agent, number=64):
    return play_moments(jax.random.key(1), FlatAgent(agent), MAZE, ExactFilter(MAZE), num_episodes=number)


def test_a_flat_agent_carries_h_and_c_of_all_layers_and_acts_the_same():
    agent = network(LSTM)
    flat, memory = FlatAgent(agent), agent.init_memory()
    carried = flat.init_memory()
    assert carried.shape == (20,)
    assert list(memory_parts(agent).values()) == [slice(0, 5), slice(5, 10), slice(10, 15), slice(15, 20)]
    for action, seen in ((-1, 0), (0, 2), (2, 2), (0, 3)):
        memory, values = agent.step(memory, jnp.asarray(action), jax.nn.one_hot(seen, 4))
        carried, same = flat.step(carried, jnp.asarray(action), jax.nn.one_hot(seen, 4))
        np.testing.assert_array_equal(values, same)
    np.testing.assert_array_equal(carried, agent.memory_vector(memory, whole=True))


def test_moments_are_those_of_the_episodes_with_their_own_beliefs():
    agent = network(GRU)
    found = played(agent)
    trajectory, rows = found.trajectory, found.moments
    filter = ExactFilter(MAZE)
    for row in range(0, len(rows.episode), 37):
        episode, t = rows.episode[row], rows.time[row]
        assert t < trajectory.lengths[episode] - 1
        memory, action = agent.init_memory(), jnp.asarray(-1)
        belief = filter.init(jax.random.key(0), trajectory.observations[episode, 0])
        for step in range(t + 1):
            if step:
                belief = filter.update(jax.random.key(0), belief, action, trajectory.observations[episode, step])
            observation = MAZE.encode_observation(trajectory.observations[episode, step])
            memory, _ = agent.step(memory, action, observation)
            action = trajectory.actions[episode, step]
        np.testing.assert_allclose(rows.memory[row], agent.memory_vector(memory), atol=1e-6)
        np.testing.assert_allclose(rows.belief[row], belief.probabilities, atol=1e-6)
        assert rows.world.state[row] == trajectory.states[episode, t + 1]
    same = np.flatnonzero(rows.group == rows.group[0])
    assert len(set(rows.time[same])) == 1


@pytest.mark.parametrize("cell", [GRU, LSTM])
def test_an_episode_continued_with_its_own_memory_is_the_same_episode(cell):
    agent = FlatAgent(network(cell))
    found = played(network(cell))
    rows, trajectory = found.moments, found.trajectory
    after = continue_episodes(agent, MAZE, found, rows, rows.memory)
    lengths = np.asarray(trajectory.lengths)[rows.episode]
    for row in range(len(rows.episode)):
        later = np.asarray(trajectory.actions)[rows.episode[row], rows.time[row] + 1 : lengths[row]]
        np.testing.assert_array_equal(after.actions[row, : len(later)], later)
        assert (after.actions[row, len(later) :] == -1).all()
    np.testing.assert_array_equal(after.terminated, np.asarray(trajectory.terminated)[rows.episode])
    discounts = MAZE.discount ** np.arange(MAZE.horizon)
    returns = np.asarray(trajectory.rewards, np.float64)[rows.episode] @ discounts
    np.testing.assert_allclose(after.returns, returns, atol=1e-5)


def test_a_swap_with_oneself_changes_nothing_bit_for_bit():
    agent = FlatAgent(network(LSTM))
    found = played(network(LSTM))
    rows = found.moments
    alone = continue_episodes(agent, MAZE, found, rows, rows.memory)
    matrix = projection(whitening(rows.memory - rows.memory.mean(axis=0)), np.eye(20)[:, :3])
    swapped = continue_episodes(agent, MAZE, found, rows, rows.memory + (rows.memory - rows.memory) @ matrix.T)
    for one, other in zip(alone, swapped, strict=True):
        np.testing.assert_array_equal(one, other)


def test_projections_are_idempotent_have_their_rank_and_add_up_to_the_whole():
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(500, 7)) @ draw.normal(size=(7, 7))
    white = whitening(rows - rows.mean(axis=0))
    np.testing.assert_allclose(white.back @ white.into, np.eye(7), atol=1e-9)
    for rank in (1, 3, 6):
        (directions,) = random_directions(draw, 1, 7, rank)
        np.testing.assert_allclose(directions.T @ directions, np.eye(rank), atol=1e-12)
        matrix = projection(white, directions)
        np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-9)
        assert np.linalg.matrix_rank(matrix, tol=1e-8) == rank
    np.testing.assert_allclose(projection(white, np.eye(7)), np.eye(7), atol=1e-9)


def test_after_erasure_the_labels_are_uncorrelated_with_the_memory_and_no_linear_decoder_beats_the_mean():
    draw = np.random.default_rng(1)
    labels = draw.integers(3, size=4000)
    memory = draw.normal(size=(4000, 6)) @ draw.normal(size=(6, 6)) + draw.normal(size=(3, 6))[labels]
    marks = np.eye(3)[labels]
    fitting, held_out = slice(0, 2000), slice(2000, 4000)
    eraser = fit_eraser(memory[fitting], marks[fitting])
    assert (eraser.rank, eraser.width, eraser.everything) == (2, 6, False)
    left = memory - (memory - eraser.centre) @ eraser.matrix.T
    for rows, tolerance in ((fitting, 1e-12), (held_out, 0.01)):
        share = marks[rows] - marks[rows].mean(axis=0)
        answer = np.linalg.lstsq(left[rows] - left[rows].mean(axis=0), share, rcond=None)[0]
        gained = 1 - np.sum((share - (left[rows] - left[rows].mean(axis=0)) @ answer) ** 2) / np.sum(share**2)
        assert gained <= tolerance
    raw = memory[fitting] - memory[fitting].mean(axis=0)
    share = marks[fitting] - marks[fitting].mean(axis=0)
    answer = np.linalg.lstsq(raw, share, rcond=None)[0]
    assert 1 - np.sum((share - raw @ answer) ** 2) / np.sum(share**2) > 0.2, "before, it could be read"


def test_erasure_changes_the_memory_less_than_any_other_projection_that_hides_the_labels():
    draw = np.random.default_rng(2)
    memory = draw.normal(size=(1000, 5)) * [3, 1, 1, 1, 0.5]
    labels = memory @ [[1.0], [2.0], [0.0], [0.0], [1.0]] + draw.normal(size=(1000, 1))
    eraser = fit_eraser(memory, labels)
    rows = memory - eraser.centre
    cross = rows.T @ (labels - labels.mean())
    # The orthogonal projection away from Cov(x, label) hides it too.
    orthogonal = cross @ cross.T / np.sum(cross**2)
    moved, other = (np.mean((rows @ matrix.T) ** 2) for matrix in (eraser.matrix, orthogonal))
    assert moved < 0.9 * other


def test_what_is_constant_stays_the_same_to_the_last_digit():
    draw = np.random.default_rng(7)
    memory = np.column_stack([draw.normal(size=(300, 3)), np.full(300, 0.1)])
    eraser = fit_eraser(memory, memory[:, :1] + draw.normal(size=(300, 1)))
    assert eraser.rank == 1
    assert not eraser.matrix[3].any(), "a decoder would read a trace of rounding"


def test_an_eraser_of_nothing_and_of_everything_say_so():
    draw = np.random.default_rng(3)
    memory = draw.normal(size=(300, 3))
    nothing = fit_eraser(memory, np.ones((300, 1)))
    assert nothing.rank == 0
    np.testing.assert_array_equal(nothing.matrix, 0)
    everything = fit_eraser(memory, memory @ draw.normal(size=(3, 5)))
    assert (everything.rank, everything.everything) == (3, True)


def synthetic(draw, number=3000):
    """Memories of six numbers in two groups; the belief is a softmax of the first two."""
    group, episode = np.arange(number) % 2, np.arange(number) // 4
    memory = draw.normal(size=(number, 6)) + 5 * group[:, None]
    weights = np.zeros((6, 3))
    weights[0], weights[1] = [2, 0, -2], [-1, 2, -1]
    return memory, softmax((memory - 5 * group[:, None]) @ weights, axis=1), group, episode


def test_a_decoder_finds_the_directions_of_a_belief_that_is_a_softmax_of_the_memory():
    memory, belief, group, episode = synthetic(np.random.default_rng(4))
    decoder: Any = fit_belief_decoder(jax.random.key(0), memory, belief, group, episode, groups=2)
    assert decoder.share.low > 0.9
    # In z, which here is x but for its scale and a rotation, both directions are of the first two numbers.
    within = decoder.white.into.T @ decoder.directions[:, :2]
    assert np.sum(within[:2] ** 2) / np.sum(within**2) > 0.99
    shuffled: Any = fit_belief_decoder(jax.random.key(0), memory, belief, group, episode, groups=2, shuffled=True)
    assert shuffled.share.value < 0.02


def test_steering_makes_the_decoded_belief_the_chosen_one():
    memory, belief, group, episode = synthetic(np.random.default_rng(5))
    decoder: Any = fit_belief_decoder(jax.random.key(0), memory, belief, group, episode, groups=2)
    chosen = belief[::-1]
    moved = memory + decoder.steering(memory, group, chosen)
    decoded = softmax(decoder.answers(moved, group) + decoder.baseline[group], axis=1)
    aimed = 0.95 * chosen + 0.05 * np.exp(decoder.baseline[group])
    np.testing.assert_allclose(decoded, aimed, atol=1e-3)


def test_shuffled_rows_stay_in_their_groups():
    group = np.array([2, 0, 1, 2, 2, 0, 1, 0, 2])
    order = shuffled_within(np.random.default_rng(0), group)
    np.testing.assert_array_equal(group[order], group)
    assert sorted(order) == list(range(9))


def test_intervals_resample_episodes():
    rows = np.repeat([0.0, 1.0], 200)
    many: Any = ratio_of_sums(rows, None, np.arange(400))
    few: Any = ratio_of_sums(rows, None, np.repeat(np.arange(4), 100))
    assert many.value == few.value == 0.5
    # √(¼ / 400) = 0.025 a deviation, and √(¼ / 4) = ¼.
    assert many.high - many.low == pytest.approx(4 * 0.025, rel=0.15)
    assert (few.low, few.high) == (0, 1)
    assert ratio_of_sums(np.zeros(0), None, np.zeros(0, int)) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: interchange(jax.random.key(0), network(GRU), MAZE, num_episodes=1),
            "at least 100, but got 1; leave it out for 1000 episodes and 500 swaps",
        ),
        (lambda: interchange(jax.random.key(0), network(GRU), MAZE, ranks=(0,)), "ranks are whole numbers"),
        (lambda: erase(jax.random.key(0), HandBuilt(), MAZE, memory=".sid"), "perhaps '.side' is meant"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(ValueError, match=r".*") as raised:
        call()
    assert message in str(raised.value)


def test_a_belief_of_particles_is_refused():
    hike = MountainHike()
    sizes = {"observation_size": hike.observation_size, "num_actions": 4, "hidden_size": 5, "num_layers": 1}
    agent = QNetwork(jax.random.key(0), GRU, **sizes)
    particles = ParticleFilter(hike, num_particles=10)
    with pytest.raises(ValueError, match="interventions need beliefs that are rows of probabilities"):
        interchange(jax.random.key(0), agent, hike, particles, num_episodes=100)


def test_where_no_episode_ends_the_decision_is_the_first_later_action_that_differs_at_the_same_observation():
    lengths = np.array([6, 6, 6])
    actions = np.array([[0, 0, 1, 0, 2, 3], [0, 0, 0, 0, 1, 3], [0, 0, 1, 0, 2, 3]])
    observations = np.array([[5, 5, 5, 5, 5, 5, 5], [5, 5, 6, 5, 5, 5, 5], [5, 5, 5, 5, 5, 5, 5]])
    blank = np.zeros((3, 6), np.float32)
    never = np.zeros(3, bool)
    trajectory = Trajectory(observations, *map(jnp.asarray, (observations, actions, blank, never, lengths)))
    zeros = np.zeros(3, int)
    moments = Moments(np.arange(3), np.full(3, 1), zeros, np.zeros((3, 1)), np.ones((3, 1)), None)  # pyright: ignore
    first, second = np.array([0, 0]), np.array([1, 2])
    place, own, others, deciding = _decisions(Played(trajectory, moments), moments, first, second)
    # At step 2 they act differently but see different things; at step 4, two after t + 1, they see the same.
    assert place is not None
    assert (place[0], own[0], others[0]) == (2, 2, 1)
    assert deciding.tolist() == [True, False]
    after = Continued(
        np.array([[0, 0, 1, 3], [1, 0, 2, 3]]), never[:2], np.zeros(2), np.zeros((2, 4, 4)), np.ones((2, 4), bool)
    )
    trial = Trial(*[None] * 5, place, own, others, deciding, *[None] * 3)  # pyright: ignore
    assert trial.decision(after)[0] == others[0], "at that step the continued episode acts as the donor"
