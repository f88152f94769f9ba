"""What agents return, as NumPy arrays: actions [N], and the parts of a memory by name, each [N, m]."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from beliefscope.errors import require

WHOLE = "memory"  # the name of a memory that has no parts

Parts = dict[str, np.ndarray]


def to_numpy(given: Any) -> np.ndarray:
    """Any array; PyTorch's are detached and brought to the CPU."""
    for method in ("detach", "cpu"):
        given = getattr(given, method)() if hasattr(given, method) else given
    return np.asarray(given)


def memory_parts(memory: Any, number: int) -> Parts:
    """Every array of a memory by name, a row for each of so many episodes."""
    found = {name or WHOLE: to_numpy(array) for name, array in _leaves(memory, "").items()}
    for name, array in found.items():
        require(
            array.ndim >= 1 and len(array) == number and array.dtype.kind in "fiub",
            rule=f"each part of a memory has a row of numbers for each of the {number} episodes, [{number}, …]",
            received=f"{name}: {array.dtype} of shape {array.shape}",
            advice="put the episodes first; of an LSTM's (layers, N, n) take state.swapaxes(0, 1)",
        )
    require(
        bool(found),
        rule="an agent's memory is an array, or several by name",
        received=memory,
        advice="return the memory after the observation beside the actions",
    )
    return {name: array.reshape(number, -1).astype(np.float32) for name, array in found.items()}


def _leaves(memory: Any, name: str) -> dict[str, Any]:
    if memory is None:
        return {}
    if isinstance(memory, Mapping):
        inside = memory.items()
    elif isinstance(memory, tuple) and hasattr(memory, "_fields"):
        inside = zip(memory._fields, memory, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(memory, tuple | list):
        inside = enumerate(memory)
    else:
        return {name: memory}
    return {
        path: leaf
        for key, value in inside
        for path, leaf in _leaves(value, f"{name}.{key}" if name else str(key)).items()
    }


def chosen_actions(given: Any, number: int, num_actions: int) -> Int[np.ndarray, " n"]:
    """Actions [N] as they are; of numbers for each action [N, A] the greatest."""
    array = to_numpy(given)
    if array.shape == (number, num_actions) and array.dtype.kind == "f":
        return array.argmax(axis=1)
    if array.shape == (number, 1):
        array = array[:, 0]
    require(
        array.shape == (number,) and array.dtype.kind in "iu",
        rule=f"an agent returns {number} whole numbers as actions, or [{number}, {num_actions}] logits or values",
        received=f"{array.dtype} of shape {array.shape}",
        advice="return one action for each episode",
    )
    return array.astype(np.int64)


def joined(parts: Mapping[str, np.ndarray], names: tuple[str, ...] | list[str]) -> Float[np.ndarray, "*n m"]:
    """The named parts side by side."""
    require(
        set(names) <= set(parts),
        rule=f"all agents of an audit have the parts {list(names)} in their memories",
        received=sorted(parts),
        advice="pass agents of one kind, or name parts that all of them have as memory=…",
    )
    return np.concatenate([parts[name] for name in names], axis=-1)


def inputs_of(
    previous_actions: Int[np.ndarray, " n"],
    observations: Float[np.ndarray, "n observation"],
    num_actions: int,
    sees_actions: bool,
) -> Float[np.ndarray, "n inputs"]:
    """o_t, or (one-hot a_{t-1}, zeros at t = 0; o_t) for agents that are shown what they did."""
    if not sees_actions:
        return observations.astype(np.float32)
    codes = np.vstack([np.eye(num_actions, dtype=np.float32), np.zeros((1, num_actions), np.float32)])
    return np.concatenate([codes[previous_actions], observations], axis=1).astype(np.float32)
