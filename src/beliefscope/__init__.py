"""beliefscope: does my agent's memory encode the belief?

`beliefscope.pomdp` holds the environments, `beliefscope.belief` the filters that track what can be known in them,
`beliefscope.agent` the recurrent agents that learn to act in them; `beliefscope.pairs` pairs their memories with
beliefs, and `beliefscope.information` says how many bits the two share. `beliefscope.study` does all of it for many
runs.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beliefscope.agent import BRC, DRQN, GRU, LSTM, MGU, NBRC, QNetwork, RunFolder, TrainingSpec, train
    from beliefscope.belief import ExactFilter, KalmanFilter, ParticleFilter, ProductFilter, filter_of_paper, run_filter
    from beliefscope.information import calibrate, mutual_information, sufficiency
    from beliefscope.measurement import MeasurementSpec, measure
    from beliefscope.pairs import pairs_from_trajectories, play, sample_pairs
    from beliefscope.pomdp import (
        POMDP,
        Irrelevant,
        MountainHike,
        RandomPolicy,
        TabularPOMDP,
        TMaze,
        check_pomdp,
        classic,
        maximal_return,
        read_pomdp,
        rollout,
        write_pomdp,
    )
    from beliefscope.report import write_report
    from beliefscope.study import Measurement, RunSpec, Study, StudyFolder, read_study, run_study

__all__ = [
    "BRC",
    "DRQN",
    "GRU",
    "LSTM",
    "MGU",
    "NBRC",
    "POMDP",
    "ExactFilter",
    "Irrelevant",
    "KalmanFilter",
    "Measurement",
    "MeasurementSpec",
    "MountainHike",
    "ParticleFilter",
    "ProductFilter",
    "QNetwork",
    "RandomPolicy",
    "RunFolder",
    "RunSpec",
    "Study",
    "StudyFolder",
    "TMaze",
    "TabularPOMDP",
    "TrainingSpec",
    "calibrate",
    "check_pomdp",
    "classic",
    "filter_of_paper",
    "maximal_return",
    "measure",
    "mutual_information",
    "pairs_from_trajectories",
    "play",
    "read_pomdp",
    "read_study",
    "rollout",
    "run_filter",
    "run_study",
    "sample_pairs",
    "sufficiency",
    "train",
    "write_pomdp",
    "write_report",
]
__version__ = "0.1.0"
_ROOMS = ("pomdp", "belief", "agent", "pairs", "information", "measurement", "study", "report")


def __getattr__(name: str) -> Any:
    """What is in `__all__`, from the room that has it: `import beliefscope` alone takes no time."""
    if name in __all__:
        for room in _ROOMS:
            found = importlib.import_module(f"beliefscope.{room}")
            if hasattr(found, name):
                return getattr(found, name)
    raise AttributeError(f"module 'beliefscope' has no attribute {name!r}")
