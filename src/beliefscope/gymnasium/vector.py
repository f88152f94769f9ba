"""Many episodes of one POMDP as a Gymnasium vector environment: a step of all of them is one compiled call."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from beliefscope.belief import Filter
from beliefscope.errors import is_whole, require
from beliefscope.gymnasium.environment import draw_keys, shown
from beliefscope.gymnasium.steps import Running, advance, begin, observation_space
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.arguments import check_pomdp_type


class VectorEnvironment(VectorEnv):
    """N = `num_envs` episodes; where one has ended, the next step begins a new one (Gymnasium's `NEXT_STEP`).

    That step ignores the action and earns 0. `info` has what an `Environment`'s has, an array with a row for each.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, pomdp: POMDP, num_envs: int = 1, *, filter: Filter | None = None):
        check_pomdp_type(pomdp)
        require(
            is_whole(num_envs) and num_envs >= 1,
            rule="the number of environments is a whole number of at least 1",
            received=num_envs,
            advice="ask for at least one",
        )
        self.pomdp, self.filter, self.num_envs = pomdp, filter, int(num_envs)
        self.single_observation_space = observation_space(pomdp)
        self.single_action_space = spaces.Discrete(pomdp.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._running: Running | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, "n observation"], dict[str, Any]]:
        """All episodes anew; the same seed gives the same episodes."""
        super().reset(seed=seed)
        self._running = begin(draw_keys(self.np_random, self.num_envs), self.pomdp, self.filter)
        self._again = np.zeros(self.num_envs, bool)
        return np.array(self._running.encoded, np.float32), self._info()

    def step(
        self, actions: Any
    ) -> tuple[
        Float[np.ndarray, "n observation"],
        Float[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        dict[str, Any],
    ]:
        require(
            self._running is not None,
            rule="a step follows a reset",
            received="no running episodes",
            advice="call reset() first",
        )
        assert self._running is not None
        given = np.asarray(actions)
        require(
            given.shape == (self.num_envs,)
            and given.dtype.kind in "iu"
            and bool(np.all((given >= 0) & (given < self.pomdp.num_actions))),
            rule=f"actions are {self.num_envs} integers from 0 to {self.pomdp.num_actions - 1}",
            received=f"{given.dtype} of shape {given.shape}",
            advice="pass one action for each environment",
        )
        keys = draw_keys(self.np_random, self.num_envs)
        moved = advance(self._running, given, self._again, keys, self.pomdp, self.filter)
        self._running, *ends = moved
        reward, terminated, truncated = (np.array(each) for each in ends)
        self._again = terminated | truncated
        return (
            np.array(self._running.encoded, np.float32),
            reward.astype(np.float64),
            terminated,
            truncated,
            self._info(),
        )

    def _info(self) -> dict[str, Any]:
        assert self._running is not None
        found = shown(self._running)
        return {**found, **{f"_{name}": np.ones(self.num_envs, bool) for name in found}}
