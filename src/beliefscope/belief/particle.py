"""The bootstrap particle filter (the paper's algorithm 2): the belief as a set of M weighted states.

Resampling turns weights into ancestors: the indices of the particles that are kept. On average each index occurs in
proportion to its weight. The functions `multinomial` and `systematic` do it for one set of weights.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.belief.interface import Filter, Health
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.paper import Variant, check_variant
from beliefscope.pomdp.interface import POMDP, ObservationDensity, check_action, check_observation, check_pomdp_type

Resampling = Literal["multinomial", "systematic"]

MAX_PARTICLES = 100_000  # beyond that, shares of single-precision sums are too coarse to draw from
_BLOCK = 32  # weights whose running sums are one product


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
        """The paper's filter in one of its variants; both ignore that the episode continues."""
        check_variant(variant)
        return cls(
            pomdp,
            num_particles=num_particles,
            resample_last=variant == "code",
            condition_on_termination=False,
        )

    def init(self, key: PRNGKeyArray, observation: PyTree, *, terminal: Bool[ArrayLike, ""] = False) -> ParticleBelief:
        check_observation(self.pomdp, observation)
        key_draw, key_resample = jax.random.split(fast_key(key))
        particles = jax.vmap(self.pomdp.sample_initial)(jax.random.split(key_draw, self.num_particles))
        weighted = self._weigh(particles, None, observation, jnp.asarray(False), terminal=terminal)
        return self._after_weighting(key_resample, weighted)

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
        check_observation(self.pomdp, observation)
        key_resample, key_move = jax.random.split(fast_key(key))
        particles = self._equal_particles(key_resample, belief)
        keys = jax.random.split(key_move, self.num_particles)
        moved = jax.vmap(self.pomdp.sample_transition, (0, 0, None))(keys, particles, action)
        weighted = self._weigh(moved, action, observation, belief.impossible, terminal=terminal)
        return self._after_weighting(key_resample, weighted)

    def resample(self, key: PRNGKeyArray, belief: ParticleBelief) -> PyTree:
        """M states of equal weight that represent the same belief."""
        require(
            belief.weights.ndim == 1,
            rule="a particle filter resamples one belief at a time",
            received=belief.weights.shape,
            advice="use jax.vmap for a batch",
        )
        ancestors = resampler(self.resampling)(key, belief.weights)
        return jax.tree.map(lambda leaf: leaf[ancestors], belief.particles)

    def features(self, key: PRNGKeyArray, belief: ParticleBelief) -> Float[Array, "M features"]:
        """An unweighted set of M states, each as the POMDP's `state_features`."""
        return jax.vmap(self.pomdp.state_features)(self._equal_particles(key, belief))

    def health(self, belief: ParticleBelief) -> Health:
        return Health(belief.effective_sample_size, belief.impossible)

    def _equal_particles(self, key: PRNGKeyArray, belief: ParticleBelief) -> PyTree:
        """M states of equal weight; the weights of a filter that resamples last are equal already."""
        return belief.particles if self.resample_last else self.resample(key, belief)

    def _after_weighting(self, key: PRNGKeyArray, belief: ParticleBelief) -> ParticleBelief:
        """The belief, resampled if this filter resamples last."""
        if not self.resample_last:
            return belief
        equal = jnp.full_like(belief.weights, 1 / self.num_particles)
        return ParticleBelief(self.resample(key, belief), equal, belief.effective_sample_size, belief.impossible)

    def _weigh(
        self,
        particles: PyTree,
        action: Int[ArrayLike, ""] | None,
        observation: PyTree,
        flagged: Bool[Array, ""],
        *,
        terminal: Bool[ArrayLike, ""],
    ) -> ParticleBelief:
        """The particles with weights proportional to how well each explains the observation."""
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
        return ParticleBelief(particles, scaled / total, size, flagged | ~possible)


def resampler(scheme: Resampling) -> Callable[[PRNGKeyArray, Array], Array]:
    """The function (key, weights [M] that sum to 1) → ancestors [M] of that name."""
    require(
        scheme in get_args(Resampling),
        rule=f"resampling is one of {', '.join(get_args(Resampling))}",
        received=scheme,
        advice="the paper uses multinomial",
    )
    return {"multinomial": multinomial, "systematic": systematic}[scheme]


def multinomial(key: PRNGKeyArray, weights: Float[Array, " M"]) -> Int[Array, " M"]:
    """M independent draws, as in the paper."""
    cumulative = _running_share(weights)
    levels = jax.random.uniform(key, weights.shape, dtype=weights.dtype)
    # The same binary search, as a loop where loops are cheap and written out where each turn is a launch.
    loop, unrolled = (partial(jnp.searchsorted, side="right", method=method) for method in ("scan", "scan_unrolled"))
    return jax.lax.platform_dependent(cumulative, levels, cpu=loop, default=unrolled)


def systematic(key: PRNGKeyArray, weights: Float[Array, " M"]) -> Int[Array, " M"]:
    """One draw u for the whole set: levels (u + 0)/M, (u + 1)/M, …, whose spread is smaller.

    The levels below the running share c_i are the first ⌈M c_i − u⌉, and they belong to the particles up to i. Counting
    for each level how many particles end at or before it gives the ancestor without a search.
    """
    count = len(weights)
    offset = jax.lax.optimization_barrier(jax.random.uniform(key, dtype=weights.dtype))
    end = jnp.ceil(count * _running_share(weights) - offset).astype(int)
    ending = jnp.zeros(count, weights.dtype).at[end].add(1, mode="drop")
    return _running_sum(ending).astype(int)


def _running_share(weights: Float[Array, " M"]) -> Float[Array, " M"]:
    """Running sums of the weights as shares of their total.

    The weights are first rounded to multiples of 2⁻²³ in single precision. This makes the sums exact in any order, so
    they never decrease, and a particle of weight zero is never drawn.
    """
    grain = 2.0 ** -jnp.finfo(weights.dtype).nmant
    sums = _running_sum(jnp.round(weights / grain) * grain)
    return sums / sums[-1]


def _running_sum(values: Float[Array, " M"]) -> Float[Array, " M"]:
    """Prefix sums by blocks: a product with a triangle inside each, then the blocks' totals (three times as fast)."""
    count = len(values)
    blocks = jnp.pad(values, (0, -count % _BLOCK)).reshape(-1, _BLOCK)
    triangle = jnp.triu(jnp.ones((_BLOCK, _BLOCK), values.dtype))
    inside = jnp.matmul(blocks, triangle, precision="highest")
    before = jnp.cumsum(inside[:, -1]) - inside[:, -1]
    return (inside + before[:, None]).reshape(-1)[:count]
