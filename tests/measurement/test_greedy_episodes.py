"""Traces against episodes played again by hand, and beliefs and atoms against those that can be written down."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope import GRU, ExactFilter, Irrelevant, MountainHike, ParticleFilter, QNetwork, TMaze
from beliefscope.belief import filter_of_paper
from beliefscope.information.probe import binned, decode, fit_decoder
from beliefscope.measurement.greedy_episodes import (
    MAX_PARTICLES,
    can_enumerate,
    exact_information,
    trace,
    visited_atoms,
)
from beliefscope.pomdp.t_maze import DOWN, LEFT, RIGHT, SEES_CORRIDOR, SEES_DOWN, SEES_JUNCTION, SEES_UP, UP

KEY = jax.random.key(0)
HALF = 1e-3  # half precision
LENGTH, ASTRAY, DRIFTING = 3, 0.3, 2
STATES = 2 * (LENGTH + 3)
SHORT = LENGTH + 1  # steps of the best policy
MAZE = TMaze(LENGTH)
PRODUCT = Irrelevant(TMaze(LENGTH, ASTRAY), DRIFTING)
HIKE = MountainHike(varying=True, horizon=6)


class Scholar(eqx.Module):
    """Goes to the treasure, after one step against the wall if it is down; remembers the time and the side."""

    def init_memory(self):
        return jnp.asarray([-1.0, 0.0])

    def step(self, memory, previous_action, observation):
        time, side = memory[0] + 1, jnp.sign(memory[1] + observation[SEES_UP] - observation[SEES_DOWN])
        ahead = jnp.where((time == 0) & (side < 0), LEFT, RIGHT)
        action = jnp.where(observation[SEES_JUNCTION] > 0, jnp.where(side > 0, UP, DOWN), ahead)
        return jnp.stack([time, side]), jax.nn.one_hot(action, 4)

    def memory_vector(self, memory):
        return memory


def network_for(pomdp):
    sizes = {"observation_size": pomdp.observation_size, "num_actions": 4, "hidden_size": 8, "num_layers": 1}
    network = QNetwork(jax.random.key(1), GRU, **sizes)
    return eqx.tree_at(lambda network: network.bias, network, jnp.zeros(4))  # else it would do one thing only


@pytest.fixture(scope="module")
def best():
    return trace(KEY, Scholar(), MAZE, ExactFilter(MAZE), num_pairs=300)


@pytest.fixture(scope="module")
def product():
    return trace(KEY, network_for(PRODUCT), PRODUCT, filter_of_paper(PRODUCT), num_pairs=100)


@pytest.fixture(scope="module")
def hike():
    # Systematic resampling leaves the particles in order.
    filter = ParticleFilter(HIKE, num_particles=1000, resampling="systematic")
    return trace(KEY, network_for(HIKE), HIKE, filter, num_pairs=100)


def test_the_best_policy_is_traced_as_it_can_be_written_down(best):
    """The treasure is up in the first episode and down in the second, which has one step more."""
    np.testing.assert_array_equal(best["lengths"], [SHORT, SHORT + 1])
    for episode, side, actions, rewards, cells in (
        (0, 1, [RIGHT] * LENGTH + [UP], [0] * LENGTH + [4], range(SHORT)),
        (1, -1, [LEFT] + [RIGHT] * LENGTH + [DOWN], [-0.1] + [0] * LENGTH + [4], [0, *range(SHORT)]),
    ):
        steps = len(actions)
        states = 2 * np.asarray(cells) + episode
        seen = np.where(np.asarray(cells) == LENGTH, SEES_JUNCTION, SEES_CORRIDOR)
        seen[np.asarray(cells) == 0] = (SEES_UP, SEES_DOWN)[episode]
        expected = {
            "actions": actions,
            "rewards": np.asarray(rewards, np.float32),
            "values": np.eye(4)[actions],
            "observations": np.eye(4)[seen],
            "states": states[:, None],
            "memory": [[t, side] for t in range(steps)],
            "belief": np.eye(STATES)[states],
        }
        for name, rows in expected.items():
            np.testing.assert_array_equal(best[name][episode, :steps], rows, err_msg=name)
        # The memory tells each state from every other, so that a decoder fitted to this agent can tell where it is.
        np.testing.assert_allclose(best["decoded"][episode, :steps], np.eye(STATES)[states], atol=0.1)
    assert set(best) == {"lengths", "decoded", *expected}


def test_nothing_is_left_after_the_end_of_an_episode(best):
    for name in set(best) - {"lengths"}:
        assert best[name].shape[:2] == (2, SHORT + 1), name
        after = best[name][0, SHORT:]
        assert np.all(after == 0 if name == "actions" else np.isnan(after)), name


def test_arrays_are_plain_and_small_and_the_same_for_the_same_key(best):
    again = trace(KEY, Scholar(), MAZE, ExactFilter(MAZE), num_pairs=300)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **best)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as stored:
        assert set(stored) == set(again)
        for name in again:
            np.testing.assert_array_equal(stored[name], again[name])
            assert str(stored[name].dtype) in {"float16", "float32", "int16", "int32"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "hike"])
def test_a_network_stepped_by_hand_remembers_and_values_the_same_and_acts_by_its_values(name, request):
    found, network = request.getfixturevalue(name), network_for({"product": PRODUCT, "hike": HIKE}[name])
    assert len(np.unique(found["actions"])) > 1
    by_hand = eqx.filter_jit(network.step)
    for episode, length in enumerate(found["lengths"]):
        memory, action = network.init_memory(), -1
        for t in range(length):
            memory, values = by_hand(memory, jnp.asarray(action), jnp.asarray(found["observations"][episode, t]))
            np.testing.assert_allclose(found["memory"][episode, t], network.memory_vector(memory), rtol=HALF, atol=HALF)
            np.testing.assert_allclose(found["values"][episode, t], values, atol=1e-5)
            action = int(found["actions"][episode, t])
            assert action == np.argmax(found["values"][episode, t])


@pytest.mark.slow
def test_a_maze_with_irrelevant_variables_shows_one_episode_of_each_layout(product):
    np.testing.assert_array_equal(product["observations"][:, 0, :4], np.eye(4)[[SEES_UP, SEES_DOWN]])
    np.testing.assert_array_equal(product["states"][:, 0, 0], [0, 1])


def moved(belief, action):
    """Σ_s T(· | s, a) b(s) of the maze, written out cell by cell."""
    after = np.zeros_like(belief)
    for state, mass in enumerate(belief):
        cell, layout = divmod(state, 2)
        for direction in range(4):
            chance = mass * ((1 - ASTRAY) * (direction == action) + ASTRAY / 4)
            here = {RIGHT: min(cell + 1, LENGTH), LEFT: max(cell - 1, 0), UP: cell, DOWN: cell}
            there = {**here, UP: LENGTH + 1, DOWN: LENGTH + 2} if cell == LENGTH else here
            after[2 * (cell if cell > LENGTH else there[direction]) + layout] += chance
    return after


@pytest.mark.slow
def test_the_belief_about_the_maze_is_that_of_bayes_rule(product):
    seen_in = np.array([SEES_UP, SEES_DOWN] + [SEES_CORRIDOR] * 2 * (LENGTH - 1) + [SEES_JUNCTION] * 6)
    for episode, length in enumerate(product["lengths"]):
        belief = np.eye(STATES)[:2].mean(axis=0)
        for t in range(length):
            belief = moved(belief, product["actions"][episode, t - 1]) if t > 0 else belief
            belief = belief * (seen_in == np.argmax(product["observations"][episode, t, :4]))
            belief = belief / belief.sum()
            np.testing.assert_allclose(product["belief.relevant"][episode, t], belief, rtol=HALF, atol=HALF)


@pytest.mark.slow
def test_the_belief_about_the_irrelevant_variables_is_that_of_kalman_and_is_not_decoded(product):
    for episode, length in enumerate(product["lengths"]):
        mean, variance = np.zeros(DRIFTING), 0.0
        for t in range(length):
            gain = (variance + 1) / (variance + 2)  # all deviations are 1
            mean, variance = mean + gain * (product["observations"][episode, t, 4:] - mean), gain
            expected = np.append(mean, variance * np.eye(DRIFTING))
            np.testing.assert_allclose(product["belief.irrelevant"][episode, t], expected, rtol=HALF, atol=HALF)
    assert not {"belief", "decoded", "decoded.irrelevant", "decoded_cells.relevant"} & set(product)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key"), [("product", "decoded.relevant"), ("hike", "decoded")])
def test_what_is_decoded_are_probabilities(name, key, request):
    found = request.getfixturevalue(name)
    for rows, length in zip(found[key].astype(np.float64), found["lengths"], strict=True):
        assert np.all(rows[:length] >= 0)
        np.testing.assert_allclose(rows[:length].sum(axis=-1), 1, atol=0.01)


@pytest.mark.slow
def test_at_most_200_particles_are_kept_and_none_is_preferred(hike):
    assert hike["belief"].shape == (2, hike["lengths"].max(), MAX_PARTICLES, 6)
    # The start is known, the orientation is not: at t = 0 all stand there, a quarter in each orientation.
    np.testing.assert_allclose(hike["belief"][:, 0, :, :2], -0.8, rtol=1e-3)
    shares = hike["belief"][:, 0, :, 2:].astype(np.float64).mean(axis=1)
    np.testing.assert_allclose(shares, 0.25, atol=0.13)  # four deviations of 200 draws


@pytest.mark.slow
def test_cells_of_particles_have_their_places(hike):
    cells = hike["decoded_cells"]
    assert cells.shape == (hike["decoded"].shape[-1], 6)
    assert len(np.unique(cells, axis=0)) == len(cells)
    assert np.all(np.abs(cells[:, :2]) <= 1)
    np.testing.assert_array_equal(np.sort(cells[:, 2:], axis=1), np.tile([0, 0, 0, 1], (len(cells), 1)))


@pytest.mark.slow
def test_fewer_particles_are_all_kept():
    pomdp = MountainHike(horizon=3)
    found = trace(KEY, network_for(pomdp), pomdp, filter_of_paper(pomdp, num_particles=20), num_pairs=50)
    assert found["belief"].shape == (2, 3, 20, 2)


def test_too_few_pairs_are_named_in_one_sentence():
    with pytest.raises(ValueError, match="a whole number of at least 50, but got 49"):
        trace(KEY, Scholar(), MAZE, ExactFilter(MAZE), num_pairs=49)


def test_a_fitted_decoder_answers_what_was_scored():
    """KL(b‖b̂) of the pairs held out, from the answers themselves."""
    rng = np.random.default_rng(0)
    memory, belief = rng.normal(size=(200, 3)), rng.dirichlet(np.ones(4), size=200)
    decoder = fit_decoder(KEY, memory, belief)
    truth, answers = belief[decoder.held_out], decoder.probabilities(memory[decoder.held_out])
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-6)
    found = decode(KEY, memory, belief)
    np.testing.assert_allclose(np.mean(np.sum(truth * np.log2(truth / answers), axis=1)), found.kl, atol=1e-5)
    assert len(decoder.held_out) == found.num_held_out
    assert decoder.centres is None
    with pytest.raises(ValueError, match="this decoder reads memories of 3 numbers"):
        decoder.probabilities(memory[:, :2])


def test_the_centres_of_cells_are_those_of_numpy_and_of_one_hot_codes_the_codes():
    rng = np.random.default_rng(1)
    place, code = rng.normal(size=(20, 15, 1)), rng.integers(0, 2, size=(20, 15))
    cells = binned(np.concatenate([place, np.eye(2)[code]], axis=2), bins=4)
    edges = np.histogram_bin_edges(place, 4)
    middles = (edges[:-1] + edges[1:]) / 2
    expected = [[middle, *one] for middle in middles for one in ([0, 1], [1, 0])]
    np.testing.assert_allclose(cells.centres, expected, atol=1e-6)
    for (middle, first, _), share in zip(cells.centres, cells.frequencies.mean(axis=0), strict=True):
        inside = np.abs(place[..., 0] - middle) <= (edges[1] - edges[0]) / 2
        np.testing.assert_allclose(share, np.mean(inside & (code == 1 - first)), atol=0.004)


# The atoms of a deterministic T-Maze against what can be written down by hand.
CORRIDOR = 4


class BestPlayer:
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
    return visited_atoms(BestPlayer(), TMaze(CORRIDOR), ExactFilter(TMaze(CORRIDOR)))


def test_the_best_policy_visits_every_cell_of_both_mazes_equally_often(atoms):
    assert len(atoms.weight) == 2 * (CORRIDOR + 1)
    np.testing.assert_allclose(atoms.weight, 1 / (2 * (CORRIDOR + 1)))
    visited = {(float(time), float(side)) for time, side in atoms.memory}
    assert visited == {(time, side) for time in range(CORRIDOR + 1) for side in (-1.0, 1.0)}
    np.testing.assert_allclose(np.max(atoms.belief, axis=1), 1)  # whoever has seen the first cell knows all
    assert len({row.tobytes() for row in atoms.belief}) == 2 * (CORRIDOR + 1)


def test_a_memory_of_all_that_matters_shares_the_whole_entropy_and_none_shares_nothing(atoms):
    entropy = np.log2(2 * (CORRIDOR + 1))
    for found in exact_information(jax.random.key(0), atoms).values():
        np.testing.assert_allclose([found.bits, found.entropy], entropy, rtol=1e-6)
    forgotten = exact_information(jax.random.key(0), atoms._replace(memory=atoms.memory * 0))
    for found in forgotten.values():
        np.testing.assert_allclose(found.bits, 0, atol=1e-9)


def test_only_greedy_episodes_of_a_deterministic_maze_can_be_enumerated():
    assert can_enumerate(TMaze(3), 0.0)
    assert not can_enumerate(TMaze(3), 0.2)
    assert not can_enumerate(TMaze(3, 0.3), 0.0)
