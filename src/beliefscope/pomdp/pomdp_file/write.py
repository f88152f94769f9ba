"""Writes a `TabularPOMDP` as a `.pomdp` file that reads back as the same arrays, bit for bit.

Only what is not zero is written, in the shortest decimals that give the same floats again. The format holds neither a
horizon nor an exploration policy.
"""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float

from beliefscope.errors import require
from beliefscope.pomdp.pomdp_file.scan import Names, PomdpFileError, is_name, make_names
from beliefscope.pomdp.sparse import SparseRows
from beliefscope.pomdp.tabular import TabularPOMDP
from beliefscope.store.files import write_atomic


def format_pomdp(pomdp: TabularPOMDP) -> str:
    """The text of the file."""
    return "".join(f"{line}\n" for line in _lines(pomdp))


def write_pomdp(pomdp: TabularPOMDP, path: str | os.PathLike[str]) -> None:
    """Write the file, whole or not at all."""
    write_atomic(Path(path), format_pomdp(pomdp).encode())


def _lines(pomdp: TabularPOMDP) -> Iterator[str]:
    require(
        isinstance(pomdp, TabularPOMDP),
        rule="a .pomdp file holds a TabularPOMDP",
        received=type(pomdp).__name__,
        advice="give p0, T, R and O as arrays",
    )
    if pomdp.observes_first:
        raise PomdpFileError(
            "a .pomdp file holds no observation before the first action, but this POMDP has one; "
            "give O one matrix for each action"
        )
    states = _checked_names("state", pomdp.num_states, pomdp.state_names)
    actions = _checked_names("action", pomdp.num_actions, pomdp.action_names)
    observations = _checked_names("observation", pomdp.num_observations, pomdp.observation_names)
    yield f"discount: {pomdp.discount!r}"
    yield "values: reward"
    for names in (states, actions, observations):
        yield f"{names.kind}s: {names.count if names.names is None else ' '.join(names.names)}"
    yield f"start: {_start(np.asarray(pomdp.initial), states)}"
    yield from _probabilities("T", pomdp.successors, rows=(actions, states), columns=states)
    yield from _probabilities("O", pomdp.emissions, rows=(actions, states), columns=observations)
    if pomdp.observed_reward is None:
        yield from _rewards_by_transition(pomdp, states, actions)
    else:
        kinds = {"states": states, "actions": actions, "observations": observations}
        yield from _rewards_by_observation(pomdp, pomdp.observed_reward, **kinds)


def _checked_names(kind: str, count: int, names: tuple[str, ...] | None) -> Names:
    for name in names or ():
        if not is_name(name):
            raise PomdpFileError(
                f"a .pomdp file names each {kind} by a letter, then letters, digits, '_' or '-', and by no word of the "
                f"format itself, but got {name!r}; rename it, or give no names"
            )
    return make_names(kind, count, names)


def _start(initial: Float[np.ndarray, " states"], states: Names) -> str:
    if (initial == initial.dtype.type(1 / states.count)).all():
        return "uniform"
    if np.count_nonzero(initial) == 1 and initial.max() == 1:
        return states.label(int(initial.argmax()))
    return " ".join(map(str, initial))


def _probabilities(letter: str, table: SparseRows, *, rows: tuple[Names, Names], columns: Names) -> Iterator[str]:
    actions, states = rows
    for row, column, value in _entries(table):
        action, state = divmod(row, states.count)
        yield f"{letter}: {actions.label(action)} : {states.label(state)} : {columns.label(column)} {value}"


def _rewards_by_transition(pomdp: TabularPOMDP, states: Names, actions: Names) -> Iterator[str]:
    """One line an action, a state or a next state: the first of these that settles the reward."""
    starts = np.asarray(pomdp.successors.start)
    targets = np.asarray(pomdp.successors.column)
    rewards = np.asarray(pomdp.expected_reward)
    words = [str(reward) for reward in rewards]
    for action in range(actions.count):
        bounds = starts[action * states.count : (action + 1) * states.count + 1].tolist()
        name = actions.label(action)
        if _is_constant(rewards[bounds[0] : bounds[-1]]):
            yield from _reward(f"{name} : * : * : *", words[bounds[0]])
            continue
        for state, (first, last) in enumerate(pairwise(bounds)):
            row = f"{name} : {states.label(state)}"
            if _is_constant(rewards[first:last]):
                yield from _reward(f"{row} : * : *", words[first])
                continue
            for entry in range(first, last):
                yield from _reward(f"{row} : {states.label(int(targets[entry]))} : *", words[entry])


def _rewards_by_observation(
    pomdp: TabularPOMDP, rewards: SparseRows, *, states: Names, actions: Names, observations: Names
) -> Iterator[str]:
    # A first line that names an observation keeps a reader from dropping the dependence where all rewards are zero.
    yield f"R: * : * : * : {observations.label(0)} 0.0"
    rows, targets = np.asarray(pomdp.successors.row), np.asarray(pomdp.successors.column)
    for entry, observation, value in _entries(rewards):
        action, state = divmod(int(rows[entry]), states.count)
        move = f"{actions.label(action)} : {states.label(state)} : {states.label(int(targets[entry]))}"
        yield f"R: {move} : {observations.label(observation)} {value}"


def _reward(cells: str, value: str) -> Iterator[str]:
    if float(value) != 0:
        yield f"R: {cells} {value}"


def _is_constant(values: Float[np.ndarray, " entries"]) -> bool:
    return bool((values == values[0]).all())


def _entries(table: SparseRows) -> Iterator[tuple[int, int, str]]:
    """Row, column and shortest exact decimals of each entry."""
    count = int(table.start[-1])
    rows, columns = np.asarray(table.row)[:count].tolist(), np.asarray(table.column)[:count].tolist()
    return zip(rows, columns, map(str, np.asarray(table.value)[:count]), strict=True)
