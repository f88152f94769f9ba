"""Recorded episodes of any agent: from an `.npz` or Parquet file to arrays that an audit reads, checked on the way.

An `.npz` file has `observations`, `actions`, `memory` (or parts as `memory.h`, `memory.c`, …) and, where known,
`rewards` and `states`; each is either padded, [N, T, …] with `lengths` [N], or a row for each step, [S, …] with
`episode_ends` [S], true at the last step of each episode. A Parquet file has a row for each step in order, with the
columns `episode`, `observation`, `action`, `memory` (lists, or `memory.h`, …), and where known `reward` and `state`.

A row is a step at which the agent acted: o_t, then the memory after it, then a_t and the r_t that followed.
Observations are as the POMDP gives them or as the environments of `beliefscope.gymnasium` show them (one-hot codes).
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray, PyTree

from beliefscope.auditing.adapters import WHOLE, Parts
from beliefscope.auditing.histories import Episodes, some_episodes
from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.pomdp import NO_OBSERVATION, POMDP, Finite
from beliefscope.store.files import read_foreign_arrays

_AT_ONCE = 500  # episodes that are checked together
_NEEDED = ("observations", "actions")


class Log(NamedTuple):
    """Recorded episodes."""

    episodes: Episodes
    sees_actions: bool | None = None  # was the agent shown its actions, where that is known?
    name: str = "log"


def read_log(path: str | Path, pomdp: POMDP) -> Log:
    """From a file; one sentence for what cannot be read."""
    path = Path(path)
    require(
        path.is_file() and path.suffix in (".npz", ".parquet"),
        rule="a log is an .npz or a .parquet file",
        received=str(path),
        advice="record trajectories, since agents' files are not loaded (SECURITY.md)"
        if path.is_file()
        else "correct the path",
    )
    arrays = read_foreign_arrays(path) if path.suffix == ".npz" else _read_parquet(path)
    return log_from_arrays(arrays, pomdp, name=path.name)


def log_from_arrays(arrays: dict[str, Any], pomdp: POMDP, *, name: str = "log") -> Log:
    """From arrays by name, padded or a row for each step."""
    found = {key: np.asarray(value) for key, value in arrays.items()}
    memories = [key for key in found if key == WHOLE or key.startswith(f"{WHOLE}.")]
    lacking = [key for key in _NEEDED if key not in found] + ([] if memories else [WHOLE])
    require(
        not lacking and ("lengths" in found) != ("episode_ends" in found),
        rule="a log has observations, actions, memory, and either lengths or episode_ends",
        received=f"{sorted(found)}" + (f", without {lacking}" if lacking else ""),
        advice="docs/audit.md says what each of them is",
    )
    along = [*_NEEDED, *memories, *(key for key in ("rewards", "states") if key in found)]
    _check_numbers(found, along)
    if "episode_ends" in found:
        found |= _padded({key: found[key] for key in along}, found["episode_ends"])
    _check_shapes(found, along)
    actions, lengths = found["actions"], found["lengths"].astype(np.int64)
    acted = np.arange(actions.shape[1]) < lengths[:, None]
    parts: Parts = {}
    for key in memories:
        with np.errstate(over="ignore"):
            array = found[key].reshape(*actions.shape, -1).astype(np.float32)
        parts[key.removeprefix(f"{WHOLE}.")] = np.where(acted[..., None], array, 0)
        _refuse_first(acted & ~np.isfinite(array).all(axis=-1), f"{key} is made of finite numbers", "NaN or infinity")
    found |= {key: _finite(key, found[key], acted) for key in ("observations", "rewards") if key in found}
    rewards = found["rewards"].astype(np.float64) if "rewards" in found else None
    returns = None if rewards is None else rewards @ pomdp.discount ** np.arange(rewards.shape[1])
    actions = np.where(acted, actions, 0).astype(np.int64)
    wrong = (actions < 0) | (actions >= pomdp.num_actions)
    _refuse_first(wrong, f"an action is an integer from 0 to {pomdp.num_actions - 1}", actions)
    sees = bool(np.all(found["sees_actions"])) if "sees_actions" in found else None
    seen = _observations(found["observations"], acted, pomdp)
    return Log(Episodes(parts, actions, seen, lengths, returns, rewards, found.get("states")), sees, name)


def checked_log(log: Log, pomdp: POMDP, filter: Filter) -> Log:
    """The log, if the POMDP makes all of it possible; else the first step at which it is impossible."""
    for first in range(0, len(log.episodes.lengths), _AT_ONCE):
        flags = _flags(some_episodes(log.episodes, slice(first, first + _AT_ONCE)), filter)
        if flags.any():
            row = int(np.argmax(flags.any(axis=1)))
            _refuse_step(log.episodes, first + row, int(np.argmax(flags[row])))
    return log


def _flags(some: Episodes, filter: Filter) -> Bool[np.ndarray, "n T"]:
    keys = jax.random.split(jax.random.key(0), len(some.lengths))
    observations = jax.tree.map(jnp.asarray, some.observations)
    flags = np.array(_impossible(keys, filter, observations, jnp.asarray(some.actions)))
    return flags & (np.arange(flags.shape[1]) < some.lengths[:, None])


def _refuse_step(episodes: Episodes, row: int, step: int) -> None:
    seen = jax.tree.map(lambda leaf: np.asarray(leaf)[row, step].tolist(), episodes.observations)
    before = "as the first observation" if step == 0 else f"after action {episodes.actions[row, step - 1]}"
    require(
        False,
        rule="every step of a log is possible in the POMDP",
        received=f"observation {seen} {before} at step {step} of episode {row}",
        advice="look for another POMDP, length or encoding, or for actions and observations that are shifted against "
        "each other",
    )


@eqx.filter_jit
def _impossible(
    keys: Key[Array, " n"], filter: Filter, observations: PyTree, actions: Int[Array, "n T"]
) -> Bool[Array, "n T"]:
    """Has an observation of probability zero been seen up to each step?"""

    def flag(belief: Any) -> Bool[Array, ""]:
        health = jax.tree.leaves(filter.health(belief), is_leaf=lambda node: hasattr(node, "impossible"))
        return jnp.any(jnp.stack([each.impossible for each in health]))

    def one(key: PRNGKeyArray, seen: PyTree, done: Int[Array, " T"]) -> Bool[Array, " T"]:
        first = filter.init(key, jax.tree.map(lambda leaf: leaf[0], seen), terminal=False)

        def step(belief, now):
            time, action, observation = now
            belief = filter.update(jax.random.fold_in(key, time), belief, action, observation, terminal=False)
            return belief, flag(belief)

        later = jax.tree.map(lambda leaf: leaf[1:], seen)
        _, flags = jax.lax.scan(step, first, (jnp.arange(1, len(done)), done[:-1], later))
        return jnp.concatenate([flag(first)[None], flags])

    return jax.vmap(one)(keys, observations, actions)


def _check_numbers(found: dict[str, np.ndarray], along: list[str]) -> None:
    odd = {
        key: f"{array.dtype} {array.shape}"
        for key in (*along, "lengths", "episode_ends")
        if (array := found.get(key, np.zeros(1))).dtype.kind not in "biuf" or array.ndim == 0
    }
    require(
        not odd,
        rule="the arrays of a log hold numbers, with a row for each step or episode",
        received=odd,
        advice="leave out what is not known, and write the rest as numbers",
    )


def _finite(name: str, array: np.ndarray, acted: Bool[np.ndarray, "n T"]) -> np.ndarray:
    """The array with zeros behind the ends of episodes, where anything may stand."""
    rows = array.reshape(*acted.shape, -1)
    _refuse_first(acted & ~np.isfinite(rows).all(axis=-1), f"{name} is made of finite numbers", "NaN or infinity")
    return np.where(acted[..., None], rows, 0).reshape(array.shape)


def _check_shapes(found: dict[str, np.ndarray], along: list[str]) -> None:
    actions, lengths = found["actions"], found["lengths"]
    require(
        actions.ndim == 2
        and lengths.shape == actions.shape[:1]
        and lengths.dtype.kind in "iu"
        and actions.dtype.kind in "iu"
        and all(found[key].shape[:2] == actions.shape for key in along),
        rule="a padded log has whole numbers actions [N, T] and lengths [N], and all else has [N, T, …]",
        received={key: found[key].shape for key in ("lengths", *along)},
        advice="pad episodes to one T and say how long each was",
    )
    require(
        bool(np.all((lengths >= 1) & (lengths <= actions.shape[1]))),
        rule=f"the length of an episode is a whole number from 1 to T = {actions.shape[1]}",
        received=[int(lengths.min()), int(lengths.max())],
        advice="leave empty episodes out",
    )


def _padded(rows: dict[str, np.ndarray], ends: np.ndarray) -> dict[str, np.ndarray]:
    """From a row for each step to [N, T, …]; steps behind the last end are of an unfinished episode, and left out."""
    ends = ends.astype(bool)
    require(
        ends.ndim == 1 and bool(ends.any()) and all(len(array) == len(ends) for array in rows.values()),
        rule="a log with episode_ends has as many rows of each array, and at least one end",
        received={**{key: len(array) for key, array in rows.items()}, "episode_ends": ends.shape},
        advice="mark the last step of each episode",
    )
    lasts = np.flatnonzero(ends)
    lengths = np.diff(lasts, prepend=-1)
    place = np.minimum((lasts - lengths + 1)[:, None] + np.arange(lengths.max()), lasts[:, None])
    return {"lengths": lengths, **{key: array[place] for key, array in rows.items()}}


def _observations(given: np.ndarray, acted: Bool[np.ndarray, "n T"], pomdp: POMDP) -> PyTree:
    """As the POMDP gives them; one-hot codes of a finite one become numbers, a blank code 'nothing seen'."""
    world = jax.eval_shape(lambda key: pomdp.sample_observation(key, pomdp.sample_initial(key)), jax.random.key(0))
    leaves = jax.tree.leaves(world)
    if (
        isinstance(pomdp, Finite)
        and given.ndim == 3
        and given.shape[2] == pomdp.observation_size
        and not leaves[0].shape
    ):
        blank = ~given.any(axis=2)
        given = np.where(blank, NO_OBSERVATION, given.argmax(axis=2))
    if len(leaves) == 1:
        shape = (*acted.shape, *leaves[0].shape)
        require(
            given.shape == shape or given.shape == (*shape, 1),
            rule=f"the observations of this POMDP have the shape {list(shape)}, or are one-hot codes",
            received=given.shape,
            advice="record them as the POMDP or its environment gives them",
        )
        given = given.reshape(shape)
        if leaves[0].dtype.kind in "iu":
            odd = (given != np.floor(given)) | (np.abs(given) >= 2**31)
            _refuse_first(acted & odd, "an observation of this POMDP is a whole number below 2^31", given)
        given = given.astype(leaves[0].dtype)
        return jax.tree.unflatten(jax.tree.structure(world), [given])
    sizes = [int(np.prod(leaf.shape)) for leaf in leaves]
    require(
        given.shape == (*acted.shape, sum(sizes)),
        rule=f"the observations of this POMDP, their parts end to end, have the shape {[*acted.shape, sum(sizes)]}",
        received=given.shape,
        advice="put the parts of each observation side by side",
    )
    parts = np.split(given, np.cumsum(sizes)[:-1], axis=2)
    shaped = [
        part.reshape(*acted.shape, *leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(world), shaped)


def _refuse_first(wrong: Bool[np.ndarray, "n T"], rule: str, received: Any) -> None:
    if not wrong.any():
        return
    row, step = map(int, np.argwhere(wrong)[0])
    value = received if isinstance(received, str) else received[row, step].item()
    require(
        False, rule=rule, received=f"{value} at step {step} of episode {row}", advice="look at that step of the log"
    )


_TRY = "import sys, polars; polars.read_parquet(sys.argv[1])"
_COLUMNS = {"observation": "observations", "action": "actions", "reward": "rewards", "state": "states"}


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    import polars

    # An altered file makes Polars panic, or abort the process: another process reads it first.
    tried = subprocess.run([sys.executable, "-c", _TRY, str(path)], capture_output=True, check=False)
    require(
        tried.returncode == 0,
        rule="a .parquet file can be read by Polars",
        received=str(path),
        advice="write it again",
    )
    table = polars.read_parquet(path)
    require(
        "episode" in table.columns,
        rule="a Parquet log has a column 'episode', the same number for each step of an episode",
        received=table.columns,
        advice="number the episodes",
    )
    number = table["episode"].to_numpy()
    ends = np.append(number[1:] != number[:-1], True)
    require(
        int(ends.sum()) == len(np.unique(number)),
        rule="the steps of an episode stand together in a Parquet log",
        received="episodes that come again",
        advice="sort the rows by episode and time",
    )
    names = [name for name in table.columns if name in _COLUMNS or name == WHOLE or name.startswith(f"{WHOLE}.")]
    found = {_COLUMNS.get(name, name): _column(name, table[name]) for name in names}
    return {**found, "episode_ends": ends}


def _column(name: str, column: Any) -> np.ndarray:
    """Numbers, or lists of equal length as [S, m]."""
    try:
        values = column.to_list()
        return np.array(values) if column.dtype.is_nested() else column.to_numpy()
    except ValueError as error:
        raise ValueError(
            f"the lists in a column of a log have one length, but got several in {name!r}; pad them."
        ) from error
