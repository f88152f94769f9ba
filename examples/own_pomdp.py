"""A POMDP of one's own: a submarine that hears its distance to a beacon. Check it, play it, filter it.

python examples/own_pomdp.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from beliefscope import POMDP, ParticleFilter, RandomPolicy, check_pomdp, rollout


class Submarine(POMDP):
    """It drifts on a line, steers left or right, and hears how far the beacon at 0 is, not on which side."""

    num_actions: int = eqx.field(static=True, default=2)
    observation_size: int = eqx.field(static=True, default=1)
    discount: float = eqx.field(static=True, default=0.95)
    horizon: int = eqx.field(static=True, default=30)

    def sample_initial(self, key):
        return 3.0 * jax.random.normal(key)

    def sample_transition(self, key, state, action):
        moved = state + jnp.where(action == 0, -0.5, 0.5) + 0.2 * jax.random.normal(key)
        return jnp.where(self.is_terminal(state), state, moved)

    def sample_observation(self, key, state, action=None):
        return jnp.abs(state)[None] + 0.3 * jax.random.normal(key, (1,))

    def reward(self, state, action, next_state, observation=None):
        return jnp.where(self.is_terminal(state), 0.0, -jnp.abs(next_state))

    def is_terminal(self, state):
        return jnp.abs(state) < 0.1

    # The one thing more that a particle filter needs: the density of an observation, up to a constant.
    def log_observation(self, observation, state, action=None):
        return -0.5 * ((observation[0] - jnp.abs(state)) / 0.3) ** 2


def main() -> None:
    submarine = Submarine()
    check_pomdp(submarine)
    print("The checker found nothing wrong.")
    filter = ParticleFilter(submarine, num_particles=500)
    run = rollout(jax.random.key(0), submarine, RandomPolicy(submarine), num_episodes=1000, observer=filter)
    last = jnp.take_along_axis(run.trajectory.states, run.trajectory.lengths[:, None], axis=1)[:, 0]
    mean = jnp.sum(run.observer.weights * run.observer.particles, axis=1)
    right_side = jnp.clip(jnp.sum(run.observer.weights * (run.observer.particles > 0), axis=1), 0, 1)
    print(f"Root mean square error of the believed position: {jnp.sqrt(jnp.mean((mean - last) ** 2)):.2f}")
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.6), (0.6, 0.9), (0.9, 1.0)):
        chosen = (right_side >= low) & ((right_side < high) | (high == 1))
        share = jnp.sum(chosen & (last > 0)) / jnp.maximum(jnp.sum(chosen), 1)
        print(
            f"Belief {low:.0%} to {high:.0%} on the right side: {int(jnp.sum(chosen)):4d} episodes, truly {share:.0%}"
        )


if __name__ == "__main__":
    main()
