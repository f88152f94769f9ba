"""Does the policy use the belief? All interventions on one agent, and a verdict.

The verdict follows a rule that was written before any trained agent was looked at:

- readable: on episodes that had no part in its fit, the linear decoder reads at least half of what the belief knows
  about the state beyond t and o_t; the lower end of the 95 % interval is at least ½.
- used: at some rank, swaps of the belief subspace are followed more often than swaps of random subspaces of this rank,
  by at least 10 points, and the interval of the difference (95 % for all ranks together) lies above 0.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from beliefscope.agent.network import RecurrentAgent
from beliefscope.belief import Filter, filter_of_paper
from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.interventions.episodes import VectorAgent
from beliefscope.interventions.erasure import Erasure, erased
from beliefscope.interventions.stepped import BatchAgent, as_vector_agent
from beliefscope.interventions.subspaces import Score
from beliefscope.interventions.swaps import (
    RANKS,
    EqualSwap,
    Prepared,
    Swap,
    interchanged,
    prepare,
    steered,
    swapped_at_equal_belief,
)
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import check_pomdp_type

Intervened = RecurrentAgent | BatchAgent | VectorAgent  # for other frameworks: beliefscope.auditing.settable
READABLE, MORE_THAN_CHANCE = 0.5, 0.1
VERDICTS = ("readable and used", "readable; not used through this subspace", "not readable")


@dataclass(frozen=True, kw_only=True)
class Use:
    """What interventions on an agent's memory did."""

    verdict: str  # one of `VERDICTS`
    readable: Score | None  # the share of the belief's bits beyond t and o_t that a linear decoder reads
    available: float  # these bits
    width: int  # numbers that the agent carries
    swaps: tuple[Swap, ...]
    equal: EqualSwap | None
    steering: tuple[Swap, ...]
    erasures: tuple[Erasure, ...]
    num_episodes: int

    def swap(self, kind: str, rank: int | None = None) -> Swap | None:
        """The swaps of one kind and rank, where they were made."""
        return next((swap for swap in self.swaps if (swap.kind, swap.rank) == (kind, rank)), None)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers by name, as a record stores them."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return "\n".join([f"Verdict: {self.verdict}.", *_read(self), *_swapped(self), *_rest(self), *_erased(self)])


def intervene(
    key: PRNGKeyArray,
    agent: Intervened,
    pomdp: POMDP,
    filter: Filter | None = None,
    *,
    num_episodes: int = 1000,
    num_swaps: int = 500,
    erase: bool = True,
) -> Use:
    """Interchange, steering and erasure of the belief in an agent's memory.

    The POMDP has finitely many states and observations that recur; the filter is the exact one unless given. Half of
    the episodes fit the decoder, and the swaps are made among the other half.
    """
    key_swaps, key_erase = jax.random.split(fast_key(key))
    prepared, filter = _prepared(key_swaps, agent, pomdp, filter, num_episodes, num_swaps)
    swaps, decoder = interchanged(prepared), prepared.decoder
    return Use(
        verdict=verdict(decoder.share, swaps),
        readable=decoder.share,
        available=decoder.available,
        width=len(decoder.weights),
        swaps=swaps,
        equal=swapped_at_equal_belief(prepared),
        steering=steered(prepared),
        erasures=erased(key_erase, as_vector_agent(agent), pomdp, filter, num_episodes=num_episodes // 2)
        if erase
        else (),
        num_episodes=num_episodes,
    )


def interchange(
    key: PRNGKeyArray,
    agent: Intervened,
    pomdp: POMDP,
    filter: Filter | None = None,
    *,
    ranks: tuple[int, ...] = RANKS,
    num_episodes: int = 1000,
    num_swaps: int = 500,
) -> tuple[Swap, ...]:
    """The interchanges of `intervene` alone, at these ranks."""
    require(
        len(ranks) >= 1 and all(is_whole(rank) and rank >= 1 for rank in ranks),
        rule="ranks are whole numbers of at least 1",
        received=ranks,
        advice="1, 2, 4 and 8 show how many directions matter",
    )
    return interchanged(_prepared(key, agent, pomdp, filter, num_episodes, num_swaps)[0], ranks=tuple(ranks))


def steer(
    key: PRNGKeyArray,
    agent: Intervened,
    pomdp: POMDP,
    filter: Filter | None = None,
    *,
    num_episodes: int = 1000,
    num_swaps: int = 500,
) -> tuple[Swap, ...]:
    """The dose-response of `intervene` alone."""
    return steered(_prepared(key, agent, pomdp, filter, num_episodes, num_swaps)[0])


def erase(
    key: PRNGKeyArray,
    agent: Intervened,
    pomdp: POMDP,
    filter: Filter | None = None,
    *,
    memory: str | None = None,
    num_episodes: int = 1000,
) -> tuple[Erasure, ...]:
    """The erasures of `intervene` alone; `memory` names one of the arrays that the agent carries (`memory_parts`)."""
    check_pomdp_type(pomdp)
    _check_number("episodes", num_episodes, 100)
    agent = as_vector_agent(agent)
    return erased(key, agent, pomdp, filter or filter_of_paper(pomdp), memory=memory, num_episodes=num_episodes)


def verdict(readable: Score | None, swaps: tuple[Swap, ...]) -> str:
    """By the rule at the top of this file."""
    if readable is None or readable.low < READABLE:
        return VERDICTS[2]
    gains = [swap.above_random for swap in swaps if swap.above_random is not None]
    used = any(gain.low > 0 and gain.value >= MORE_THAN_CHANCE for gain in gains)
    return VERDICTS[0] if used else VERDICTS[1]


def _prepared(key, agent, pomdp, filter, num_episodes: int, num_swaps: int) -> tuple[Prepared, Filter]:
    check_pomdp_type(pomdp)
    _check_number("episodes", num_episodes, 100)
    _check_number("swaps", num_swaps, 1)
    filter = filter or filter_of_paper(pomdp)
    found = prepare(key, as_vector_agent(agent), pomdp, filter, num_episodes=num_episodes, num_swaps=num_swaps)
    return found, filter


def _check_number(name: str, number: int, least: int) -> None:
    require(
        is_whole(number) and number >= least,
        rule=f"the number of {name} is a whole number of at least {least}",
        received=number,
        advice="leave it out for 1000 episodes and 500 swaps",
    )


def _read(use: Use) -> list[str]:
    knows = f"{use.available:.2f} bits that the belief knows about the state beyond the step and the observation"
    if use.readable is None:
        return [f"The {knows} are too few to read."]
    return [f"A linear decoder reads {_percent(use.readable)} of the {knows}."]


def _swapped(use: Use) -> list[str]:
    whole = use.swap("whole")
    if whole is None:
        return ["No two episodes that saw the same at the same step had different beliefs: nothing was swapped."]
    if whole.follow is None:
        return ["No two of these episodes, left alone, decide differently: there is no decision to follow."]
    follows = _percent(whole.follow)
    lines = [f"With the donor's whole memory {follows} of {whole.num_deciding} swaps decide as the donor."]
    for swap in (swap for swap in use.swaps if swap.kind == "belief"):
        others = {kind: use.swap(kind, swap.rank) for kind in ("complement", "random", "shuffled")}
        told = ", ".join(f"{kind} {_percent(other.follow)}" for kind, other in others.items() if other)
        few = f"{swap.rank} direction{'s' * (swap.rank != 1)}"
        lines.append(f"With {few} of the belief {_percent(swap.follow)} ({told}).")
    return lines


def _rest(use: Use) -> list[str]:
    lines = []
    if use.equal is None:
        lines.append("No two episodes that saw the same at the same step had equal beliefs.")
    elif use.equal.changed is not None:
        changes = f"A swap between episodes of equal belief changes {_percent(use.equal.changed)} of the decisions"
        lines.append(f"{changes}: that is what the memory holds beyond the belief.")
    if use.steering and use.steering[0].follow is not None:
        told = ", ".join(f"{swap.dose:g}: {swap.follow.value:.0%}" for swap in use.steering if swap.follow)
        lines.append(f"Steered to the donor's belief, by dose, so many decide as the donor: {told}.")
    return lines


def _erased(use: Use) -> list[str]:
    lines = []
    for each in use.erasures:
        told = f"Without {each.part} ({each.rank} of {each.width} directions"
        told += ", all that vary)" if each.everything else ")"
        if each.loss is not None:
            told += f" the return falls by {each.loss} of {each.returns:.2f}"
        if each.random_loss is not None:
            told += f", without random directions by {each.random_loss}"
        if each.sufficiency is not None and each.sufficiency_loss is not None:
            told += f"; sufficiency falls by {each.sufficiency_loss} of {each.sufficiency.value:.2f}"
        if each.random_sufficiency_loss is not None:
            told += f", without random directions by {each.random_sufficiency_loss}"
        lines.append(told + ".")
    return lines


def _percent(score: Score | None) -> str:
    return "–" if score is None else f"{score.value:.0%} [{100 * score.low:.0f}, {100 * score.high:.0f}]"
