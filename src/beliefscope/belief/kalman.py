"""The Kalman filter of a linear-Gaussian process: the belief is N(mean, covariance)."""

import equinox as eqx
import jax.numpy as jnp
import jax.scipy.linalg
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from beliefscope.belief.interface import Filter, Health
from beliefscope.errors import require
from beliefscope.pomdp.interface import check_action
from beliefscope.pomdp.linear_gaussian import LinearGaussian


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
