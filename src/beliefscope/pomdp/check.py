"""`check_pomdp`: what to call on a POMDP of one's own before trusting anything measured on it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp.eager import check_facts
from beliefscope.pomdp.interface import POMDP, Finite, ObservationDensity
from beliefscope.pomdp.rollout import RandomPolicy, rollout

_STATES = 16  # visited states looked at closely
_DRAWS = 4000  # samples compared with each density
_SIGMAS = 6.0  # disagreement that chance produces once in a billion comparisons


def check_pomdp(pomdp: POMDP, *, seed: int = 0) -> None:
    """Verify a POMDP by sampling; raise a `ValueError` that says in one sentence what is wrong.

    Looked at: facts, shapes and types; values that are not finite; actions of the exploration policy; that terminal
    states reached stay put and earn nothing; that what is sampled agrees with `log_observation`, and for finite POMDPs
    with `initial_distribution`, `predict` and `likelihood`, each of which must be a distribution.
    """
    require(
        isinstance(pomdp, POMDP),
        rule="a POMDP to check is an instance of the class POMDP",
        received=pomdp,
        advice="pass the POMDP itself",
    )
    _say(is_whole(pomdp.num_actions) and pomdp.num_actions >= 1, pomdp, "num_actions is not a whole number above 0")
    check_facts(pomdp)
    _check_shapes(pomdp)
    key_play, key_explore, key_finite, key_density = jax.random.split(jax.random.key(seed), 4)
    states = _visited_states(key_play, pomdp)
    _check_exploration(key_explore, pomdp)
    _check_terminal(pomdp, states)
    if isinstance(pomdp, Finite):
        _check_finite(key_finite, pomdp)
    if isinstance(pomdp, ObservationDensity):
        _check_density(key_density, pomdp, states)


def _say(holds: bool | np.bool_, pomdp: POMDP, what: str) -> None:
    if not holds:
        raise ValueError(f"{type(pomdp).__name__} is not a valid POMDP: {what}.")


def _check_shapes(pomdp: POMDP) -> None:
    key, action = jax.random.key(0), jnp.asarray(0)
    state = _shape(pomdp, "sample_initial", pomdp.sample_initial, key)
    moved = _shape(pomdp, "sample_transition", pomdp.sample_transition, key, state, action)
    _say(moved == state, pomdp, f"sample_transition returns {moved} where sample_initial returns {state}")
    first = _shape(pomdp, "sample_observation", pomdp.sample_observation, key, state)
    later = _shape(pomdp, "sample_observation", pomdp.sample_observation, key, state, action)
    _say(first == later, pomdp, f"sample_observation returns {first} without an action and {later} with one")
    code = _shape(pomdp, "encode_observation", pomdp.encode_observation, first)
    size = getattr(code, "shape", None)
    _say(
        size == (pomdp.observation_size,),
        pomdp,
        f"encode_observation returns the shape {size} where observation_size is {pomdp.observation_size}",
    )
    for name, result, kind in (
        ("reward", _shape(pomdp, "reward", pomdp.reward, state, action, state, first), jnp.floating),
        ("is_terminal", _shape(pomdp, "is_terminal", pomdp.is_terminal, state), jnp.bool_),
        ("sample_exploration", _shape(pomdp, "sample_exploration", pomdp.sample_exploration, key), jnp.integer),
    ):
        scalar = getattr(result, "shape", None) == () and jnp.issubdtype(result.dtype, kind)
        _say(scalar, pomdp, f"{name} returns {result} where a scalar of type {kind.__name__} is needed")
    features = _shape(pomdp, "state_features", pomdp.state_features, state)
    _say(getattr(features, "ndim", 0) == 1, pomdp, f"state_features returns {features} where a vector is needed")


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


def _visited_states(key: jax.Array, pomdp: POMDP) -> Any:
    """States [_STATES, ...] met by the exploration policy; everything met on the way must be finite."""
    trajectory = rollout(key, pomdp, RandomPolicy(pomdp), num_episodes=64).trajectory
    _say(bool(jnp.all(jnp.isfinite(trajectory.rewards))), pomdp, "reward returns values that are not finite")
    codes = jax.vmap(jax.vmap(pomdp.encode_observation))(trajectory.observations)
    _say(bool(jnp.all(jnp.isfinite(codes))), pomdp, "encode_observation returns values that are not finite")
    episode = jnp.arange(64)
    times = jnp.linspace(0, 1, 64) * trajectory.lengths  # from the first state of one episode to the last of another
    met = jax.tree.map(lambda leaf: leaf[episode, times.astype(int)], trajectory.states)
    ends = jax.tree.map(lambda leaf: leaf[episode, trajectory.lengths], trajectory.states)
    order = jnp.argsort(~trajectory.terminated)[: _STATES // 2]  # states that ended an episode first
    spread = jnp.linspace(0, 63, _STATES - _STATES // 2).astype(int)
    return jax.tree.map(lambda a, b: jnp.concatenate([a[order], b[spread]]), ends, met)


def _check_exploration(key: jax.Array, pomdp: POMDP) -> None:
    actions = np.asarray(jax.jit(jax.vmap(pomdp.sample_exploration))(jax.random.split(key, _DRAWS)))
    strays = actions[(actions < 0) | (actions >= pomdp.num_actions)]
    _say(
        strays.size == 0,
        pomdp,
        f"sample_exploration returned {strays[:1]} where actions lie below {pomdp.num_actions}",
    )


def _check_terminal(pomdp: POMDP, states: Any) -> None:
    """Terminal states stay where they are and earn nothing, whatever the action."""
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
    """Samples of s_0, s_{t+1} and o_t against the probabilities that the exact filter uses."""
    marked = np.asarray(pomdp.terminal_states())
    told = np.asarray(jax.vmap(pomdp.is_terminal)(jnp.arange(pomdp.num_states)))
    _say(np.array_equal(marked, told), pomdp, "terminal_states and is_terminal disagree")
    key_start, key_pick, key_draw = jax.random.split(key, 3)
    starts = jax.jit(jax.vmap(pomdp.sample_initial))(jax.random.split(key_start, _DRAWS))
    _compare(pomdp, "sample_initial", "initial_distribution", starts, pomdp.initial_distribution())
    picked = jax.random.choice(key_pick, pomdp.num_states, (_STATES,), replace=pomdp.num_states < _STATES)

    @jax.jit
    @jax.vmap
    def one(key_state, state, action):
        key_move, key_see = jax.random.split(key_state)
        moved = jax.vmap(lambda k: pomdp.sample_transition(k, state, action))(jax.random.split(key_move, _DRAWS))
        seen = jax.vmap(lambda k: pomdp.sample_observation(k, state, action))(jax.random.split(key_see, _DRAWS))
        predicted = pomdp.predict(jax.nn.one_hot(state, pomdp.num_states), action)
        likely = jax.vmap(lambda o: pomdp.likelihood(o, action)[state])(jnp.arange(pomdp.observation_size))
        return moved, predicted, seen, likely

    actions = jnp.arange(_STATES) % pomdp.num_actions
    for moved, predicted, seen, likely in zip(
        *one(jax.random.split(fast_key(key_draw), _STATES), picked, actions), strict=True
    ):
        _compare(pomdp, "sample_transition", "predict", moved, predicted)
        _compare(pomdp, "sample_observation", "likelihood", seen, likely)


def _compare(pomdp: POMDP, sampler: str, density: str, samples: jax.Array, probabilities: jax.Array) -> None:
    """Frequencies against probabilities, cell by cell, at so many standard deviations."""
    chance = np.asarray(probabilities, dtype=np.float64)
    proper = bool(np.all(chance >= 0)) and abs(chance.sum() - 1) < 1e-4
    _say(proper, pomdp, f"{density} does not give probabilities that sum to 1 but to {chance.sum():.6g}")
    frequency = np.bincount(np.asarray(samples), minlength=len(chance)) / len(samples)
    _say(len(frequency) == len(chance), pomdp, f"{sampler} returns an index beyond those of {density}")
    allowed = _SIGMAS * np.sqrt(chance * (1 - chance) / len(samples)) + np.where(chance > 0, 6 / len(samples), 0)
    worst = int(np.argmax(np.abs(frequency - chance) - allowed))
    _say(
        abs(frequency[worst] - chance[worst]) <= allowed[worst] + 1e-6,
        pomdp,
        f"{sampler} returns {worst} with frequency {frequency[worst]:.4g} where {density} says {chance[worst]:.4g}",
    )


def _check_density(key: jax.Array, pomdp: Any, states: Any) -> None:
    """Is `log_observation` what `sample_observation` samples from? Decided on pairs of states.

    An observation of one of two states, chosen by a fair coin, comes from the second with the posterior probability r
    given by the density; so y − r, with y the coin, must average to zero, also when weighted by r − 1/2. That needs
    neither a normalised density nor a grid, and it is exactly what a filter relies on.
    """
    first, second = (jax.tree.map(lambda leaf, s=shift: jnp.roll(leaf, s, axis=0), states) for shift in (0, 1))

    @jax.jit
    @jax.vmap
    def judge(key_pair, one, other, action):
        def draw(key_draw):
            key_coin, key_see = jax.random.split(key_draw)
            coin = jax.random.bernoulli(key_coin)
            source = jax.tree.map(lambda a, b: jnp.where(coin, b, a), one, other)
            seen = pomdp.sample_observation(key_see, source, action)
            logs = pomdp.log_observation(seen, one, action), pomdp.log_observation(seen, other, action)
            return coin, jnp.stack(logs), jnp.where(coin, logs[1], logs[0])

        coins, logs, own = jax.vmap(draw)(jax.random.split(key_pair, _DRAWS))
        posterior = jax.nn.softmax(logs, axis=1)[:, 1]
        excess = coins - posterior
        scores = jnp.stack([excess, excess * (posterior - 0.5)])
        noise = jnp.std(scores, axis=1) / _DRAWS**0.5
        return jnp.all(jnp.isfinite(own)), jnp.mean(scores, axis=1) / jnp.maximum(noise, 1e-9)

    keys = jax.random.split(fast_key(key), _STATES)
    actions = jnp.arange(_STATES) % pomdp.num_actions
    possible, scores = judge(keys, first, second, actions)
    _say(bool(jnp.all(possible)), pomdp, "log_observation is not finite at an observation that was just sampled")
    _say(
        bool(jnp.all(jnp.abs(scores) < _SIGMAS)),
        pomdp,
        f"log_observation is not the density that sample_observation samples from ({jnp.abs(scores).max():.1f} "
        "standard deviations apart)",
    )
