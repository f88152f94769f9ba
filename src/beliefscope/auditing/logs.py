"""Recorded episodes of any agent: from an `.npz` or Parquet file to arrays that an audit reads, checked on the way.

An `.npz` file has `observations`, `actions`, `memory` (or parts as `memory.h`, `memory.c`, …) and, where known,
`rewards` and `states`; each is either padded, [N, T, …] with `lengths` [N], or a row for each step, [S, …] with
`episode_ends` [S], true at the last step of each episode. A Parquet file has a row for each step in order, with the
columns `episode`, `observation`, `action`, `memory` (lists, or `memory.h`, …), and where known `reward` and `state`.

A row is a step at which the agent acted: o_t, then the memory after it, then a_t and the r_t that followed.
Observations are as the POMDP gives them, the parts of each end to end, or as the environments of
`beliefscope.gymnasium` show them (one-hot codes).
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, PyTree

from beliefscope.auditing.adapters import WHOLE, Parts
from beliefscope.auditing.histories import Episodes
from beliefscope.belief import Filter
from beliefscope.errors import require
from beliefscope.measurement.logged import check_possible
from beliefscope.measurement.written_observations import as_the_pomdp_gives_them, shape_of_observations
from beliefscope.pomdp import POMDP
from beliefscope.store.files import read_foreign_arrays

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
    """The log, if all of it is possible in the POMDP."""
    episodes = log.episodes
    check_possible(jax.random.key(0), pomdp, filter, episodes.actions, episodes.observations, episodes.lengths)
    return log


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
        bool(np.all((lengths >= 1) & (lengths <= actions.shape[1]))) and lengths.size > 0,
        rule=f"the length of an episode is a whole number from 1 to T = {actions.shape[1]}",
        received=[int(lengths.min()), int(lengths.max())] if lengths.size else "no episodes",
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
    """As the POMDP gives them; the parts of each may stand end to end."""
    leaves, structure = jax.tree.flatten(shape_of_observations(pomdp))
    sizes = [int(np.prod(leaf.shape)) for leaf in leaves]
    is_code = len(leaves) == 1 and given.shape == (*acted.shape, pomdp.observation_size)
    if given.shape == (*acted.shape, sum(sizes)) and not is_code:
        parts = np.split(given, np.cumsum(sizes)[:-1], axis=2)
        shaped = [part.reshape(*acted.shape, *leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        given = jax.tree.unflatten(structure, shaped)
    rule = "a log has observations as the POMDP gives them, their parts end to end, or as its environment shows them"
    return as_the_pomdp_gives_them(pomdp, given, acted, rule)


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
