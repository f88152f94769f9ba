"""One POMDP as a Gymnasium environment."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jaxtyping import Float

from beliefscope.belief import Filter
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.gymnasium.steps import Running, advance, begin, observation_space, to_numpy
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.arguments import check_pomdp_type


class Environment(gymnasium.Env):
    """One episode at a time; it is cut (truncated) after `pomdp.horizon` actions.

    Observations are vectors as `pomdp.encode_observation` gives them. `info` has the `observation` as the POMDP gives
    it, the true `state`, and the `belief` (the features of the filter) where a filter is passed.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, pomdp: POMDP, *, filter: Filter | None = None):
        check_pomdp_type(pomdp)
        self.pomdp, self.filter = pomdp, filter
        self.observation_space = observation_space(pomdp)
        self.action_space = spaces.Discrete(pomdp.num_actions)
        self._running: Running | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        """A new episode; the same seed gives the same episodes."""
        super().reset(seed=seed)
        self._running = begin(draw_keys(self.np_random, 1), self.pomdp, self.filter)
        self._over = False
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        require(
            self._running is not None and not self._over,
            rule="a step follows a reset, and none follows the end of an episode",
            received="no running episode",
            advice="call reset() first",
        )
        require(
            is_whole(np.asarray(action).item()) and 0 <= int(action) < self.pomdp.num_actions,
            rule=f"an action is an integer from 0 to {self.pomdp.num_actions - 1}",
            received=action,
            advice="choose one of the POMDP's actions",
        )
        assert self._running is not None
        given = np.asarray([int(action)])
        moved = advance(self._running, given, np.zeros(1, bool), None, self.pomdp, self.filter)
        self._running, reward, terminated, truncated = moved
        ended, cut = bool(np.asarray(terminated)[0]), bool(np.asarray(truncated)[0])
        self._over = ended or cut
        return self._observation(), float(np.asarray(reward)[0]), ended, cut, self._info()

    def _observation(self) -> Float[np.ndarray, " observation"]:
        assert self._running is not None
        return np.array(self._running.encoded, np.float32)[0]

    def _info(self) -> dict[str, Any]:
        assert self._running is not None
        return {name: jax.tree.map(lambda leaf: leaf[0], tree) for name, tree in shown(self._running).items()}


def shown(running: Running) -> dict[str, Any]:
    """What `info` has of every episode, the episodes along the first axis."""
    found = {"observation": to_numpy(running.world.observation), "state": to_numpy(running.world.state)}
    return found if running.features is None else {**found, "belief": to_numpy(running.features)}


def draw_keys(draw: np.random.Generator, number: int) -> jax.Array:
    """A key for each of so many episodes."""
    return jax.random.split(fast_key(jax.random.key(int(draw.integers(2**31)))), number)
