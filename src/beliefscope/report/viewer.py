"""Stored traces as the data of the belief viewer, `assets/viewer.js`: small enough to stand within a page.

`viewer_data(traces)` takes traces of agents, with the arrays of `beliefscope.measurement.greedy_episodes`, and gives

    {"environments": [{"name", "world", "traces": [{"cell", "seed", "episode", "lengths", "arrays"}]}]}

ready for `json.dumps`. A `world` says what there is to draw: `kind` is "maze", "hike", or by the belief's form "table"
(probabilities of states), "cloud" (particles) or "normal" (a Gaussian). The `arrays` have the steps of the first
episode, then those of the second, and nothing after an episode's end:

    actions, values, observations, states, memory    as in the trace, less the irrelevant variables
    returns     [S]             the rewards so far, that of the step included
    belief      [S, states]     or x, y [S, n], and facing [S, n] where hikers face somewhere
    decoded     [S, states]     or [S, cells], with cell_x, cell_y [cells] and cell_facing [cells, 4]
                                states of one number have no y and no cell_y
    normal      [S, d, 3]       of each variable that a Kalman filter follows: mean, standard deviation, true value

Each is packed: base64 of zlib of whole numbers, 0 … `top` for `low` … `high` in equal steps and top + 1 for what is not
finite, of one byte or, where top is beyond 254, of two; actions and the like are to be rounded. Where `root` holds the
numbers are square roots, so that small probabilities stay apart.
"""

import base64
import math
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from beliefscope.paper import TOP, altitude, turned_move

POINTS = 12_800  # particles of a trace, over all its steps: a cloud needs no more, and a page of traces stays small
GRID = 60  # points of the altitude map along each side
FINE, PLAIN, COARSE, SHADE = 65534, 254, 126, 62  # steps from the lowest to the highest: no more than the eye needs

Arrays = dict[str, np.ndarray]


class StoredTrace(NamedTuple):
    """A trace of one checkpoint, and whose it is; `pomdp` is the POMDP's description in the run's `spec.json`."""

    environment: str
    cell: str
    seed: int
    episode: int | str  # after so many episodes of training, or in words
    pomdp: dict[str, Any]
    arrays: Arrays


def viewer_data(traces: Iterable[StoredTrace]) -> dict[str, Any]:
    """The environments in the order of their first traces, each with its traces in the given order."""
    environments: dict[str, dict[str, Any]] = {}
    for trace in traces:
        if trace.environment not in environments:
            environments[trace.environment] = {"name": trace.environment, "world": _world(trace), "traces": []}
        environments[trace.environment]["traces"].append(
            {
                "cell": trace.cell,
                "seed": trace.seed,
                "episode": trace.episode,
                "lengths": [int(length) for length in trace.arrays["lengths"]],
                "arrays": _packed_arrays(trace),
            }
        )
    return {"environments": list(environments.values())}


def packed(array: Shaped[np.ndarray, "*shape"], *, top: int = PLAIN, root: bool = False) -> dict[str, Any]:
    """The array within half a step of (high − low) / top, or its square root where `root` holds."""
    numbers = np.asarray(array, np.float64)
    numbers = np.sqrt(numbers) if root else numbers
    finite = np.isfinite(numbers)
    low, high = (float(numbers[finite].min()), float(numbers[finite].max())) if finite.any() else (0.0, 0.0)
    steps = (numbers - low) * (top / (high - low) if high > low else 0.0)
    codes = np.where(finite, np.round(np.nan_to_num(steps)), top + 1).astype("<u1" if top < 255 else "<u2")
    data = base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()
    return {"top": top, "root": root, "low": low, "high": high, "shape": list(codes.shape), "data": data}


def _world(trace: StoredTrace) -> dict[str, Any]:
    inner, arrays = _relevant(trace.pomdp), trace.arrays
    if inner["class"] == "TMaze":
        return {"kind": "maze", "length": inner["length"]}
    if inner["class"] == "MountainHike":
        return _mountain(inner)
    actions = _names(inner, "action", arrays["values"].shape[-1])
    belief = arrays.get("belief", arrays.get("belief.relevant"))
    assert belief is not None, "a trace has a belief"
    if belief.ndim == 4:
        return {"kind": "cloud", "actions": actions}
    if not {"decoded", "decoded.relevant"} & arrays.keys():
        return {"kind": "normal", "actions": actions}
    seen = arrays["observations"].shape[-1] - _num_irrelevant(trace.pomdp)
    return {
        "kind": "table",
        "actions": actions,
        "states": _names(inner, "state", belief.shape[-1]),
        "observations": _names(inner, "observation", seen),
    }


def _mountain(pomdp: dict[str, Any]) -> dict[str, Any]:
    """The altitude in rows from south to north, and the steps of each orientation's actions."""
    side = np.linspace(-1.0, 1.0, GRID)
    x, y = np.meshgrid(side, side)
    moves = [[turned_move(facing, action) for action in range(4)] for facing in range(4)]
    return {
        "kind": "hike",
        "varying": pomdp["varying"],
        "goal": [*TOP, pomdp["goal_radius"]],
        "altitude": packed(altitude(x, y)),
        "moves": [[[round(float(part), 3) for part in move] for move in of_facing] for of_facing in moves],
    }


def _relevant(pomdp: dict[str, Any]) -> dict[str, Any]:
    return pomdp["pomdp"] if pomdp["class"] == "Irrelevant" else pomdp


def _num_irrelevant(pomdp: dict[str, Any]) -> int:
    return pomdp["dimensions"] if pomdp["class"] == "Irrelevant" else 0


def _names(pomdp: dict[str, Any], what: str, number: int) -> list[str]:
    return pomdp.get(f"{what}_names") or [f"{what} {index}" for index in range(number)]


def _packed_arrays(trace: StoredTrace) -> dict[str, dict[str, Any]]:
    lengths = trace.arrays["lengths"]
    steps = {
        name: np.concatenate([episode[:length] for episode, length in zip(array, lengths, strict=True)])
        for name, array in trace.arrays.items()
        if name != "lengths" and not name.startswith("decoded_cells")
    }
    irrelevant = _num_irrelevant(trace.pomdp)
    ends = np.cumsum(lengths)
    gains = np.split(steps["rewards"].astype(np.float64), ends[:-1])
    exact = {
        "actions": steps["actions"],
        "values": steps["values"],
        "returns": np.concatenate([np.cumsum(gain) for gain in gains]),
        "observations": _without_last(steps["observations"], irrelevant),
        "states": _without_last(steps["states"], irrelevant),
    }
    return {
        **{name: packed(array, top=FINE) for name, array in exact.items()},
        "memory": packed(steps["memory"], top=SHADE),
        **_beliefs(steps, trace.arrays, faces=bool(_relevant(trace.pomdp).get("varying"))),
    }


def _without_last(array: Float[np.ndarray, "steps n"], number: int) -> Float[np.ndarray, "steps some"]:
    return array[:, : array.shape[1] - number]


def _beliefs(steps: Arrays, arrays: Arrays, *, faces: bool) -> dict[str, dict[str, Any]]:
    """What is believed and what is decoded, of a product the relevant part beside the irrelevant one."""
    found: dict[str, dict[str, Any]] = {}
    for part in [name.removeprefix("belief") for name in steps if name.startswith("belief")]:
        belief, decoded = steps[f"belief{part}"], steps.get(f"decoded{part}")
        if decoded is None:
            found["normal"] = packed(_normal(belief, steps["states"]), top=FINE)
        elif part != ".irrelevant":
            found["decoded"] = packed(decoded, root=True)
            cells = arrays.get(f"decoded_cells{part}")
            found |= {"belief": packed(belief, root=True)} if cells is None else _cloud(belief, cells, faces=faces)
    return found


def _normal(
    features: Float[np.ndarray, "steps features"], states: Float[np.ndarray, "steps n"]
) -> Float[np.ndarray, "steps d 3"]:
    """Features are a mean and a covariance; the variables are the last of the state."""
    size = (math.isqrt(1 + 4 * features.shape[1]) - 1) // 2
    variance = np.maximum(features[:, size :: size + 1].astype(np.float64), 0)
    return np.stack([features[:, :size], np.sqrt(variance), states[:, states.shape[1] - size :]], axis=-1)


def _cloud(
    particles: Float[np.ndarray, "steps set d"], centres: Float[np.ndarray, "cells d"], *, faces: bool
) -> dict[str, dict[str, Any]]:
    """A trace's particles lie in no order, so that the first ones stand for all."""
    few = particles[:, : max(1, POINTS // max(1, len(particles)))]
    found = {}
    for column, name in zip(range(centres.shape[1]), "xy", strict=False):
        found |= {name: packed(few[..., column], top=COARSE), f"cell_{name}": packed(centres[:, column])}
    if faces:
        found["facing"] = packed(_facing(few).argmax(axis=-1))
        found["cell_facing"] = packed(_facing(centres))
    return found


def _facing(features: Float[np.ndarray, "*set d"]) -> Float[np.ndarray, "*set 4"]:
    """How much of each of the four orientations, which a particle has as four numbers or as one."""
    if features.shape[-1] == 6:
        return features[..., 2:].astype(np.float64)
    return np.eye(4)[np.clip(np.round(features[..., 2]), 0, 3).astype(int)]
