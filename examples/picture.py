"""Draw what a belief is: one episode of the Stochastic T-Maze and one of the Varying Mountain Hike.

python examples/picture.py [--out beliefs.png]
"""

import argparse

import jax
import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from play import UpTheMountain, WalkAndRemember

from beliefscope.belief import ExactFilter, ParticleFilter, run_filter
from beliefscope.pomdp import MountainHike, TMaze, altitude, rollout

mpl.use("Agg")


def draw_t_maze(axes: Axes) -> None:
    maze = TMaze(20, 0.3)
    run = rollout(jax.random.key(2), maze, WalkAndRemember(), num_episodes=1).trajectory
    beliefs = np.asarray(run_filter(jax.random.key(0), ExactFilter(maze), run).probabilities[0])
    steps = int(run.lengths[0])
    cells = beliefs[: steps + 1].reshape(steps + 1, -1, 2).sum(-1)
    axes.imshow(cells.T, origin="lower", aspect="auto", cmap="Blues", vmin=0, vmax=0.6)
    axes.plot(np.asarray(run.states[0, : steps + 1]) // 2, color="tab:red", marker=".", linewidth=1, label="true cell")
    axes.set(title="Stochastic T-Maze: the belief over cells", xlabel="time step", ylabel="cell")
    ticks = [0, 5, 10, 15, 20, 21, 22]
    axes.set_yticks(ticks, ["0", "5", "10", "15", "junction", "", "arms"])
    axes.legend(loc="upper left", frameon=False)


def draw_mountain_hike(axes: Axes) -> None:
    hike = MountainHike(varying=True, horizon=30)
    run = rollout(jax.random.key(6), hike, UpTheMountain(), num_episodes=1).trajectory
    filter = ParticleFilter(hike, num_particles=1000)
    beliefs = run_filter(jax.random.key(0), filter, run)
    grid = np.linspace(-1, 1, 201)
    x, y = np.meshgrid(grid, grid)
    axes.contourf(x, y, np.asarray(altitude(jnp.asarray(x), jnp.asarray(y))), levels=20, cmap="gist_earth", alpha=0.7)
    for time, colour in ((2, "white"), (8, "gold"), (16, "tab:orange"), (26, "tab:red")):
        belief = jax.tree.map(lambda leaf, t=time: leaf[0, t], beliefs)
        particles = filter.resample(jax.random.key(time), belief)
        axes.scatter(particles.x, particles.y, s=6, color=colour, alpha=0.6, linewidths=0)
        here = float(run.states.x[0, time]), float(run.states.y[0, time])
        axes.plot(*here, marker="x", color="black", markersize=8, markeredgewidth=2)
        axes.annotate(f"t = {time}", here, xytext=(6, 6), textcoords="offset points", fontsize=8, weight="bold")
    axes.set(title="Varying Mountain Hike: particles, and the truth ×", xlim=(-1, 1), ylim=(-1, 1), aspect="equal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", default="beliefs.png", help="where to write the picture (default: beliefs.png)")
    out = parser.parse_args().out
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1.25, 1), layout="constrained")
    draw_t_maze(left)
    draw_mountain_hike(right)
    figure.savefig(out, dpi=120)
    print(f"Wrote {out}")


if __name__ == "__main__":
    main()
