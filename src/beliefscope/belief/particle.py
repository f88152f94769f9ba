"""The bootstrap particle filter (the paper's algorithm 2): the belief as a set of M weighted states."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.belief.interface import Filter, Health
from beliefscope.belief.resampling import Resampling, resampler
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp.eager import check_action, check_pomdp_type
from beliefscope.pomdp.interface import POMDP, ObservationDensity
from beliefscope.pomdp.variant import Variant, check_variant

MAX_PARTICLES = 100_000  # beyond that, shares of single-precision sums are too coarse to draw from


class ParticleBelief(eqx.Module):
    """M states with weights that sum to 1."""

    particles: PyTree  # [M, ...]
    weights: Float[Array, "*batch M"]
    effective_sample_size: Float[Array, "*batch"]  # of the last weighting, before any resampling
    impossible: Bool[Array, "*batch"]


class ParticleFilter(Filter):
    """resample → move → weight, as in the paper; with `resample_last`, move → weight → resample.

    When no particle explains an observation, the moved particles are kept with equal weights and the flag is raised.
    """

    pomdp: POMDP
    num_particles: int = eqx.field(static=True)  # M
    resampling: Resampling = eqx.field(static=True)
    resample_last: bool = eqx.field(static=True)
    condition_on_termination: bool = eqx.field(static=True)

    def __init__(
        self,
        pomdp: POMDP,
        *,
        num_particles: int = 1000,
        resampling: Resampling = "multinomial",
        resample_last: bool = False,
        condition_on_termination: bool = True,
    ) -> None:
        check_pomdp_type(pomdp)
        require(
            isinstance(pomdp, ObservationDensity),
            rule="a particle filter needs a POMDP with the method log_observation(observation, state, action=None)",
            received=type(pomdp).__name__,
            advice="add it, or use a ProductFilter for irrelevant variables (filter_of_paper builds it)",
        )
        require(
            is_whole(num_particles) and 1 <= num_particles <= MAX_PARTICLES,
            rule=f"the number of particles is a whole number from 1 to {MAX_PARTICLES}",
            received=num_particles,
            advice="the paper uses 1000",
        )
        resampler(resampling)
        self.pomdp = pomdp
        self.num_particles = int(num_particles)
        self.resampling = resampling
        self.resample_last = resample_last
        self.condition_on_termination = condition_on_termination

    @classmethod
    def of_paper(cls, pomdp: POMDP, variant: Variant = "text", *, num_particles: int = 1000) -> "ParticleFilter":
        """The paper's filter in one of its variants; both ignore that the episode goes on."""
        check_variant(variant)
        return cls(
            pomdp,
            num_particles=num_particles,
            resample_last=variant == "code",
            condition_on_termination=False,
        )

    def init(self, key: PRNGKeyArray, observation: PyTree, *, terminal: Bool[ArrayLike, ""] = False) -> ParticleBelief:
        key_draw, key_resample = jax.random.split(fast_key(key))
        particles = jax.vmap(self.pomdp.sample_initial)(jax.random.split(key_draw, self.num_particles))
        return self._weigh(key_resample, particles, None, observation, jnp.asarray(False), terminal=terminal)

    def update(
        self,
        key: PRNGKeyArray,
        belief: ParticleBelief,
        action: Int[ArrayLike, ""],
        observation: PyTree,
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> ParticleBelief:
        check_action(action, self.pomdp.num_actions)
        key_resample, key_move = jax.random.split(fast_key(key))
        particles = belief.particles if self.resample_last else self.resample(key_resample, belief)
        keys = jax.random.split(key_move, self.num_particles)
        moved = jax.vmap(self.pomdp.sample_transition, (0, 0, None))(keys, particles, action)
        return self._weigh(key_resample, moved, action, observation, belief.impossible, terminal=terminal)

    def resample(self, key: PRNGKeyArray, belief: ParticleBelief) -> PyTree:
        """M states of equal weight that stand for the same belief."""
        require(
            belief.weights.ndim == 1,
            rule="one belief at a time is resampled",
            received=belief.weights.shape,
            advice="use jax.vmap for a batch",
        )
        ancestors = resampler(self.resampling)(key, belief.weights)
        return jax.tree.map(lambda leaf: leaf[ancestors], belief.particles)

    def features(self, key: PRNGKeyArray, belief: ParticleBelief) -> Float[Array, "M features"]:
        """An unweighted set of M states, each as the POMDP's `state_features`."""
        particles = belief.particles if self.resample_last else self.resample(key, belief)
        return jax.vmap(self.pomdp.state_features)(particles)

    def health(self, belief: ParticleBelief) -> Health:
        return Health(belief.effective_sample_size, belief.impossible)

    def _weigh(
        self,
        key: PRNGKeyArray,
        particles: PyTree,
        action: Int[ArrayLike, ""] | None,
        observation: PyTree,
        flagged: Bool[Array, ""],
        *,
        terminal: Bool[ArrayLike, ""],
    ) -> ParticleBelief:
        assert isinstance(self.pomdp, ObservationDensity)
        score = self.pomdp.log_observation
        logs = jax.vmap(lambda state: score(observation, state, action))(particles)
        if self.condition_on_termination:
            logs = jnp.where(jax.vmap(self.pomdp.is_terminal)(particles) == terminal, logs, -jnp.inf)
        best = jnp.max(logs)
        possible = jnp.isfinite(best)
        scaled = jnp.where(possible, jnp.exp(logs - best), 1.0)
        total = jnp.sum(scaled)
        size = total**2 / jnp.sum(scaled**2)
        belief = ParticleBelief(particles, scaled / total, size, flagged | ~possible)
        if not self.resample_last:
            return belief
        equal = jnp.full_like(belief.weights, 1 / self.num_particles)
        return ParticleBelief(self.resample(key, belief), equal, size, belief.impossible)
