"""The exact distribution of the beliefs of small finite POMDPs under a random policy, by enumeration of histories.

`tiger_tables` and `random_tables` build a POMDP; `belief_atoms(tables, horizon)` returns the values that its belief
takes and their probabilities, which are very unequal.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Atoms(NamedTuple):
    """The values that a belief takes and their probabilities."""

    values: Float[np.ndarray, "atoms dy"]
    weights: Float[np.ndarray, " atoms"]


class Tables(NamedTuple):
    """A finite POMDP whose policy draws each action with the same probability."""

    initial: Float[np.ndarray, " states"]
    transition: Float[np.ndarray, "actions states states"]
    observation: Float[np.ndarray, "actions states observations"]  # of the state reached


def tiger_tables(*, doors: int, actions: int, accuracy: float) -> Tables:
    """The first action listens for the tiger; the others open a door, show nothing, and the tiger moves."""
    even = np.full((doors, doors), 1 / doors)
    heard = np.full((doors, doors), (1 - accuracy) / (doors - 1))
    np.fill_diagonal(heard, accuracy)
    moves, sights = [np.eye(doors)] + [even] * (actions - 1), [heard] + [even] * (actions - 1)
    return Tables(even[0], np.stack(moves), np.stack(sights))


def random_tables(seed: int, *, states: int, observations: int, actions: int, resets: bool) -> Tables:
    """Rows drawn from Dirichlet distributions; with `resets` the last action starts the POMDP anew."""
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(states))
    transition = rng.dirichlet(np.full(states, 0.3), size=(actions, states))
    observation = rng.dirichlet(np.full(observations, 0.7), size=(actions, states))
    if resets:
        transition[-1] = initial
    return Tables(initial, transition, observation)


def belief_atoms(tables: Tables, horizon: int) -> Atoms:
    """The exact distribution of the belief after t steps, t drawn uniformly from 1 to `horizon`.

    Beliefs that agree when rounded to six digits are one; the next belief depends on the history by the belief alone.
    """
    num_actions = len(tables.transition)
    now, visited = Atoms(tables.initial[None], np.ones(1)), []
    for _ in range(horizon):
        joint = np.einsum("bs,ast,ato->baot", now.values, tables.transition, tables.observation)
        evidence = joint.sum(axis=3, keepdims=True)
        beliefs = (joint / np.maximum(evidence, 1e-300)).reshape(-1, joint.shape[3])
        weights = (now.weights[:, None, None] * evidence[..., 0] / num_actions).reshape(-1)
        now = _merged(beliefs[weights > 0], weights[weights > 0])
        visited.append(now)
    values = np.concatenate([atoms.values for atoms in visited])
    values, weights = _merged(values, np.concatenate([atoms.weights for atoms in visited]) / horizon)
    return Atoms(values.round(6).astype(np.float32), weights)


def _merged(values: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]) -> Atoms:
    _, first, atom = np.unique(values.round(6), axis=0, return_index=True, return_inverse=True)
    return Atoms(values[first], np.bincount(atom, weights))
