"""What an environment is called in what people read, such as "T-Maze, L = 50"."""

from beliefscope.pomdp.interface import POMDP
from beliefscope.pomdp.irrelevant import Irrelevant
from beliefscope.pomdp.mountain_hike import MountainHike
from beliefscope.pomdp.t_maze import TMaze


def label_of(pomdp: POMDP) -> str:
    """The name of the paper's environments with what sets them apart, of others that of their class."""
    if isinstance(pomdp, Irrelevant):
        return f"{label_of(pomdp.pomdp)} + {pomdp.dimensions} irrelevant"
    if isinstance(pomdp, MountainHike):
        return "Varying Mountain Hike" if pomdp.varying else "Mountain Hike"
    if not isinstance(pomdp, TMaze):
        return type(pomdp).__name__
    name = f"T-Maze, L = {pomdp.length}"
    return f"Stochastic {name}, λ = {pomdp.stochasticity:.12g}" if pomdp.stochasticity else name
