"""A study from Python: of three trainings one raises, one kills its process, one is as it should be.

It takes the folder and, for the backend "ray", the cluster's address.
"""

import os
import sys

from beliefscope import DRQN, GRU, RunSpec, Study, TMaze, TrainingSpec, run_study


class Raising(TMaze):
    def __init__(self):
        super().__init__(3)

    def sample_transition(self, key, state, action):
        raise RuntimeError("this maze has no floor")


class Deadly(TMaze):
    def __init__(self):
        super().__init__(3)

    def sample_transition(self, key, state, action):
        os._exit(1)


def main(folder: str, address: str | None = None) -> None:
    learner = DRQN(cell=GRU, num_episodes=20, checkpoint_period=20, evaluation_episodes=5, hidden_size=8)
    runs = [
        RunSpec(training=TrainingSpec(pomdp=maze, learner=learner, seed=0), environment=type(maze).__name__)
        for maze in (Raising(), Deadly(), TMaze(3))
    ]
    backend = "ray" if address else "local"
    run_study(Study(name="mazes", runs=tuple(runs)), folder, workers=2, backend=backend, address=address)


if __name__ == "__main__":
    main(*sys.argv[1:])
