"""How long 10,000 interventions on an agent of a T-Maze of L = 50 take, once compiled.

    python benchmarks/interventions.py

The network is a GRU of the paper's size that was not trained. Its bias makes it go right, so that an episode ends at
the horizon: no intervention takes longer. The bar is 30 s on two cores.
"""

import os
import time

import equinox as eqx
import jax
import numpy as np

import beliefscope as bs
from beliefscope.interventions import FlatAgent
from beliefscope.interventions.episodes import continue_episodes, play_moments

NUMBER, AT_ONCE, BAR = 10_000, 500, 30.0


def main() -> None:
    maze = bs.TMaze(50)
    sizes = {"observation_size": 4, "num_actions": 4, "hidden_size": 32, "num_layers": 2}
    network = bs.QNetwork(jax.random.key(0), bs.GRU, **sizes)
    agent = FlatAgent(eqx.tree_at(lambda of: of.bias, network, network.bias.at[0].add(10.0)))
    played = play_moments(jax.random.key(1), agent, maze, bs.filter_of_paper(maze), num_episodes=500)
    rows = np.random.default_rng(0).integers(len(played.moments.time), size=(2, AT_ONCE))
    recipient, donor = (played.moments.rows(each) for each in rows)
    continue_episodes(agent, maze, played, recipient, donor.memory)  # compiles
    load, wall = os.getloadavg()[0], time.perf_counter()
    for _ in range(NUMBER // AT_ONCE):
        continue_episodes(agent, maze, played, recipient, donor.memory)
    taken = time.perf_counter() - wall
    lengths = np.asarray(played.trajectory.lengths)
    print(
        f"{NUMBER} interventions in {taken:.1f} s; episodes of {lengths.min()} to {lengths.max()} steps, "
        f"{os.cpu_count()} cores, load {load:.1f} at the start; the bar is {BAR:.0f} s"
    )


if __name__ == "__main__":
    main()
