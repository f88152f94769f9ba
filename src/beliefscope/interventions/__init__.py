"""Does the policy use the belief? Interchange, erasure and steering of an agent's memory."""

from beliefscope.interventions.erasure import Erasure, without
from beliefscope.interventions.flat import FlatAgent, memory_parts
from beliefscope.interventions.intervals import Score
from beliefscope.interventions.subspaces import Eraser, fit_belief_decoder, fit_eraser
from beliefscope.interventions.swaps import EqualSwap, Swap
from beliefscope.interventions.use import VERDICTS, Use, erase, interchange, intervene, steer

__all__ = [
    "VERDICTS",
    "EqualSwap",
    "Eraser",
    "Erasure",
    "FlatAgent",
    "Score",
    "Swap",
    "Use",
    "erase",
    "fit_belief_decoder",
    "fit_eraser",
    "interchange",
    "intervene",
    "memory_parts",
    "steer",
    "without",
]
