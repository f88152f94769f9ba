"""`check_pomdp`: call it on your own POMDP before you trust anything that is measured on it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from beliefscope.errors import is_whole
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp.interface import (
    POMDP,
    Finite,
    ObservationDensity,
    check_pomdp_type,
    checked_discount,
    checked_horizon,
)
from beliefscope.pomdp.rollout import RandomPolicy, rollout

_STATES = 16  # visited states looked at closely
_DRAWS = 4000  # samples compared with each density
_SIGMAS = 6.0  # disagreement that chance produces once in a billion comparisons
_SLACK = 6 / _DRAWS  # and some counts more, for what is too rare to be normally distributed


def check_pomdp(pomdp: POMDP, *, seed: int = 0) -> None:
    """Verify a POMDP by sampling; raise a `ValueError` that says in one sentence what is wrong.

    It checks facts, shapes and types; that values are finite; the actions of the exploration policy; that terminal
    states do not change and give no reward; that samples agree with `log_observation`, and for finite POMDPs with
    `initial_distribution`, `predict` and `likelihood`. It checks only states that the exploration policy reaches.
    """
    check_pomdp_type(pomdp)
    _say(is_whole(pomdp.num_actions) and pomdp.num_actions >= 1, pomdp, "num_actions is not a whole number above 0")
    checked_discount(pomdp.discount)
    checked_horizon(pomdp.horizon)
    _check_shapes(pomdp)
    key_play, key_start, key_explore, key_finite, key_density = jax.random.split(jax.random.key(seed), 5)
    states = _visited_states(key_play, pomdp)
    starts = jax.jit(jax.vmap(pomdp.sample_initial))(jax.random.split(key_start, _STATES))
    _check_exploration(key_explore, pomdp)
    _check_terminal(pomdp, states)
    densities: dict[str, Callable[..., Any]] = {}
    if isinstance(pomdp, Finite):
        _check_finite(key_finite, pomdp)
        densities["likelihood"] = lambda seen, state, action: jnp.log(pomdp.likelihood(seen, action)[state])
    if isinstance(pomdp, ObservationDensity):
        densities["log_observation"] = pomdp.log_observation
    for name, density in densities.items():
        _check_density(key_density, pomdp, name, density, states, first=False)
        _check_density(key_density, pomdp, name, density, starts, first=True)


def _say(holds: bool | np.bool_, pomdp: POMDP, what: str) -> None:
    if not holds:
        raise ValueError(f"{type(pomdp).__name__} is not a valid POMDP: {what}.")


def _check_shapes(pomdp: POMDP) -> None:
    key, action = jax.random.key(0), jnp.asarray(0)
    state = _shape(pomdp, "sample_initial", pomdp.sample_initial, key)
    moved = _shape(pomdp, "sample_transition", pomdp.sample_transition, key, state, action)
    _say(
        moved == state, pomdp, f"sample_transition returns {_plain(moved)} where sample_initial returns {_plain(state)}"
    )
    first = _shape(pomdp, "sample_observation", pomdp.sample_observation, key, state)
    seen = _shape(pomdp, "sample_observation", pomdp.sample_observation, key, state, action)
    both = f"{_plain(first)} without an action and {_plain(seen)} with one"
    _say(first == seen, pomdp, f"sample_observation returns {both}")
    code = _shape(pomdp, "encode_observation", pomdp.encode_observation, seen)
    size = getattr(code, "shape", None)
    told = f"the shape {size} where observation_size is {pomdp.observation_size}"
    _say(size == (pomdp.observation_size,), pomdp, f"encode_observation returns {told}")
    _check_scalar(pomdp, "reward", jnp.floating, pomdp.reward, state, action, state, seen)
    _check_scalar(pomdp, "reward (without an observation)", jnp.floating, pomdp.reward, state, action, state)
    _check_scalar(pomdp, "is_terminal", jnp.bool_, pomdp.is_terminal, state)
    _check_scalar(pomdp, "sample_exploration", jnp.integer, pomdp.sample_exploration, key)
    _check_vector(pomdp, "state_features", None, pomdp.state_features, state)
    if isinstance(pomdp, ObservationDensity):
        _check_scalar(pomdp, "log_observation", jnp.floating, pomdp.log_observation, seen, state, action)
        _check_scalar(pomdp, "log_observation (without an action)", jnp.floating, pomdp.log_observation, seen, state)
    if isinstance(pomdp, Finite):
        count = pomdp.num_states
        _check_vector(pomdp, "initial_distribution", count, pomdp.initial_distribution)
        _check_vector(pomdp, "predict", count, pomdp.predict, jnp.zeros(count), action)
        _check_vector(pomdp, "likelihood", count, pomdp.likelihood, seen, action)
        _check_vector(pomdp, "likelihood (without an action)", count, pomdp.likelihood, seen)
        _check_vector(pomdp, "terminal_states", count, pomdp.terminal_states)


def _check_scalar(pomdp: POMDP, name: str, kind: Any, method: Callable[..., Any], *args: Any) -> None:
    result = _shape(pomdp, name, method, *args)
    holds = getattr(result, "shape", None) == () and jnp.issubdtype(result.dtype, kind)
    _say(holds, pomdp, f"{name} returns {_plain(result)} where a scalar of type {kind.__name__} is needed")


def _check_vector(pomdp: POMDP, name: str, length: int | None, method: Callable[..., Any], *args: Any) -> None:
    result = _shape(pomdp, name, method, *args)
    holds = getattr(result, "ndim", 0) == 1 and length in (None, result.shape[0])
    wanted = "a vector" if length is None else f"a vector of length {length}"
    _say(holds, pomdp, f"{name} returns {_plain(result)} where {wanted} is needed")


def _shape(pomdp: POMDP, name: str, method: Callable[..., Any], *args: Any) -> Any:
    """The shapes that a method returns; weak types are dropped so that they compare equal."""
    try:
        result = jax.eval_shape(method, *args)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{type(pomdp).__name__} is not a valid POMDP: {name} cannot be traced by JAX ({reason})."
        ) from error
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), result)


def _plain(shapes: Any) -> str:
    """Shapes as people write them: `float32[2]`, or several of these."""
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(shapes)]
    return ", ".join(leaves) or "nothing"


def _visited_states(key: jax.Array, pomdp: POMDP) -> Any:
    """States [_STATES, ...] met by the exploration policy; everything met on the way must be finite."""
    trajectory = rollout(key, pomdp, RandomPolicy(pomdp), num_episodes=64).trajectory
    codes = jax.jit(jax.vmap(jax.vmap(pomdp.encode_observation)))(trajectory.observations)
    met = {"sample_transition": trajectory.states, "encode_observation": codes, "reward": trajectory.rewards}
    for name, values in met.items():
        finite = all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(values))
        _say(finite, pomdp, f"{name} returns values that are not finite")
    episode = np.arange(64)
    lengths = np.asarray(trajectory.lengths)
    times = (np.linspace(0, 1, 64) * lengths).astype(int)  # from the first state of one episode to the last of another
    ended = np.argsort(~np.asarray(trajectory.terminated), kind="stable")[: _STATES // 2]
    spread = np.linspace(0, 63, _STATES - _STATES // 2).astype(int)
    rows = np.concatenate([episode[ended], episode[spread]])
    columns = np.concatenate([lengths[ended], times[spread]])
    return jax.tree.map(lambda leaf: leaf[rows, columns], trajectory.states)


def _check_exploration(key: jax.Array, pomdp: POMDP) -> None:
    actions = np.asarray(jax.jit(jax.vmap(pomdp.sample_exploration))(jax.random.split(key, _DRAWS)))
    strays = actions[(actions < 0) | (actions >= pomdp.num_actions)]
    told = f"sample_exploration returned {strays[:1]} where actions lie below {pomdp.num_actions}"
    _say(strays.size == 0, pomdp, told)


def _check_terminal(pomdp: POMDP, states: Any) -> None:
    """Terminal states do not change and give no reward, whatever the action."""
    terminal = jax.vmap(pomdp.is_terminal)(states)

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    @partial(jax.vmap, in_axes=(None, 0))
    def one(state, action):
        moved = pomdp.sample_transition(jax.random.key(1), state, action)
        same = [jnp.all(a == b) for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(state), strict=True)]
        return jnp.all(jnp.stack(same)), pomdp.reward(state, action, state) == 0

    stays, free = one(states, jnp.arange(pomdp.num_actions))
    for holds, what in ((stays, "moves under"), (free, "earns a reward by")):
        wrong = np.argwhere(np.asarray(~holds & terminal[:, None]))
        _say(wrong.size == 0, pomdp, f"a terminal state {what} action {wrong[0, 1] if wrong.size else ''}")


def _check_finite(key: jax.Array, pomdp: Any) -> None:
    """Samples of s_0 and s_{t+1} against the probabilities that the exact filter uses."""
    marked = np.asarray(pomdp.terminal_states())
    told = np.asarray(jax.jit(jax.vmap(pomdp.is_terminal))(jnp.arange(pomdp.num_states)))
    _say(np.array_equal(marked, told), pomdp, "terminal_states and is_terminal disagree")
    key_start, key_pick, key_draw = jax.random.split(key, 3)
    starts = jax.jit(jax.vmap(pomdp.sample_initial))(jax.random.split(key_start, _DRAWS))
    _compare(pomdp, "sample_initial", "initial_distribution", starts, pomdp.initial_distribution())
    picked = jax.random.choice(key_pick, pomdp.num_states, (_STATES,), replace=pomdp.num_states < _STATES)

    @jax.jit
    @jax.vmap
    def one(key_move, state, action):
        keys = jax.random.split(key_move, _DRAWS)
        moved = jax.vmap(lambda k: pomdp.sample_transition(k, state, action))(keys)
        return moved, pomdp.predict(jax.nn.one_hot(state, pomdp.num_states), action)

    keys = jax.random.split(fast_key(key_draw), _STATES)
    samples, predictions = one(keys, picked, jnp.arange(_STATES) % pomdp.num_actions)
    for moved, predicted in zip(samples, predictions, strict=True):
        _compare(pomdp, "sample_transition", "predict", moved, predicted)


def _compare(pomdp: POMDP, sampler: str, density: str, samples: jax.Array, probabilities: jax.Array) -> None:
    """Frequencies against probabilities, cell by cell, with a tolerance in standard deviations."""
    chance, drawn = np.asarray(probabilities, dtype=np.float64), np.asarray(samples)
    proper = bool(np.all(chance >= 0)) and abs(chance.sum() - 1) < 1e-4
    _say(proper, pomdp, f"{density} does not give probabilities that sum to 1 but to {chance.sum():.6g}")
    strays = drawn[(drawn < 0) | (drawn >= len(chance))]
    _say(strays.size == 0, pomdp, f"{sampler} returns {strays[:1]} where states lie below {len(chance)}")
    chance = np.clip(chance, 0, 1)
    frequency = np.bincount(drawn, minlength=len(chance)) / len(drawn)
    allowed = _SIGMAS * np.sqrt(chance * (1 - chance) / len(drawn)) + np.where(chance > 0, _SLACK, 0)
    worst = int(np.argmax(np.abs(frequency - chance) - allowed))
    told = f"with frequency {frequency[worst]:.4g} where {density} says {chance[worst]:.4g}"
    holds = abs(frequency[worst] - chance[worst]) <= allowed[worst]
    _say(holds, pomdp, f"{sampler} returns {worst} {told}")


class _Draw(NamedTuple):
    """Observations of one of two states, chosen by a fair coin."""

    second: Bool[Array, "*draws"]  # the coin y: was the second state observed?
    logs: Float[Array, "*draws 2"]  # the density of what was observed, given each state
    own: Float[Array, "*draws"]  # that of the state it came from
    code: Float[Array, "*draws observation"]  # what was observed, as a network reads it


def _check_density(
    key: jax.Array, pomdp: POMDP, name: str, density: Callable[..., Any], states: Any, *, first: bool
) -> None:
    """Is the density what `sample_observation` samples from? Decided on pairs of states, by `_is_calibrated`."""
    others = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), states)

    def judge(pair):
        key_pair, one, other, number = pair
        action = None if first else number

        def draw(key_draw):
            return _observe_either(key_draw, pomdp, density, one, other, action)

        draws = jax.lax.map(draw, jax.random.split(key_pair, _DRAWS), batch_size=500)
        return jnp.all(jnp.isfinite(draws.own)), _is_calibrated(draws)

    keys = jax.random.split(fast_key(key), _STATES)
    pairs = keys, states, others, jnp.arange(_STATES) % pomdp.num_actions
    possible, calibrated = jax.jit(lambda pairs: jax.lax.map(judge, pairs))(pairs)
    when = " before the first action" if first else ""
    _say(bool(possible.all()), pomdp, f"{name} is not finite at an observation that was just sampled{when}")
    _say(bool(calibrated.all()), pomdp, f"{name} is not the density that sample_observation samples from{when}")


def _observe_either(
    key: jax.Array, pomdp: POMDP, density: Callable[..., Any], one: Any, other: Any, action: Any
) -> _Draw:
    key_coin, key_see = jax.random.split(key)
    coin = jax.random.bernoulli(key_coin)
    source = jax.tree.map(lambda a, b: jnp.where(coin, b, a), one, other)
    seen = pomdp.sample_observation(key_see, source, action)
    logs = jnp.stack([density(seen, one, action), density(seen, other, action)])
    return _Draw(coin, logs, jnp.where(coin, logs[1], logs[0]), pomdp.encode_observation(seen))


def _is_calibrated(draws: _Draw) -> Bool[Array, ""]:
    """Does the density tell how often an observation comes from the second of two states?

    An observation comes from the second state with the posterior probability r given by the density. So y − r, with y
    the coin, must average to zero, also when weighted by r − 1/2 or by the observation. This needs neither a
    normalised density nor a grid, and a filter relies on exactly this. According to the density the variance of y is
    r (1 − r); a rare observation that was not drawn does not hide it.
    """
    codes = draws.code
    posterior = jax.nn.softmax(draws.logs, axis=1)[:, 1]
    scaled = jnp.tanh((codes - codes.mean(axis=0)) / (codes.std(axis=0) + 1e-6))
    weights = jnp.concatenate([jnp.ones((1, _DRAWS)), posterior[None] - 0.5, scaled.T])
    off = jnp.abs(jnp.mean((draws.second - posterior) * weights, axis=1))
    noise = jnp.sqrt(jnp.mean(posterior * (1 - posterior) * weights**2, axis=1) / _DRAWS)
    return jnp.all(off <= _SIGMAS * noise + _SLACK)
