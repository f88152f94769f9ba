"""The environments by Gymnasium's own rules, and their returns beside those of `rollout`."""

import subprocess
import sys
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import ks_2samp

import beliefscope as bs
from beliefscope.gymnasium import IDS, LastAction, VectorEnvironment, make, make_vec
from beliefscope.pomdp import discounted_return

MAZE = bs.TMaze(3, 0.3)
EXPLORATION = [1 / 2, 1 / 6, 1 / 6, 1 / 6]


def played(env, seed, steps=30):
    """Everything that an environment shows along fixed actions."""
    observation, info = env.reset(seed=seed)
    shown = [observation, info["state"]]
    for step in range(steps):
        observation, reward, terminated, truncated, info = env.step(step % 4)
        shown += [observation, reward, info["state"]]
        if terminated or truncated:
            observation, info = env.reset()
            shown += [observation, info["state"]]
    return np.concatenate([np.ravel(each) for each in shown])


@pytest.mark.parametrize("name", sorted(set(IDS) - {"beliefscope/File-v0"}))
def test_registered_ids_pass_gymnasiums_check(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unbounded observations, of which a hike's altitude is one
        env = gymnasium.make(name, disable_env_checker=True)
        check_env(env.unwrapped, skip_render_check=True)
        check_env(LastAction(env.unwrapped), skip_render_check=True)


def test_a_file_and_a_classic_go_by_name(tmp_path):
    path = tmp_path / "own.pomdp"
    bs.write_pomdp(bs.classic("tiger"), path)
    for env in (make("tiger", horizon=7), make(path, horizon=7), make("file", path=path, horizon=7)):
        assert env.action_space == gymnasium.spaces.Discrete(3)
        observation, info = env.reset(seed=0)
        assert np.array_equal(observation, [0, 0])  # nothing is seen before the first action
        assert info["observation"] == -1
        ends = [env.step(0)[3] for _ in range(7)]
        assert ends == [False] * 6 + [True]
    with pytest.raises(ValueError, match="perhaps 'tiger' is meant"):
        make("tigre")


def test_seeds_reproduce_and_differ():
    env = make(MAZE)
    first, again, other = played(env, 1), played(env, 1), played(make(MAZE), 2)
    assert np.array_equal(first, again)
    assert len(first) != len(other) or not np.array_equal(first, other)


def test_info_has_the_belief_of_the_exact_filter():
    env, filter = make(MAZE, belief=True), bs.filter_of_paper(MAZE)
    _, info = env.reset(seed=3)
    key = jax.random.key(0)
    belief = filter.init(key, info["observation"])
    for action in (0, 0, 1, 0):
        assert np.allclose(info["belief"], belief.probabilities, atol=1e-6)
        assert info["belief"][info["state"]] > 0
        *_, info = env.step(action)
        belief = filter.update(key, belief, action, info["observation"])
    assert "belief" not in make(MAZE).reset()[1]


def test_steps_without_an_episode_and_wrong_actions_are_refused():
    env = make(MAZE)
    with pytest.raises(ValueError, match="a step follows a reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an action is an integer from 0 to 3, but got 4"):
        env.step(4)
    envs = make_vec(MAZE, num_envs=3)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="actions are 3 integers from 0 to 3"):
        envs.step(np.zeros(2, int))


@pytest.mark.parametrize("vector", [False, True])
def test_the_last_action_is_shown_and_is_blank_at_the_start(vector):
    if not vector:
        env = make(MAZE, last_action=True)
        assert env.reset(seed=0)[0][:4].tolist() == [0, 0, 0, 0]
        assert env.step(2)[0][:4].tolist() == [0, 0, 1, 0]
        return
    envs = make_vec(MAZE, num_envs=4, last_action=True)
    envs.reset(seed=0)
    ended = np.zeros(4, bool)
    for step in range(40):
        seen, _, terminated, truncated, info = envs.step(np.full(4, step % 2))
        assert np.array_equal(seen[:, :4], np.where(ended[:, None], 0, np.eye(4)[step % 2]))
        assert np.all(info["state"][ended] < 2)  # a new episode begins in the first cell
        ended = terminated | truncated
        assert seen in envs.observation_space


def random_returns(envs, pomdp, each, seed):
    """Discounted returns of the exploration policy: the first `each` episodes of every environment, so that long
    episodes count as often as short ones."""
    draw, count = np.random.default_rng(seed), envs.num_envs
    envs.reset(seed=seed)
    total, time, again, found = np.zeros(count), np.zeros(count), np.zeros(count, bool), [[] for _ in range(count)]
    while min(map(len, found)) < each:
        _, reward, terminated, truncated, _ = envs.step(draw.choice(4, size=count, p=EXPLORATION))
        total = np.where(again, 0, total + pomdp.discount**time * reward)
        time = np.where(again, 0, time + 1)
        again = terminated | truncated
        for place in np.flatnonzero(again):
            found[place].append(total[place])
    return np.concatenate([some[:each] for some in found])


@pytest.mark.slow
def test_random_agents_earn_what_they_earn_in_rollouts():
    done = bs.rollout(jax.random.key(0), MAZE, bs.RandomPolicy(MAZE), num_episodes=4000).trajectory
    theirs = np.asarray(discounted_return(done.rewards, MAZE.discount))
    assert ks_2samp(random_returns(VectorEnvironment(MAZE, 500), MAZE, 6, 0), theirs).pvalue > 0.001
    single = []
    env, draw = make(MAZE), np.random.default_rng(0)
    for episode in range(400):
        env.reset(seed=episode)
        total, factor, over = 0.0, 1.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(draw.choice(4, p=EXPLORATION))
            total, factor, over = total + factor * float(reward), factor * MAZE.discount, terminated or truncated
        single.append(total)
    assert ks_2samp(single, theirs).pvalue > 0.001


def test_make_vec_of_gymnasium_finds_the_compiled_one():
    envs = gymnasium.make_vec("beliefscope/TMaze-v0", num_envs=5, length=4)
    assert isinstance(envs.unwrapped, VectorEnvironment)
    assert envs.reset(seed=0)[0].shape == (5, 4)
    assert envs.unwrapped.pomdp.horizon == bs.TMaze(4).horizon


def test_all_else_works_without_gymnasium():
    program = (
        "import sys\nsys.modules['gymnasium'] = None\nimport beliefscope\nfrom beliefscope import *\n"
        "print(audit, TMaze(3).horizon)\n"
        "try:\n    beliefscope.gymnasium\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'beliefscope[gymnasium]'" in done.stdout
