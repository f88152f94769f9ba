"""Mutual information of paired samples, in bits: estimators, exact values and data whose information is known."""

from beliefscope.information.atoms import AtomsBound, AtomsEstimate
from beliefscope.information.best_bound import (
    BestBound,
    BestBoundEstimate,
    BestBoundSettings,
    Trusted,
    mutual_information,
)
from beliefscope.information.calibrate import Calibration, calibrate
from beliefscope.information.classical import KSG, Gaussian, gaussian_bits
from beliefscope.information.entropy import (
    DiscreteEntropy,
    SmoothedInformation,
    discrete_entropy,
    exact_entropy,
    smoothed_information,
)
from beliefscope.information.interface import Estimate, Estimator, Pair, checked_pair
from beliefscope.information.known_cases import KnownCase, known_cases
from beliefscope.information.neural import MINE, NWJ, SMILE, InfoNCE, NeuralEstimator
from beliefscope.information.probe import Decoder, Decoding, decode, fit_decoder, histogram
from beliefscope.information.sufficiency import Ratio, Steps, StepShare, Sufficiency, sufficiency, sufficiency_by_step

__all__ = [
    "KSG",
    "MINE",
    "NWJ",
    "SMILE",
    "AtomsBound",
    "AtomsEstimate",
    "BestBound",
    "BestBoundEstimate",
    "BestBoundSettings",
    "Calibration",
    "Decoder",
    "Decoding",
    "DiscreteEntropy",
    "Estimate",
    "Estimator",
    "Gaussian",
    "InfoNCE",
    "KnownCase",
    "NeuralEstimator",
    "Pair",
    "Ratio",
    "SmoothedInformation",
    "StepShare",
    "Steps",
    "Sufficiency",
    "Trusted",
    "calibrate",
    "checked_pair",
    "decode",
    "discrete_entropy",
    "exact_entropy",
    "fit_decoder",
    "gaussian_bits",
    "histogram",
    "known_cases",
    "mutual_information",
    "smoothed_information",
    "sufficiency",
    "sufficiency_by_step",
]
