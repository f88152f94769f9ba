"""Do CPU and GPU train the same agents? Prints how far apart they are after the first episode and its gradient steps.

    python benchmarks/agreement.py

Needs a GPU. Each device trains four agents of every cell in a T-Maze of length 20, in a process of its own. The
episodes must be the same to the last action; parameters differ by rounding.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CELLS = ("LSTM", "GRU", "BRC", "NBRC", "MGU")


def train_and_store(file: str) -> None:
    """The agents of every cell after one episode, on the device that JAX_PLATFORMS names."""
    import jax
    import jax.numpy as jnp

    import beliefscope.agent.cells as cells
    from beliefscope.agent import DRQN
    from beliefscope.agent.train import Work, run_chunk, start_agents
    from beliefscope.pomdp import TMaze

    stored, maze, seeds = {}, TMaze(20), jnp.arange(4, dtype=jnp.uint32)
    for cell in CELLS:
        learner = DRQN(cell=getattr(cells, cell))
        work = Work(maze, learner, seeds, jnp.asarray(0), jnp.asarray(1))
        agents, _ = run_chunk(work, start_agents(maze, learner, seeds))
        stored[f"{cell} actions"] = agents.replay.actions
        stored[f"{cell} values"] = agents.replay.next_values
        stored[f"{cell} parameters"] = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(agents.network)])
    np.savez(file, **jax.device_get(stored))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for platform in ("cpu", "cuda"):
            file = Path(folder) / f"{platform}.npz"
            environment = {**os.environ, "JAX_PLATFORMS": platform}
            subprocess.run([sys.executable, __file__, str(file)], env=environment, check=True)
            results.append(np.load(file))
        cpu, gpu = results
        for cell in CELLS:
            same = np.array_equal(cpu[f"{cell} actions"], gpu[f"{cell} actions"])
            apart = {
                part: np.abs(cpu[f"{cell} {part}"] - gpu[f"{cell} {part}"]).max() for part in ("values", "parameters")
            }
            print(
                f"{cell:<5} same actions: {same}",
                *(f"{part} differ by {d:.1e}" for part, d in apart.items()),
                sep="   ",
            )


if __name__ == "__main__":
    train_and_store(sys.argv[1]) if len(sys.argv) > 1 else main()
