"""Every POMDP and every filter, for the contract tests."""

from beliefscope.belief import ExactFilter, ParticleFilter, filter_of_paper
from beliefscope.pomdp import CLASSICS, Irrelevant, MountainHike, TMaze, classic

POMDPS = {
    "t-maze": TMaze(4),
    "shortest t-maze": TMaze(1),
    "stochastic t-maze": TMaze(4, 0.3),
    "random t-maze": TMaze(3, 1.0, horizon=20),
    "tabular t-maze": TMaze(3, 0.3).tabular(),
    "mountain hike": MountainHike(horizon=20),
    "varying mountain hike": MountainHike(varying=True, horizon=20),
    "mountain hike, code": MountainHike.of_paper("code", varying=True),
    "irrelevant t-maze": Irrelevant(TMaze(3), 2),
    "irrelevant mountain hike": Irrelevant(MountainHike(horizon=20), 1),
    **{name: classic(name, horizon=20) for name in CLASSICS},
}

FILTERS = {
    "exact": (POMDPS["stochastic t-maze"], ExactFilter(POMDPS["stochastic t-maze"])),
    "exact, termination unknown": (
        POMDPS["t-maze"],
        ExactFilter(POMDPS["t-maze"], condition_on_termination=False),
    ),
    "exact, nothing seen first": (POMDPS["tiger"], ExactFilter(POMDPS["tiger"])),
    "particles": (POMDPS["mountain hike"], ParticleFilter(POMDPS["mountain hike"], num_particles=64)),
    "systematic particles": (
        POMDPS["varying mountain hike"],
        ParticleFilter(POMDPS["varying mountain hike"], num_particles=64, resampling="systematic"),
    ),
    "particles, code": (
        POMDPS["mountain hike, code"],
        ParticleFilter.of_paper(POMDPS["mountain hike, code"], "code", num_particles=64),
    ),
    "particles of a finite POMDP": (
        POMDPS["cheese-maze"],
        ParticleFilter(POMDPS["cheese-maze"], num_particles=64),
    ),
    "product": (POMDPS["irrelevant t-maze"], filter_of_paper(POMDPS["irrelevant t-maze"])),
    "product with particles": (
        POMDPS["irrelevant mountain hike"],
        filter_of_paper(POMDPS["irrelevant mountain hike"], num_particles=64),
    ),
}
