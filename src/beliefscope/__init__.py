"""beliefscope: does my agent's memory encode the belief?

`beliefscope.pomdp` holds the environments, `beliefscope.belief` the filters that track what can be known in them,
`beliefscope.agent` the recurrent agents that learn to act in them, `beliefscope.information` the estimators of mutual
information; `beliefscope.measurement` pairs memories with beliefs and measures how many bits the two share, and
`beliefscope.interventions` asks whether the agent acts on them.
`beliefscope.study` does all of it for many runs, `beliefscope.auditing` for one agent of any framework, and
`beliefscope.gymnasium` has the environments for agents of other libraries.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beliefscope import gymnasium as gymnasium
    from beliefscope.agent import BRC, DRQN, GRU, LSTM, MGU, NBRC, QNetwork, RunFolder, TrainingSpec, train
    from beliefscope.auditing import Audit, audit
    from beliefscope.belief import ExactFilter, KalmanFilter, ParticleFilter, ProductFilter, filter_of_paper, run_filter
    from beliefscope.information import calibrate, mutual_information, sufficiency
    from beliefscope.interventions import Use, erase, interchange, intervene, steer
    from beliefscope.measurement import measure, pairs_from_trajectories, play, sample_pairs
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
    from beliefscope.store import MeasurementSpec, StudyFolder
    from beliefscope.study import Measurement, RunSpec, Study, read_study, run_study

__all__ = [
    "BRC",
    "DRQN",
    "GRU",
    "LSTM",
    "MGU",
    "NBRC",
    "POMDP",
    "Audit",
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
    "Use",
    "audit",
    "calibrate",
    "check_pomdp",
    "classic",
    "erase",
    "filter_of_paper",
    "interchange",
    "intervene",
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
    "steer",
    "sufficiency",
    "train",
    "write_pomdp",
    "write_report",
]
__version__ = "0.1.0"
# Where each public name is defined. A name is imported from there alone, so that reading a description needs no JAX.
_PACKAGES = {
    "pomdp": (
        "POMDP",
        "Irrelevant",
        "MountainHike",
        "RandomPolicy",
        "TMaze",
        "TabularPOMDP",
        "check_pomdp",
        "classic",
        "maximal_return",
        "read_pomdp",
        "rollout",
        "write_pomdp",
    ),
    "belief": ("ExactFilter", "KalmanFilter", "ParticleFilter", "ProductFilter", "filter_of_paper", "run_filter"),
    "agent": ("BRC", "DRQN", "GRU", "LSTM", "MGU", "NBRC", "QNetwork", "RunFolder", "TrainingSpec", "train"),
    "information": ("calibrate", "mutual_information", "sufficiency"),
    "store": ("MeasurementSpec", "StudyFolder"),
    "measurement": ("measure", "pairs_from_trajectories", "play", "sample_pairs"),
    "study": ("Measurement", "RunSpec", "Study", "read_study", "run_study"),
    "report": ("write_report",),
    "auditing": ("Audit", "audit"),
    "interventions": ("Use", "erase", "interchange", "intervene", "steer"),
}


def __dir__() -> list[str]:
    """All public names, so that a shell completes them before they are first used."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """A name of `__all__`, from the package that defines it: `import beliefscope` alone takes no time."""
    if name == "gymnasium":  # a module that needs Gymnasium, and for that reason not in `__all__`
        return importlib.import_module("beliefscope.gymnasium")
    for package, names in _PACKAGES.items():
        if name in names:
            return getattr(importlib.import_module(f"beliefscope.{package}"), name)
    raise AttributeError(f"module 'beliefscope' has no attribute {name!r}")
