"""The exact Bayes filter of a finite POMDP: b(s) over all states, updated by Bayes' rule."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.belief.interface import Filter, Health
from beliefscope.errors import require
from beliefscope.pomdp.interface import POMDP, Finite, check_action, check_observation, check_pomdp_type


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
