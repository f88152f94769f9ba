"""Mutual information of paired samples, in bits: estimators, exact values and data whose information is known."""

from beliefscope.information.atoms import SmoothedInformation, smoothed_information
from beliefscope.information.check import Pair, checked_pair
from beliefscope.information.entropy import DiscreteEntropy, discrete_entropy, exact_entropy
from beliefscope.information.gaussian import Gaussian, gaussian_bits
from beliefscope.information.interface import Estimate, Estimator
from beliefscope.information.known_cases import KnownCase, known_cases
from beliefscope.information.ksg import KSG

__all__ = [
    "KSG",
    "DiscreteEntropy",
    "Estimate",
    "Estimator",
    "Gaussian",
    "KnownCase",
    "Pair",
    "SmoothedInformation",
    "checked_pair",
    "discrete_entropy",
    "exact_entropy",
    "gaussian_bits",
    "known_cases",
    "smoothed_information",
]
