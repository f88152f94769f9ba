"""The paper's claims, each a function with its text, its place in the paper and its rule, fixed before any data.

`ledger` gives a verdict on each claim, from stored results alone. A claim whose results are missing, or are not at full
scale with four seeds, gets 'not enough data', with the numbers that exist.
"""

from collections.abc import Iterable, Mapping

from beliefscope.claims.evidence import Evidence
from beliefscope.claims.one_environment import (
    cells_in_maze_50,
    cells_in_maze_100,
    cells_in_stochastic_maze,
    cells_in_varying_hike,
    estimates_are_tight,
    least_information_of_the_optimal,
    two_groups_of_policies,
)
from beliefscope.claims.several_environments import (
    both_correlate,
    both_rise,
    information_under_every_epsilon,
    relevant_and_irrelevant,
)
from beliefscope.claims.verdict import Claim, Verdict, as_text, judge
from beliefscope.results.curves import Panel

__all__ = ["CLAIMS", "Claim", "Verdict", "as_text", "ledger"]

CLAIMS = (
    both_rise,
    both_correlate,
    cells_in_maze_50,
    least_information_of_the_optimal,
    estimates_are_tight,
    cells_in_maze_100,
    cells_in_stochastic_maze,
    two_groups_of_policies,
    cells_in_varying_hike,
    relevant_and_irrelevant,
    information_under_every_epsilon,
)


def ledger(panels: Iterable[Panel], *, optimum: Mapping[str, float] | None = None) -> list[Verdict]:
    """The verdict on each claim from the panels of bits; `optimum` is J* by an environment's label, where it is known
    beyond the deterministic T-Mazes."""
    evidence = Evidence(panels, optimum)
    return [judge(claim, evidence) for claim in CLAIMS]
