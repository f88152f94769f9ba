"""What a file says as dense arrays, for comparison with arrays written by hand."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from beliefscope.pomdp.pomdp_file.read import parse_tables


class Dense(NamedTuple):
    start: np.ndarray  # [S]
    T: np.ndarray  # [A, S, S']
    O: np.ndarray  # noqa: E741 [A, S', O]
    R: np.ndarray  # [A, S, S', O]
    discount: float
    reward_depends_on_observation: bool


@pytest.fixture(scope="session")
def dense() -> Callable[[str], Dense]:
    return _dense


def _dense(text: str) -> Dense:
    tables = parse_tables(text)
    preamble = tables.preamble
    actions, states, observations = preamble.actions.count, preamble.states.count, preamble.observations.count
    cells = np.indices((actions, states, states, observations)).reshape(4, -1)
    return Dense(
        start=preamble.initial,
        T=tables.moves.toarray().reshape(actions, states, states),
        O=tables.sights.toarray().reshape(actions, states, observations),
        R=tables.rewards.at(tuple(cells)).reshape(actions, states, states, observations),
        discount=preamble.discount,
        reward_depends_on_observation=tables.reward_depends_on_observation,
    )
