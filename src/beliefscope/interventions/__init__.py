"""Does the policy use the belief? Interchange, erasure and steering of an agent's memory."""

from beliefscope.interventions.episodes import FlatAgent, memory_parts
from beliefscope.interventions.erasure import Eraser, Erasure, fit_eraser, without
from beliefscope.interventions.stepped import BatchAgent
from beliefscope.interventions.subspaces import Score, fit_belief_decoder
from beliefscope.interventions.swaps import EqualSwap, Swap
from beliefscope.interventions.use import VERDICTS, Use, erase, interchange, intervene, steer

__all__ = [
    "VERDICTS",
    "BatchAgent",
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
