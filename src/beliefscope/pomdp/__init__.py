"""Partially observable Markov decision processes as pure JAX functions of one episode, one step."""

from beliefscope.paper import Variant
from beliefscope.pomdp.interface import NO_ACTION, NO_OBSERVATION, POMDP, Finite, ObservationDensity, label_of
from beliefscope.pomdp.irrelevant import Irrelevant, Parts
from beliefscope.pomdp.linear_gaussian import LinearGaussian
from beliefscope.pomdp.mountain_hike import HikeState, MountainHike, altitude
from beliefscope.pomdp.pomdp_file import (
    CLASSICS,
    HORIZON,
    PomdpFileError,
    classic,
    format_pomdp,
    parse_pomdp,
    read_pomdp,
    write_pomdp,
)
from beliefscope.pomdp.rollout import (
    Observer,
    Policy,
    RandomPolicy,
    Rollout,
    Trajectory,
    discounted_return,
    rollout,
)
from beliefscope.pomdp.solve import MaximalReturn, Values, maximal_return, value_iteration
from beliefscope.pomdp.t_maze import TMaze
from beliefscope.pomdp.tabular import RewardFunction, TabularPOMDP
from beliefscope.pomdp.validate import check_pomdp

__all__ = [
    "CLASSICS",
    "HORIZON",
    "NO_ACTION",
    "NO_OBSERVATION",
    "POMDP",
    "Finite",
    "HikeState",
    "Irrelevant",
    "LinearGaussian",
    "MaximalReturn",
    "MountainHike",
    "ObservationDensity",
    "Observer",
    "Parts",
    "Policy",
    "PomdpFileError",
    "RandomPolicy",
    "RewardFunction",
    "Rollout",
    "TMaze",
    "TabularPOMDP",
    "Trajectory",
    "Values",
    "Variant",
    "altitude",
    "check_pomdp",
    "classic",
    "discounted_return",
    "format_pomdp",
    "label_of",
    "maximal_return",
    "parse_pomdp",
    "read_pomdp",
    "rollout",
    "value_iteration",
    "write_pomdp",
]
