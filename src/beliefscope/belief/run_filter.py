"""The filter that the paper runs on a POMDP, and the beliefs along recorded episodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from beliefscope.belief.exact import ExactFilter, KalmanFilter, ProductFilter
from beliefscope.belief.interface import Belief, Filter
from beliefscope.belief.particle import ParticleFilter
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.paper import Variant, check_variant
from beliefscope.pomdp.interface import POMDP, Finite
from beliefscope.pomdp.irrelevant import Irrelevant
from beliefscope.pomdp.rollout import Trajectory


def filter_of_paper(pomdp: POMDP, variant: Variant = "text", *, num_particles: int = 1000) -> Filter:
    """The filter that the paper runs on this POMDP: exact where the states are finite, particles elsewhere.

    With irrelevant variables it is a product with their Kalman filter. None of them knows that the episode continues.
    """
    check_variant(variant)
    if isinstance(pomdp, Irrelevant):
        relevant = filter_of_paper(pomdp.pomdp, variant, num_particles=num_particles)
        return ProductFilter(relevant=relevant, irrelevant=KalmanFilter(pomdp.process))
    if isinstance(pomdp, Finite):
        return ExactFilter(pomdp, condition_on_termination=False)
    return ParticleFilter.of_paper(pomdp, variant, num_particles=num_particles)


def run_filter(key: PRNGKeyArray, filter: Filter, trajectory: Trajectory) -> Belief:
    """The beliefs b_0 … b_H [batch, H + 1, ...] of each episode; after its end they repeat the last one."""
    require(
        isinstance(trajectory, Trajectory),
        rule="a filter runs along a Trajectory",
        received=type(trajectory).__name__,
        advice="pass rollout(…).trajectory, or build one",
    )
    batch, steps = trajectory.lengths.shape, trajectory.actions.shape[-1:]
    wrong = {trajectory.actions.shape[:-1], trajectory.terminated.shape} - {batch}
    wrong |= {leaf.shape[:2] for leaf in jax.tree.leaves(trajectory.observations)} - {(*batch, *(n + 1 for n in steps))}
    require(
        len(batch) == 1 and not wrong,
        rule="a trajectory holds a batch of episodes: lengths [batch], actions [batch, H], observations [batch, H + 1]",
        received=[leaf.shape for leaf in jax.tree.leaves(trajectory)],
        advice="put a batch axis first",
    )
    return _run_filter(key, filter, trajectory)


@eqx.filter_jit
def _run_filter(key: PRNGKeyArray, filter: Filter, trajectory: Trajectory) -> Belief:
    keys = jax.random.split(fast_key(key), trajectory.lengths.shape[0])

    def one(
        key_episode: PRNGKeyArray,
        observations: PyTree,
        actions: Int[Array, " H"],
        length: Int[Array, ""],
        terminated: Bool[Array, ""],
    ) -> Belief:
        key_init, key_update = jax.random.split(key_episode)
        shown = jax.tree.map(lambda leaf: leaf[0], observations)
        first = filter.init(key_init, shown, terminal=terminated & (length == 0))

        def step(belief, now):
            time, key_step, action, observation = now
            terminal = terminated & (time + 1 == length)
            updated = filter.update(key_step, belief, action, observation, terminal=terminal)
            kept = jax.tree.map(lambda new, old: jnp.where(time < length, new, old), updated, belief)
            return kept, kept

        times = jnp.arange(actions.shape[0])
        later = jax.tree.map(lambda leaf: leaf[1:], observations)
        keys_step = jax.random.split(key_update, actions.shape[0])
        _, rest = jax.lax.scan(step, first, (times, keys_step, actions, later))
        return jax.tree.map(lambda head, tail: jnp.concatenate([head[None], tail]), first, rest)

    return jax.vmap(one)(keys, trajectory.observations, trajectory.actions, trajectory.lengths, trajectory.terminated)
