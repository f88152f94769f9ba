"""Belief filters: p(state | history), exact, Gaussian or as particles."""

from beliefscope.belief.exact import ByPart, ExactBelief, ExactFilter, GaussianBelief, KalmanFilter, ProductFilter
from beliefscope.belief.interface import Filter, Health
from beliefscope.belief.particle import ParticleBelief, ParticleFilter, Resampling, multinomial, systematic
from beliefscope.belief.run_filter import filter_of_paper, run_filter

__all__ = [
    "ByPart",
    "ExactBelief",
    "ExactFilter",
    "Filter",
    "GaussianBelief",
    "Health",
    "KalmanFilter",
    "ParticleBelief",
    "ParticleFilter",
    "ProductFilter",
    "Resampling",
    "filter_of_paper",
    "multinomial",
    "run_filter",
    "systematic",
]
