"""Filters that sample nothing: of finite POMDPs, of linear-Gaussian processes, and of independent parts.

`ExactFilter` updates b(s) over all states by Bayes' rule. `KalmanFilter` does the same for a Gaussian belief, N(mean,
covariance). `ProductFilter` is for a POMDP with irrelevant variables: the belief of independent parts is the product of
their beliefs, and each part has a filter of its own.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.belief.interface import Filter, Health
from beliefscope.errors import require
from beliefscope.pomdp.interface import POMDP, Finite, check_action, check_observation, check_pomdp_type
from beliefscope.pomdp.irrelevant import Parts
from beliefscope.pomdp.linear_gaussian import LinearGaussian


class ExactBelief(eqx.Module):
    """b as a vector over the states."""

    probabilities: Float[Array, "*batch states"]
    impossible: Bool[Array, "*batch"]


class ExactFilter(Filter):
    """b'(s') ∝ O(o' | s') Σ_s T(s' | s, a) b(s).

    An observation of probability zero leaves the predicted belief Σ_s T(s' | s, a) b(s) and raises the flag.
    """

    pomdp: POMDP
    condition_on_termination: bool = eqx.field(static=True)

    def __init__(self, pomdp: POMDP, *, condition_on_termination: bool = True) -> None:
        check_pomdp_type(pomdp)
        require(
            isinstance(pomdp, Finite),
            rule="an exact filter needs a POMDP with finitely many states",
            received=type(pomdp).__name__,
            advice="use a ParticleFilter, or a ProductFilter for irrelevant variables (filter_of_paper builds it)",
        )
        self.pomdp = pomdp
        self.condition_on_termination = condition_on_termination

    def init(self, key: PRNGKeyArray, observation: PyTree, *, terminal: Bool[ArrayLike, ""] = False) -> ExactBelief:
        check_observation(self.pomdp, observation)
        prior = self.finite.initial_distribution()
        likelihood = self.finite.likelihood(observation)
        return self._correct(prior, likelihood, jnp.asarray(False), terminal=terminal)

    def update(
        self,
        key: PRNGKeyArray,
        belief: ExactBelief,
        action: Int[ArrayLike, ""],
        observation: PyTree,
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> ExactBelief:
        check_action(action, self.pomdp.num_actions)
        check_observation(self.pomdp, observation)
        predicted = self.finite.predict(belief.probabilities, action)
        likelihood = self.finite.likelihood(observation, action)
        return self._correct(predicted, likelihood, belief.impossible, terminal=terminal)

    def features(self, key: PRNGKeyArray, belief: ExactBelief) -> Float[Array, "*batch states"]:
        return belief.probabilities

    def health(self, belief: ExactBelief) -> Health:
        return Health(jnp.full(belief.impossible.shape, jnp.inf), belief.impossible)

    @property
    def finite(self) -> Finite:
        assert isinstance(self.pomdp, Finite)
        return self.pomdp

    def _correct(
        self,
        predicted: Float[Array, " states"],
        likelihood: Float[Array, " states"],
        flagged: Bool[Array, ""],
        *,
        terminal: Bool[ArrayLike, ""],
    ) -> ExactBelief:
        if self.condition_on_termination:
            likelihood = jnp.where(self.finite.terminal_states() == terminal, likelihood, 0)
        evidence = jnp.dot(predicted, likelihood, precision="highest")
        possible = evidence >= jnp.finfo(evidence.dtype).tiny  # below that its reciprocal would overflow
        factor = jnp.where(possible, likelihood / jnp.where(possible, evidence, 1), 1)
        return ExactBelief(probabilities=predicted * factor, impossible=flagged | ~possible)


class GaussianBelief(eqx.Module):
    """N(mean, covariance)."""

    mean: Float[Array, "*batch d"]
    covariance: Float[Array, "*batch d d"]
    impossible: Bool[Array, "*batch"]


class KalmanFilter(Filter):
    """Tracks the state of a `LinearGaussian` process; an observation that is not finite is left out and flagged."""

    process: LinearGaussian

    def __init__(self, process: LinearGaussian) -> None:
        require(
            isinstance(process, LinearGaussian),
            rule="a Kalman filter needs a LinearGaussian process",
            received=type(process).__name__,
            advice="use an ExactFilter for finite POMDPs and a ParticleFilter for others",
        )
        self.process = process

    def init(
        self, key: PRNGKeyArray, observation: Float[Array, " o"], *, terminal: Bool[ArrayLike, ""] = False
    ) -> GaussianBelief:
        process = self.process
        return self._correct(process.initial_mean, process.initial_covariance, observation, jnp.asarray(False))

    def update(
        self,
        key: PRNGKeyArray,
        belief: GaussianBelief,
        action: Int[ArrayLike, ""],
        observation: Float[Array, " o"],
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> GaussianBelief:
        process = self.process
        if process.action_effect is not None:
            check_action(action, len(process.action_effect))
        mean = process.drift(belief.mean, action)
        covariance = process.transition @ belief.covariance @ process.transition.T + process.process_covariance
        return self._correct(mean, covariance, observation, belief.impossible)

    def features(self, key: PRNGKeyArray, belief: GaussianBelief) -> Float[Array, "*batch features"]:
        """The mean, then the covariance row by row."""
        flat = belief.covariance.reshape(*belief.covariance.shape[:-2], -1)
        return jnp.concatenate([belief.mean, flat], axis=-1)

    def health(self, belief: GaussianBelief) -> Health:
        return Health(jnp.full(belief.impossible.shape, jnp.inf), belief.impossible)

    def _correct(
        self,
        mean: Float[Array, " d"],
        covariance: Float[Array, "d d"],
        observation: Float[Array, " o"],
        flagged: Bool[Array, ""],
    ) -> GaussianBelief:
        """Condition N(mean, covariance) on the observation, in Joseph's form, which keeps the covariance positive."""
        process = self.process
        require(
            getattr(observation, "shape", None) == (len(process.observation),),
            rule=f"an observation of this process has the shape {(len(process.observation),)}",
            received=getattr(observation, "shape", observation),
            advice="use jax.vmap for a batch",
        )
        seen = process.observation @ covariance @ process.observation.T + process.observation_covariance
        gain = jax.scipy.linalg.solve(seen, process.observation @ covariance, assume_a="pos").T
        rest = jnp.eye(len(mean)) - gain @ process.observation
        corrected = mean + gain @ (observation - process.observation @ mean)
        narrowed = rest @ covariance @ rest.T + gain @ process.observation_covariance @ gain.T
        possible = jnp.all(jnp.isfinite(corrected)) & jnp.all(jnp.isfinite(narrowed))
        return GaussianBelief(
            mean=jnp.where(possible, corrected, mean),
            covariance=jnp.where(possible, narrowed, covariance),
            impossible=flagged | ~possible,
        )


def mean_and_covariance(features: ArrayLike) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d d"]]:
    """What the features [n, d + d²] of a Kalman filter are made of."""
    rows = np.asarray(features)
    size = (math.isqrt(1 + 4 * rows.shape[1]) - 1) // 2
    return rows[:, :size], rows[:, size:].reshape(-1, size, size)


class ByPart(eqx.Module):
    """Something for each part of a product POMDP: beliefs, features or health."""

    relevant: PyTree
    irrelevant: PyTree


class ProductFilter(Filter):
    """Runs one filter on each part of the observation and keeps their beliefs apart."""

    relevant: Filter
    irrelevant: Filter

    def __check_init__(self) -> None:
        for part in (self.relevant, self.irrelevant):
            require(
                isinstance(part, Filter),
                rule="a product filter is made of two filters",
                received=part,
                advice="pass relevant=… and irrelevant=…",
            )

    def init(self, key: PRNGKeyArray, observation: Parts, *, terminal: Bool[ArrayLike, ""] = False) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.init(key_relevant, observation.relevant, terminal=terminal),
            irrelevant=self.irrelevant.init(key_irrelevant, observation.irrelevant, terminal=terminal),
        )

    def update(
        self,
        key: PRNGKeyArray,
        belief: ByPart,
        action: Int[ArrayLike, ""],
        observation: Parts,
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.update(
                key_relevant, belief.relevant, action, observation.relevant, terminal=terminal
            ),
            irrelevant=self.irrelevant.update(
                key_irrelevant, belief.irrelevant, action, observation.irrelevant, terminal=terminal
            ),
        )

    def features(self, key: PRNGKeyArray, belief: ByPart) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.features(key_relevant, belief.relevant),
            irrelevant=self.irrelevant.features(key_irrelevant, belief.irrelevant),
        )

    def health(self, belief: ByPart) -> ByPart:
        return ByPart(self.relevant.health(belief.relevant), self.irrelevant.health(belief.irrelevant))
