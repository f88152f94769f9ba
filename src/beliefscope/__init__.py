"""beliefscope: does my agent's memory encode the belief?

`beliefscope.pomdp` holds the environments, `beliefscope.belief` the filters that track what can be known in them.
"""

from beliefscope.belief import ExactFilter, KalmanFilter, ParticleFilter, ProductFilter, filter_of_paper, run_filter
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

__all__ = [
    "POMDP",
    "ExactFilter",
    "Irrelevant",
    "KalmanFilter",
    "MountainHike",
    "ParticleFilter",
    "ProductFilter",
    "RandomPolicy",
    "TMaze",
    "TabularPOMDP",
    "check_pomdp",
    "classic",
    "filter_of_paper",
    "maximal_return",
    "read_pomdp",
    "rollout",
    "run_filter",
    "write_pomdp",
]
__version__ = "0.1.0"
