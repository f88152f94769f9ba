"""What a POMDP is: an Equinox module whose methods describe one episode, one step.

A POMDP P = (S, A, O, p0, T, R, O, γ) is written with the three samplers `sample_initial`, `sample_transition` and
`sample_observation`, the functions `reward` and `is_terminal`, and the facts `num_actions`, `observation_size`,
`discount` and `horizon`. The caller does batching, time and compilation: `jax.vmap`, `jax.lax.scan`, `jax.jit`.

States and observations are pytrees of arrays; an action is an integer below `num_actions`. Two arguments exist only for
POMDPs that are more general than the paper's, and all others may ignore them: the action that led to the observed state
(`None` for the first observation, which no action precedes) and the observation that a reward may depend on.

Filters need further methods, called capabilities: `ObservationDensity` for particles, `Finite` for exact beliefs.
"""

import abc
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree, Real

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
