"""POMDPs as Gymnasium environments: one episode at a time, or many in one compiled call; and wrappers for both.

Which key decides what is said in `beliefscope.pomdp.rollout`, whose functions are used here. The wrappers show an agent
its last action: beliefs know the actions, and many agents are not told of them.
"""

from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from beliefscope.belief import Filter
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp import POMDP, Finite
from beliefscope.pomdp.interface import check_pomdp_type
from beliefscope.pomdp.rollout import World, start_world, step_world, world_keys


class Running(NamedTuple):
    """N episodes as they stand."""

    world: World
    belief: PyTree  # [n, ...], None where no filter is asked for
    time: Int[Array, " n"]  # actions taken
    encoded: Float[Array, "n observation"]  # o_t as an agent reads it
    features: PyTree  # of the belief


@eqx.filter_jit
def begin(keys: Key[Array, " n"], pomdp: POMDP, filter: Filter | None) -> Running:
    """New episodes at t = 0."""

    def one(key: Key[Array, ""]) -> tuple[World, PyTree]:
        world, key_watch = start_world(key, pomdp)
        belief = None if filter is None else filter.init(key_watch, world.observation, terminal=world.done)
        return world, belief

    worlds, beliefs = jax.vmap(one)(keys)
    return _shown(pomdp, filter, worlds, beliefs, jnp.zeros(len(keys), int))


@eqx.filter_jit
def advance(
    running: Running,
    actions: Int[Any, " n"],
    again: Bool[Any, " n"],
    keys: Key[Array, " n"] | None,
    pomdp: POMDP,
    filter: Filter | None,
) -> tuple[Running, Float[Array, " n"], Bool[Array, " n"], Bool[Array, " n"]]:
    """One step of each, or, where `again` holds, a new episode in its place; rewards, terminated, truncated.

    Without keys no episode begins.
    """

    def one(world: World, belief: PyTree, action: Int[Array, ""]) -> tuple[World, PyTree]:
        keys_step = world_keys(world)
        moved = step_world(world, keys_step, pomdp, action)
        if filter is None:
            return moved, None
        return moved, filter.update(keys_step.watch, belief, action, moved.observation, terminal=moved.done)

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(again.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    worlds, beliefs = jax.vmap(one)(running.world, running.belief, actions)
    if keys is not None:
        fresh = begin(keys, pomdp, filter)
        worlds, beliefs = jax.tree.map(choose, (fresh.world, fresh.belief), (worlds, beliefs))
    time = jnp.where(again, 0, running.time + 1)
    now = _shown(pomdp, filter, worlds, beliefs, time)
    terminated = ~again & worlds.done
    return now, jnp.where(again, 0.0, worlds.reward), terminated, ~again & ~worlds.done & (time >= pomdp.horizon)


def _shown(pomdp: POMDP, filter: Filter | None, worlds: World, beliefs: PyTree, time: Int[Array, " n"]) -> Running:
    encoded = jax.vmap(pomdp.encode_observation)(worlds.observation)
    features = None
    if filter is not None:
        keys = jax.vmap(lambda key: jax.random.fold_in(key, 0))(worlds.key)
        features = jax.vmap(filter.features)(keys, beliefs)
    return Running(worlds, beliefs, time, encoded, features)


def observation_space(pomdp: POMDP) -> spaces.Box:
    """Vectors [observation_size]: one-hot codes lie in [0, 1], others are unbounded."""
    ends = (0.0, 1.0) if isinstance(pomdp, Finite) and _is_one_hot(pomdp) else (-np.inf, np.inf)
    return spaces.Box(*ends, shape=(pomdp.observation_size,), dtype=np.float32)


def _is_one_hot(pomdp: POMDP) -> bool:
    codes = np.asarray(jax.vmap(pomdp.encode_observation)(jnp.arange(pomdp.observation_size)))
    return codes.shape == (len(codes), len(codes)) and bool(np.all(codes == np.eye(len(codes))))


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy's arrays, which the caller may write to."""
    return jax.tree.map(np.array, tree)


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
