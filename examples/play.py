"""Play one episode of the Stochastic T-Maze and one of the Varying Mountain Hike, and watch the belief.

    python examples/play.py [--seed 0]

Each row is a time step: the state, which the agent does not see; what it observes; and what can be known of the state
from the history, which is the belief.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from beliefscope.belief import ExactFilter, ParticleFilter, run_filter
from beliefscope.pomdp import MountainHike, TMaze, rollout

BLOCKS = " ▁▂▃▄▅▆▇█"
SEEN = ("Up", "Down", "Corridor", "Junction")
FACING = ("0°", "90°", "180°", "270°")


class WalkAndRemember(eqx.Module):
    """Right through the corridor; at the junction, the way that the first observation announced."""

    def init_memory(self) -> jax.Array:
        return jnp.asarray(-1)

    def act(self, key, memory, previous_action, observation):
        layout = jnp.where(memory < 0, observation, memory)
        return layout, jnp.where(observation == 3, jnp.where(layout == 0, 1, 3), 0)


class UpTheMountain(eqx.Module):
    """Alternates between two directions that lead to the top if the hiker faces 90°; else it gets lost."""

    def init_memory(self) -> jax.Array:
        return jnp.asarray(0)

    def act(self, key, memory, previous_action, observation):
        return memory + 1, jnp.where(memory % 2 == 0, 2, 3)


def bars(probabilities: np.ndarray) -> str:
    """One character a probability, the higher the likelier."""
    levels = np.ceil(probabilities * (len(BLOCKS) - 1) - 1e-6).astype(int)
    return "".join(BLOCKS[level] for level in np.clip(levels, 0, len(BLOCKS) - 1))


def play_t_maze(console: Console, seed: int) -> None:
    maze = TMaze(10, 0.3)
    run = rollout(jax.random.key(seed), maze, WalkAndRemember(), num_episodes=1).trajectory
    beliefs = np.asarray(run_filter(jax.random.key(seed + 1), ExactFilter(maze), run).probabilities[0])
    table = Table(box=box.SIMPLE, title=f"Stochastic T-Maze, L = {maze.length}, λ = {maze.stochasticity}")
    for header in ("t", "state", "observed", "belief: up", "belief: down", "reward"):
        table.add_column(header, no_wrap=True, justify="right" if header in ("t", "reward") else "left")
    for time in range(int(run.lengths[0]) + 1):
        state, seen = int(run.states[0, time]), SEEN[int(run.observations[0, time])]
        cells = beliefs[time].reshape(-1, 2).T
        reward = f"{float(run.rewards[0, time - 1]):.1f}" if time else ""
        table.add_row(str(time), maze.state_name(state), seen, f"▕{bars(cells[0])}▏", f"▕{bars(cells[1])}▏", reward)
    console.print(table)
    console.print(
        "Beliefs that the treasure lies up and down. Each bar is a cell: the corridor from left to right, the "
        "junction, the arm above it, the arm below it.\n"
    )


def play_mountain_hike(console: Console, seed: int) -> None:
    hike = MountainHike(varying=True, horizon=40)
    run = rollout(jax.random.key(seed), hike, UpTheMountain(), num_episodes=1).trajectory
    filter = ParticleFilter(hike, num_particles=1000)
    beliefs = run_filter(jax.random.key(seed + 1), filter, run)
    table = Table(box=box.SIMPLE, title=f"Varying Mountain Hike, {filter.num_particles} particles")
    for header in ("t", "position", "facing", "observed", "believed", "facing in %", "effective"):
        table.add_column(header, no_wrap=True, justify="right")
    for time in range(0, int(run.lengths[0]) + 1, 4):
        state = jax.tree.map(lambda leaf, t=time: leaf[0, t], run.states)
        belief = jax.tree.map(lambda leaf, t=time: np.asarray(leaf[0, t]), beliefs)
        mean = [float(belief.weights @ belief.particles.x), float(belief.weights @ belief.particles.y)]
        facing = np.bincount(belief.particles.orientation, weights=belief.weights, minlength=4)
        table.add_row(
            str(time),
            f"{float(state.x):.2f} {float(state.y):.2f}",
            FACING[int(state.orientation)],
            f"{float(run.observations[0, time, 0]):.2f}",
            f"{mean[0]:.2f} {mean[1]:.2f}",
            " ".join(f"{share:.0f}" for share in 100 * facing),
            f"{float(belief.effective_sample_size):.0f}",
        )
    console.print(table)
    console.print(
        "Observed is a noisy altitude, believed the mean position of the particles, facing in % how likely 0°, 90°, "
        "180° and 270° are, effective how many particles carry the weight."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0, help="another seed, another episode (default: 0)")
    seed = parser.parse_args().seed
    console = Console()
    play_t_maze(console, seed)
    play_mountain_hike(console, seed)


if __name__ == "__main__":
    main()
