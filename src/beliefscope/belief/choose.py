"""The filter that suits a POMDP."""

from beliefscope.belief.exact import ExactFilter
from beliefscope.belief.interface import Filter
from beliefscope.belief.kalman import KalmanFilter
from beliefscope.belief.particle import ParticleFilter
from beliefscope.belief.product import ProductFilter
from beliefscope.pomdp.interface import POMDP, Finite
from beliefscope.pomdp.irrelevant import Irrelevant
from beliefscope.pomdp.variant import Variant, check_variant


def filter_of_paper(pomdp: POMDP, variant: Variant = "text", *, num_particles: int = 1000) -> Filter:
    """The filter that the paper runs on this POMDP: exact where the states are finite, particles elsewhere.

    With irrelevant variables it is a product with their Kalman filter. None of them knows that the episode goes on.
    """
    check_variant(variant)
    if isinstance(pomdp, Irrelevant):
        relevant = filter_of_paper(pomdp.pomdp, variant, num_particles=num_particles)
        return ProductFilter(relevant=relevant, irrelevant=KalmanFilter(pomdp.process))
    if isinstance(pomdp, Finite):
        return ExactFilter(pomdp, condition_on_termination=False)
    return ParticleFilter.of_paper(pomdp, variant, num_particles=num_particles)
