"""Wrappers that show an agent its last action: beliefs know the actions, and many agents are not told of them.

The observation becomes (one-hot a_{t-1}, or zeros at t = 0; o_t), which is what our own networks read.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from beliefscope.errors import require


class LastAction(gymnasium.Wrapper, RecordConstructorArgs):
    """One environment with a `Discrete` action space and vectors as observations."""

    def __init__(self, env: gymnasium.Env):
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        self.observation_space = _longer(env.observation_space, env.action_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._shown(None, observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._shown(action, observation), reward, terminated, truncated, info

    def _shown(self, action: Any, observation: Any) -> np.ndarray:
        assert isinstance(self.env.action_space, spaces.Discrete)
        code = np.zeros(self.env.action_space.n, np.float32)
        if action is not None:
            code[int(action)] = 1
        return np.concatenate([code, observation])


class LastActionVector(VectorWrapper):
    """The same for a vector environment of the mode `NEXT_STEP`; the first step of an episode has zeros."""

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        self.single_observation_space = _longer(env.single_observation_space, env.single_action_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._fresh = np.ones(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observations, info = self.env.reset(seed=seed, options=options)
        self._fresh = np.ones(self.env.num_envs, bool)
        shown = self._shown(np.zeros(self.env.num_envs, int), observations)
        self._fresh = np.zeros(self.env.num_envs, bool)
        return shown, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        shown = self._shown(np.asarray(actions), observations)
        self._fresh = terminated | truncated  # what the next step shows is the first observation of a new episode
        return shown, rewards, terminated, truncated, info

    def _shown(self, actions: Any, observations: Any) -> np.ndarray:
        assert isinstance(self.env.single_action_space, spaces.Discrete)
        codes = np.eye(self.env.single_action_space.n, dtype=np.float32)[actions]
        return np.concatenate([np.where(self._fresh[:, None], 0, codes), observations], axis=1)


def _longer(observations: spaces.Space, actions: spaces.Space) -> spaces.Box:
    require(
        isinstance(observations, spaces.Box) and len(observations.shape) == 1 and isinstance(actions, spaces.Discrete),
        rule="the last action is shown where observations are vectors and actions are Discrete",
        received=(observations, actions),
        advice="flatten the observations first",
    )
    assert isinstance(observations, spaces.Box)
    assert isinstance(actions, spaces.Discrete)
    ends = (np.full(actions.n, end, np.float32) for end in (0, 1))
    low, high = (np.concatenate(pair) for pair in zip(ends, (observations.low, observations.high), strict=True))
    return spaces.Box(low, high, dtype=np.float32)
