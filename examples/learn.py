"""Train four recurrent agents in a small T-Maze, watch their returns rise, and see what one of them remembers.

    python examples/learn.py

Half a minute on one core. The runs stay in `runs/learn`; a second call finds them finished.
"""

import jax
import jax.numpy as jnp
import numpy as np

from beliefscope import DRQN, GRU, TMaze, TrainingSpec, train
from beliefscope.pomdp.interface import NO_ACTION
from beliefscope.pomdp.t_maze import RIGHT, SEES_CORRIDOR, SEES_DOWN, SEES_UP

BARS = " ▁▂▃▄▅▆▇█"


def main() -> None:
    maze, learner = TMaze(length=5), DRQN(cell=GRU, num_episodes=300)
    best = 4 * maze.discount**maze.length  # straight to the treasure
    print(f"T-Maze, L = 5: four GRU agents, 300 episodes each; the best possible return is {best:.2f}\n")
    runs = train([TrainingSpec(pomdp=maze, learner=learner, seed=seed) for seed in range(4)], "runs/learn")
    for run in runs:
        returns = np.array([line["return"] for line in run.metrics()])
        heights = np.clip(returns / best, 0, 1) * (len(BARS) - 1)
        print(f"  seed {run.spec.seed}  {''.join(BARS[round(h)] for h in heights)}  {returns[-1]:.2f}")

    network = runs[0].network(300)
    print("\nHow far apart seed 0's memories are after Up and after Down was seen, step by step down the corridor:")
    distances = [jnp.linalg.norm(a - b) for a, b in zip(walk(network, SEES_UP), walk(network, SEES_DOWN), strict=True)]
    print("  " + "  ".join(f"{distance:.2f}" for distance in distances))


def walk(network, first: int) -> list[jax.Array]:
    """The memory vectors along the corridor after the first observation."""
    memory, vectors = network.init_memory(), []
    for time in range(5):
        action, seen = (NO_ACTION, first) if time == 0 else (RIGHT, SEES_CORRIDOR)
        memory, _ = network.step(memory, jnp.asarray(action), jax.nn.one_hot(seen, 4))
        vectors.append(network.memory_vector(memory))
    return vectors


if __name__ == "__main__":
    main()
