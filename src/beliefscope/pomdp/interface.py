"""What a POMDP is: an Equinox module whose methods describe one episode, one step.

A POMDP P = (S, A, O, p0, T, R, O, γ) is written with the three samplers `sample_initial`, `sample_transition` and
`sample_observation`, the functions `reward` and `is_terminal`, and the facts `num_actions`, `observation_size`,
`discount` and `horizon`. The caller does batching, time and compilation: `jax.vmap`, `jax.lax.scan`, `jax.jit`.

States and observations are pytrees of arrays; an action is an integer below `num_actions`. Two arguments exist only for
POMDPs that are more general than the paper's, and all others may ignore them: the action that led to the observed state
(`None` for the first observation, which no action precedes) and the observation that a reward may depend on.

Filters need further methods, called capabilities: `ObservationDensity` for particles, `Finite` for exact beliefs.

At the end are the checks of a POMDP's facts, actions and observations. They run in Python, before JAX traces a call.
"""

import abc
import functools
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree, Real

from beliefscope.errors import is_real, is_whole, require

State = PyTree[Any]
Observation = PyTree[Any]
Action = Int[ArrayLike, ""]

NO_ACTION = -1  # the "previous action" a policy sees at the first step: its one-hot code is all zeros
NO_OBSERVATION = -1  # the first observation of a finite POMDP that shows nothing before the first action


class POMDP(eqx.Module):
    """One episode, one step of a partially observable Markov decision process."""

    num_actions: eqx.AbstractVar[int]
    observation_size: eqx.AbstractVar[int]  # length of `encode_observation`'s vector
    discount: eqx.AbstractVar[float]  # γ
    horizon: eqx.AbstractVar[int]  # H, the number of actions after which an episode is cut

    @abc.abstractmethod
    def sample_initial(self, key: PRNGKeyArray) -> State:
        """s_0 ~ p0."""

    @abc.abstractmethod
    def sample_transition(self, key: PRNGKeyArray, state: State, action: Action) -> State:
        """s_{t+1} ~ T(· | s_t, a_t); a terminal state does not change."""

    @abc.abstractmethod
    def sample_observation(self, key: PRNGKeyArray, state: State, action: Action | None = None) -> Observation:
        """o_t ~ O(· | s_t), `action` being the a_{t-1} that led to `state`, or None at t = 0."""

    @abc.abstractmethod
    def reward(
        self, state: State, action: Action, next_state: State, observation: Observation | None = None
    ) -> Float[Array, ""]:
        """R(s_t, a_t, s_{t+1}); if it also depends on o_{t+1} and that is None, its mean over o_{t+1}."""

    @abc.abstractmethod
    def is_terminal(self, state: State) -> Bool[Array, ""]:
        """Is s in the set F of terminal (absorbing, zero-reward) states?"""

    def sample_exploration(self, key: PRNGKeyArray) -> Int[Array, ""]:
        """a ~ E(A), the exploration policy: uniform unless overridden."""
        return jax.random.randint(key, (), 0, self.num_actions)

    def encode_observation(self, observation: Observation) -> Float[Array, " observation_size"]:
        """The vector that a network reads: the observation itself unless overridden."""
        return observation

    def state_features(self, state: State) -> Float[Array, " features"]:
        """The vector that represents a state in a set of particles: its leaves end to end unless overridden."""
        leaves = [jnp.ravel(leaf).astype(float) for leaf in jax.tree.leaves(state)]
        return jnp.concatenate(leaves)


@runtime_checkable
class ObservationDensity(Protocol):
    """The capability that a particle filter needs."""

    def log_observation(self, observation: Observation, state: State, action: Action | None = None) -> Real[Array, ""]:
        """log O(o_t | s_t), up to a constant that is the same for every state."""
        ...


@runtime_checkable
class Finite(Protocol):
    """The capability that the exact filter needs: states are the integers below `num_states`."""

    num_states: int

    def initial_distribution(self) -> Float[Array, " states"]:
        """p0 as a vector."""
        ...

    def predict(self, belief: Float[Array, " states"], action: Action) -> Float[Array, " states"]:
        """Σ_s T(· | s, a) b(s), at a cost linear in the non-zero transitions."""
        ...

    def likelihood(self, observation: Observation, action: Action | None = None) -> Float[Array, " states"]:
        """O(o | ·) as a vector over the states."""
        ...

    def terminal_states(self) -> Bool[Array, " states"]:
        """Which states are terminal."""
        ...


@functools.singledispatch
def label_of(pomdp: POMDP) -> str:
    """The name of an environment for people, such as "T-Maze, L = 50"; by default that of its class."""
    return type(pomdp).__name__


def checked_discount(discount: Any) -> float:
    """γ as a float, if it lies in [0, 1]."""
    require(
        is_real(discount) and 0 <= discount <= 1,
        rule="a discount γ lies in [0, 1]",
        received=discount,
        advice="the paper uses 0.98 and 0.99",
    )
    return float(discount)


def checked_horizon(horizon: Any) -> int:
    """H as an int, if it is a whole number of at least 1."""
    require(
        is_whole(horizon) and horizon >= 1,
        rule="a horizon is a whole number of at least 1",
        received=horizon,
        advice="pass the number of actions after which an episode is cut",
    )
    return int(horizon)


def check_pomdp_type(pomdp: Any) -> None:
    """Refuse what is not an instance of `POMDP`."""
    require(
        isinstance(pomdp, POMDP),
        rule="a POMDP is an instance of the class POMDP",
        received=pomdp,
        advice="pass the POMDP itself, such as TMaze(50)",
    )


def check_observation(pomdp: POMDP, observation: Any) -> None:
    """Refuse what is not made of arrays of the shapes that the POMDP gives."""
    key = jax.random.key(0)
    given = jax.eval_shape(lambda: pomdp.sample_observation(key, pomdp.sample_initial(key)))
    received = jax.tree.map(lambda leaf: getattr(leaf, "shape", None if _is_odd(leaf) else ()), observation)
    inner = jax.tree.map(lambda leaf: leaf.shape, given)
    fits = jax.tree.structure(observation) == jax.tree.structure(given) and all(
        not _is_odd(one) and np.shape(one) == other.shape
        for one, other in zip(jax.tree.leaves(observation), jax.tree.leaves(given), strict=True)
    )
    require(
        fits,
        rule=f"an observation of {type(pomdp).__name__} has the shape {inner}",
        received=received,
        advice="pass observations as the POMDP's sample_observation gives them",
    )


def _is_odd(leaf: Any) -> bool:
    """Is this anything but numbers?"""
    return not isinstance(leaf, Tracer) and getattr(leaf, "dtype", np.asarray(leaf).dtype).kind not in "biuf"


def check_action(action: Action, num_actions: int) -> None:
    """Refuse a concrete action out of range; a traced one passes (under `jit` indices are clamped, not checked)."""
    if isinstance(action, Tracer):
        return
    given = np.asarray(action)
    require(
        given.size == 1,
        rule="one belief or state takes one action",
        received=given.tolist(),
        advice="use jax.vmap for a batch",
    )
    concrete = given.item()
    require(
        is_whole(concrete) and 0 <= concrete < num_actions,
        rule=f"an action is an integer from 0 to {num_actions - 1}",
        received=concrete,
        advice="choose one of the POMDP's actions",
    )
