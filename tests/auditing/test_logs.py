"""Logs: padded, ragged and Parquet ones say the same; what cannot have happened is refused at its first step."""

from typing import Any

import jax
import numpy as np
import polars
import pytest

import beliefscope as bs
from beliefscope.auditing import histories, log_from_arrays, read_log
from beliefscope.auditing.logs import checked_log
from beliefscope.cli import main
from beliefscope.pomdp import RandomPolicy, rollout

MAZE = bs.TMaze(3)


class Sign:
    """Remembers the first observation."""

    def start(self, num_episodes):
        self.memory = np.zeros((num_episodes, 2), np.float32)

    def step(self, previous_actions, observations):
        self.memory += observations[:, :2]
        turn = np.where(self.memory[:, 0] > 0, 1, 3)
        return np.where(observations[:, 3] > 0, turn, 0), self.memory


@pytest.fixture(scope="module")
def arrays():
    """Padded episodes, with noise behind their ends."""
    played = bs.play(jax.random.key(0), Sign(), MAZE, num_episodes=700)
    lengths = np.minimum(played.lengths, 3 + np.arange(700) % 2)  # some are cut before the junction
    return {
        "observations": played.observations,
        "actions": played.actions,
        "memory.h": played.memory,
        "memory.c": -played.memory,
        "rewards": np.where(np.arange(played.actions.shape[1]) == lengths[:, None] - 1, 1.0, 0.0),
        "lengths": lengths,
    }


def flat(arrays):
    """A row for each step, with the end of each episode."""
    acted = np.arange(arrays["actions"].shape[1]) < arrays["lengths"][:, None]
    ends = np.arange(acted.shape[1]) == arrays["lengths"][:, None] - 1
    rows = {name: array[acted] for name, array in arrays.items() if name != "lengths"}
    return {**rows, "episode_ends": ends[acted]}


def test_padded_ragged_and_parquet_logs_say_the_same(arrays, tmp_path):
    rows = flat(arrays)
    np.savez(tmp_path / "padded.npz", **arrays)
    np.savez_compressed(tmp_path / "ragged.npz", **rows)
    episode = np.cumsum(rows["episode_ends"]) - rows["episode_ends"]
    columns = {
        "episode": episode,
        "observation": np.eye(4)[rows["observations"]].tolist(),  # as the environment shows them
        "action": rows["actions"],
        "reward": rows["rewards"],
        "memory.h": rows["memory.h"].tolist(),
        "memory.c": rows["memory.c"].tolist(),
    }
    polars.DataFrame(columns).write_parquet(tmp_path / "log.parquet")
    files = [tmp_path / name for name in ("padded.npz", "ragged.npz", "log.parquet")]
    found: list[Any] = [read_log(file, MAZE).episodes for file in files]
    padded, *others = found
    acted = np.arange(padded.actions.shape[1]) < padded.lengths[:, None]
    for other in others:
        assert np.array_equal(other.lengths, padded.lengths)
        assert np.allclose(other.returns, padded.returns)
        assert np.allclose(other.returns, MAZE.discount ** (padded.lengths - 1))
        for name in ("actions", "observations", "rewards"):
            assert np.array_equal(getattr(other, name)[acted], getattr(padded, name)[acted])
        assert list(other.memory) == ["h", "c"]
        assert np.array_equal(other.memory["c"][acted], padded.memory["c"][acted])


def test_an_impossible_log_is_refused_at_its_first_impossible_step(arrays):
    filter = bs.filter_of_paper(MAZE)
    checked_log(log_from_arrays(arrays, MAZE), MAZE, filter)
    wrong = arrays["observations"].copy()
    wrong[37, 2] = 0  # the sign at the entrance, in the middle of the corridor
    wrong[51, 1] = 3
    first = "2 of 700 impossible ones, the first in episode 37 at step 2: after action 0 the observation 0, where 2 was"
    with pytest.raises(ValueError, match=first):
        checked_log(log_from_arrays({**arrays, "observations": wrong}, MAZE), MAZE, filter)
    wrong[0, 0] = 3
    with pytest.raises(
        ValueError, match="the first in episode 0 at step 0: the observation 3, where 0 or 1 was possible"
    ):
        checked_log(log_from_arrays({**arrays, "observations": wrong}, MAZE), MAZE, filter)
    late = arrays["observations"].copy()
    late[2, 3:] = 0  # behind the end of an episode of three steps
    checked_log(log_from_arrays({**arrays, "observations": late}, MAZE), MAZE, filter)


def test_all_steps_are_kept_of_so_many_logged_episodes_as_their_beliefs_have_room(arrays, monkeypatch):
    monkeypatch.setattr(histories, "_NUMBERS_ALONG", 50 * MAZE.horizon * MAZE.num_states)
    episodes = log_from_arrays(arrays, MAZE).episodes
    found = histories.log_histories(jax.random.key(0), episodes, MAZE, bs.filter_of_paper(MAZE))
    assert len(found.time) == 650
    assert len(found.along[2]) == episodes.lengths[650:].sum()


def test_a_log_is_told_how_many_episodes_an_audit_needs(arrays):
    some = {name: array[:554] for name, array in arrays.items()}
    with pytest.raises(ValueError, match="an audited log has at least 555 episodes, but got 554"):
        bs.audit(log_from_arrays(some, MAZE), MAZE)


def test_a_log_whose_particles_are_depleted_is_taken_with_a_warning():
    maze = bs.TMaze(10, 0.3)
    played = rollout(jax.random.key(0), maze, RandomPolicy(maze), num_episodes=50).trajectory
    log = recorded(maze, played, np.asarray(played.observations)[:, :-1])
    with pytest.warns(UserWarning, match=r"depleted in \d+ of 50 histories, all of which are possible"):
        checked_log(log, maze, bs.ParticleFilter(maze, num_particles=2))


def test_irrelevant_variables_are_read_as_parts_end_to_end_and_as_the_environment_shows_them():
    both = bs.Irrelevant(MAZE, 2)
    played = rollout(jax.random.key(0), both, RandomPolicy(both), num_episodes=20).trajectory
    seen = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :-1], played.observations)
    parts = np.concatenate([seen.relevant[..., None], seen.irrelevant], axis=2)
    shown = np.concatenate([np.eye(4)[seen.relevant], seen.irrelevant], axis=2)
    acted = np.arange(parts.shape[1]) < np.asarray(played.lengths)[:, None]
    for given in (parts, shown):
        read: Any = recorded(both, played, given).episodes.observations
        assert np.array_equal(np.asarray(read.relevant)[acted], seen.relevant[acted])
        assert np.allclose(np.asarray(read.irrelevant)[acted], seen.irrelevant[acted])
    parts[3, 0, 0] = 0.7
    with pytest.raises(ValueError, match=r"got '0\.7 in episode 3 at step 0'"):
        recorded(both, played, parts)


def recorded(pomdp, played, observations):
    """The log of an agent that remembers nothing."""
    arrays = {
        "observations": observations,
        "actions": np.asarray(played.actions),
        "memory": np.zeros((*played.actions.shape, 1)),
        "lengths": np.asarray(played.lengths),
    }
    return log_from_arrays(arrays, pomdp)


def changed(arrays, **others):
    return {name: array for name, array in {**arrays, **others}.items() if array is not None}


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"memory.h": None, "memory.c": None}, r"without \['memory'\]"),
        ({"lengths": None}, "either lengths or episode_ends"),
        (
            {name: np.zeros((0, 4)) for name in ("observations", "memory.h", "memory.c", "rewards")}
            | {"actions": np.zeros((0, 4), int), "lengths": np.zeros(0, int)},
            "from 1 to T = 4, but got 'no episodes'",
        ),
        ({"lengths": np.zeros(700, int)}, r"from 1 to T = 4, but got \[0, 0\]"),
        ({"actions": np.full((700, 4), 4)}, "from 0 to 3, but got '4 at step 0 of episode 0'"),
        ({"memory.h": np.full((700, 4, 2), np.nan)}, "finite numbers, but got 'NaN or infinity at step 0 of episode 0"),
        ({"observations": np.zeros((700, 4, 9))}, r"or encoded \(700, 4, 4\), but got"),
        ({"actions": np.zeros((700, 5), int)}, "a padded log has"),
        ({"lengths": np.array(3)}, r"hold numbers, with a row for each .*'lengths': 'int64 \(\)'"),
        ({"rewards": np.full((700, 4), "x")}, "hold numbers, .*'rewards': '<U1"),
        ({"observations": np.full((700, 4), {})}, "hold numbers, .*'observations': 'object"),
        (
            {"rewards": np.full((700, 4), np.inf)},
            "rewards is made of finite numbers, but got 'NaN or inf",
        ),
        ({"observations": np.full((700, 4), np.nan)}, "observations is made of finite numbers"),
        ({"observations": np.full((700, 4), 0.5)}, r"of TMaze is int32\[\], but got '0.5 in episode 0 at step 0'"),
        ({"observations": np.full((700, 4, 4), 0.3)}, "what encode_observation of TMaze makes of an observation"),
    ],
)
def test_wrong_logs_get_one_sentence(arrays, others, words):
    with pytest.raises(ValueError, match=words):
        log_from_arrays(changed(arrays, **others), MAZE)


@pytest.mark.slow
def test_a_log_is_audited_and_one_without_states_says_so(arrays):
    log: Any = log_from_arrays({**arrays, "sees_actions": True}, MAZE)
    audit: Any = bs.audit(log, MAZE, bits=False)
    assert audit.sufficiency.value.value > 0.95
    assert audit.parts["c"].value.value > 0.95
    assert audit.num_samples == 630  # all steps of the others judge the decoder for all steps
    assert audit.sees_actions is True
    assert audit.traces == {}
    assert "the log has no states: there is no belief viewer" in audit.warnings
    assert audit.returns.mean == pytest.approx(float(np.mean(log.episodes.returns[:630])))


@pytest.mark.slow
def test_the_command_audits_a_log(arrays, tmp_path, capsys):
    np.savez(tmp_path / "log.npz", **arrays, states=np.zeros((700, 4), int))
    out = tmp_path / "out"
    given = [str(tmp_path / "log.npz"), "--pomdp", "t-maze", "--length", "3", "--no-bits", "--out", str(out)]
    assert main(["audit", *given]) == 0
    printed = capsys.readouterr().out
    assert "log.npz in T-Maze, L = 3, N = 630" in printed
    assert 'id="belief-viewer"' in (out / "report.html").read_text("utf-8")
    assert str(bs.Audit.load(out)) in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nowhere.npz --pomdp t-maze", "a log is an .npz or a .parquet file, but got 'nowhere.npz'; correct the path"),
        ("{agent} --pomdp t-maze", "agents' files are not loaded"),
        ("{objects} --pomdp t-maze", "without objects"),
        ("{text} --pomdp t-maze", "write it by np.savez"),
        ("{parquet} --pomdp t-maze", "can be read by Polars"),
        ("{log} --pomdp t-maze --length 0", "a T-Maze's length is a whole number of at least 1"),
        ("{log} --pomdp tigre", "perhaps 'tiger' is meant"),
        ("{log} --pomdp nowhere.pomdp", "nothing is there"),
        ("{log} --pomdp t-maze --length 20", "in episode 1 at step 3"),
    ],
)
def test_wrong_commands_get_one_sentence(arguments, words, arrays, tmp_path, capsys):
    files = {name: str(tmp_path / name) for name in ("agent", "text.npz", "objects.npz", "log.npz", "bad.parquet")}
    for name in ("agent", "text.npz", "bad.parquet"):
        (tmp_path / name).write_text("no arrays")
    np.savez(files["objects.npz"], observations=np.array([{}], object), allow_pickle=True)
    np.savez(files["log.npz"], **arrays)
    names = {name.split(".")[0]: path for name, path in files.items()} | {"parquet": files["bad.parquet"]}
    assert main(["audit", *arguments.format(**names).split(), "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_bits_of_two_files(tmp_path, capsys):
    draw = np.random.default_rng(0)
    x = draw.integers(2, size=(1500, 1)).astype(float)
    for name, array in {"x": x, "y": x, "objects": np.array([{}], object)}.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
    assert main(["bits", str(tmp_path / "x.npy"), str(tmp_path / "objects.npy")]) == 2
    assert "an .npy file of numbers" in capsys.readouterr().err
    assert main(["bits", str(tmp_path / "x.npy"), "nowhere.npy"]) == 2
    assert "nothing is there" in capsys.readouterr().err
    assert main(["bits", str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]) == 0
    bits = float(capsys.readouterr().out.split()[0])
    assert bits == pytest.approx(1.0, abs=0.05)
