"""Interchange and steering: replace the memory of one episode by that of another, whole or in part, and continue.

A swap has a recipient and a donor, two episodes at the same step t with the same observation o_t. They are of different
belief, and of different later decisions wherever such a donor is found. The decision of an episode is its last action,
of a T-Maze the turn, where at least half of the episodes end before the horizon. Elsewhere it is the action at the
first later step at which recipient and donor, each left alone, see the same and act differently.

    follow    share of swaps after which the decision is the donor's; keep: the recipient's own
    to_donor  distance of the Q-values, along what the recipient saw and did when left alone, to those that the donor's
              whole memory gives there; to_own: to its own. Both in units of the distance between these two
    loss      of discounted return
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from beliefscope.belief import Filter
from beliefscope.fast_keys import fast_key, generator
from beliefscope.interventions.episodes import (
    Continued,
    Moments,
    Played,
    VectorAgent,
    continue_episodes,
    play_moments,
)
from beliefscope.interventions.subspaces import (
    BeliefDecoder,
    Score,
    fit_belief_decoder,
    projection,
    random_directions,
    ratio_of_sums,
)
from beliefscope.pomdp import POMDP
from beliefscope.pomdp.interface import NO_ACTION

RANKS = (1, 2, 4, 8)
DOSES = tuple(0.25 * step for step in range(9))
EQUAL = 1e-5  # beliefs of a lesser total variation are equal
_TRIES = 40  # candidates drawn for each swap


@dataclass(frozen=True, kw_only=True)
class Swap:
    """What one kind of replacement did. Scores are None where no swap has them, or no values are known."""

    kind: str  # whole, belief, complement, random, shuffled; steering
    rank: int | None = None
    directions: int | None = None  # the rank, or fewer where fewer directions hold all that the decoder reads
    dose: float | None = None
    follow: Score | None
    keep: Score | None
    to_donor: Score | None
    to_own: Score | None
    loss: Score | None
    above_random: Score | None = None  # follow less that of random subspaces of this rank, on the same swaps
    num_swaps: int
    num_deciding: int  # swaps whose two episodes, left alone, decide differently


@dataclass(frozen=True, kw_only=True)
class EqualSwap:
    """Swaps between episodes of equal belief: what the memory holds beyond the belief, and acts on."""

    changed: Score | None  # share of swaps that change the decision; any later action where no episode ends by one
    values: Score | None  # how far Q-values move, in units of the distance between episodes of different belief
    loss: Score | None
    num_swaps: int


class Trial(NamedTuple):
    """Swaps that are ready to be made: pairs of moments and what happens without an intervention."""

    agent: VectorAgent
    pomdp: POMDP
    played: Played
    recipient: Moments
    donor: Moments
    place: Int[np.ndarray, " n"] | None  # of the decision among later steps; None: the last action
    own: Int[np.ndarray, " n"]  # the recipient's decision
    others: Int[np.ndarray, " n"]  # the donor's
    deciding: Bool[np.ndarray, " n"]
    alone: Continued  # the recipient's episode as it was
    whole: Continued  # with the donor's whole memory
    apart: Float[np.ndarray, " n"]  # the distance between the Q-values of these two

    def replaced(self, memory: Float[np.ndarray, "n w"]) -> Continued:
        return continue_episodes(self.agent, self.pomdp, self.played, self.recipient, memory)

    def decision(self, found: Continued) -> Int[np.ndarray, " n"]:
        if self.place is None:
            return found.decision()
        return found.actions[np.arange(len(self.place)), self.place]


class Prepared(NamedTuple):
    """Episodes, the decoder fitted to half of them, and swaps among the other half."""

    decoder: BeliefDecoder
    shuffled: BeliefDecoder
    different: Trial | None  # None: no two episodes at the same t with the same observation differ in belief
    equal: Trial | None
    draw: np.random.Generator


def prepare(
    key: PRNGKeyArray, agent: VectorAgent, pomdp: POMDP, filter: Filter, *, num_episodes: int, num_swaps: int
) -> Prepared:
    key_play, key_fit, key_shuffled, key_draw = jax.random.split(fast_key(key), 4)
    played = play_moments(key_play, agent, pomdp, filter, num_episodes=num_episodes)
    rows, draw = played.moments, generator(key_draw)
    fitting, groups = rows.rows(np.flatnonzero(rows.episode < num_episodes // 2)), int(rows.group.max()) + 1
    given = (fitting.memory.astype(np.float64), fitting.belief, fitting.group, fitting.episode)
    decoder = fit_belief_decoder(key_fit, *given, groups=groups)
    shuffled = fit_belief_decoder(key_shuffled, *given, groups=groups, shuffled=True)
    swapped = rows.rows(np.flatnonzero(rows.episode >= num_episodes // 2))
    different, equal = (_trial(draw, agent, pomdp, played, swapped, num_swaps, equal=equal) for equal in (False, True))
    return Prepared(decoder, shuffled, different, equal, draw)


def _trial(
    draw: np.random.Generator,
    agent: VectorAgent,
    pomdp: POMDP,
    played: Played,
    moments: Moments,
    number: int,
    *,
    equal: bool,
) -> Trial | None:
    first, second = _candidates(draw, moments, number * _TRIES, equal=equal)
    if not len(first):
        return None
    place, own, others, deciding = _decisions(played, moments, first, second)
    # Those whose decisions differ first, each part in the order in which it was drawn.
    chosen = np.argsort(~deciding, kind="stable") if not equal else np.arange(len(first))
    chosen = np.resize(chosen, number)  # again from the first where there are fewer
    recipient, donor = moments.rows(first[chosen]), moments.rows(second[chosen])
    alone, whole = (continue_episodes(agent, pomdp, played, recipient, each.memory) for each in (recipient, donor))
    found = (None if place is None else place[chosen], own[chosen], others[chosen], deciding[chosen])
    apart = _distance(whole, alone, alone.compared)
    return Trial(agent, pomdp, played, recipient, donor, *found, alone, whole, apart)


def _candidates(draw: np.random.Generator, moments: Moments, number: int, *, equal: bool):
    """Recipients and donors: rows of one group, of different episodes, of equal or of different belief."""
    order = np.argsort(moments.group, kind="stable")
    start, count = np.unique(moments.group[order], return_index=True, return_counts=True)[1:]
    place = np.unique(moments.group, return_inverse=True)[1]
    first = draw.integers(len(order), size=number)
    at = place[first]
    second = order[start[at] + (draw.random(number) * count[at]).astype(int)]
    apart = np.abs(moments.belief[first] - moments.belief[second]).sum(axis=1) / 2
    fits = (moments.episode[first] != moments.episode[second]) & ((apart < EQUAL) == equal)
    return first[fits], second[fits]


def _decisions(played: Played, moments: Moments, first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"]):
    """Where the decision is taken, the recipient's, the donor's, and whether they differ."""
    trajectory = played.trajectory
    lengths, actions = np.asarray(trajectory.lengths), np.asarray(trajectory.actions)
    left, right = moments.episode[first], moments.episode[second]
    if 2 * np.asarray(trajectory.terminated).sum() >= len(lengths):
        ended = np.asarray(trajectory.terminated) & (lengths > 0)
        last = np.where(ended, actions[np.arange(len(lengths)), np.maximum(lengths - 1, 0)], NO_ACTION)
        own, others = last[left], last[right]
        return None, own, others, (own != others) & (own != NO_ACTION) & (others != NO_ACTION)
    steps = np.arange(actions.shape[1])
    alike = np.ones((len(first), len(steps)), bool)
    for leaf in jax.tree.leaves(trajectory.observations):
        seen = np.asarray(leaf)[:, :-1].reshape(len(lengths), len(steps), -1)
        alike &= (seen[left] == seen[right]).all(axis=2)
    differ = (actions[left] != actions[right]) & alike & (steps > moments.time[first][:, None])
    differ &= (steps < lengths[left][:, None]) & (steps < lengths[right][:, None])
    step = differ.argmax(axis=1)
    rows = np.arange(len(first))
    place = np.where(differ.any(axis=1), step - moments.time[first] - 1, 0)
    return place, actions[left][rows, step], actions[right][rows, step], differ.any(axis=1)


def scored(trial: Trial, found: Continued, **named) -> Swap:
    """The scores of one replacement."""
    decision, episode, at = trial.decision(found), trial.recipient.episode, trial.deciding
    apart = trial.apart
    away = {
        name: ratio_of_sums(_distance(found, other, trial.alone.compared), apart, episode)
        for name, other in (("to_donor", trial.whole), ("to_own", trial.alone))
    }
    return Swap(
        follow=ratio_of_sums(decision[at] == trial.others[at], None, episode[at]),
        keep=ratio_of_sums(decision[at] == trial.own[at], None, episode[at]),
        **away,
        loss=ratio_of_sums(trial.alone.returns - found.returns, None, episode),
        num_swaps=len(episode),
        num_deciding=int(at.sum()),
        **named,
    )


def _distance(one: Continued, other: Continued, compared: Bool[np.ndarray, "n later"]) -> Float[np.ndarray, " n"]:
    """√ Σ (Q − Q')² over the later steps of an episode and its actions."""
    return np.sqrt(np.sum(np.where(compared[:, :, None], one.values - other.values, 0) ** 2.0, axis=(1, 2)))


def interchanged(prepared: Prepared, *, ranks: tuple[int, ...] = RANKS) -> tuple[Swap, ...]:
    """Whole memories, and by rank their components in and outside the belief subspace, and in the two controls.

    A rank that reaches the memory's width is left out: its subspace is all of the memory. Where fewer directions hold
    all that the decoder reads, these are swapped, and as many of the controls.
    """
    trial, decoder = prepared.different, prepared.decoder
    if trial is None:
        return ()
    swaps = [scored(trial, trial.whole, kind="whole")]
    own, change = trial.recipient.memory, trial.donor.memory - trial.recipient.memory
    width = own.shape[1]
    for rank in (rank for rank in ranks if rank < width):
        count = min(rank, decoder.rank)
        random = random_directions(prepared.draw, len(own), width, count)
        into, back = decoder.white
        moved = np.einsum("nwk,nvk,nv->nw", random, random, change @ into.T, optimize=True) @ back.T
        by_chance = trial.replaced(own + moved)
        belief = change @ projection(decoder.white, decoder.directions[:, :count]).T
        other = change @ projection(prepared.shuffled.white, prepared.shuffled.directions[:, :count]).T
        found = trial.replaced(own + belief)
        gain = (trial.decision(found) == trial.others).astype(float) - (trial.decision(by_chance) == trial.others)
        at = trial.deciding
        # At each of the ranks the agent has a chance to pass for one that uses the belief.
        above = ratio_of_sums(gain[at], None, trial.recipient.episode[at], level=1 - 0.05 / len(ranks))
        at_rank = {"rank": rank, "directions": count}
        swaps += [
            scored(trial, found, kind="belief", **at_rank, above_random=above),
            scored(trial, trial.replaced(own + (change - belief)), kind="complement", **at_rank),
            scored(trial, by_chance, kind="random", **at_rank),
            scored(trial, trial.replaced(own + other), kind="shuffled", **at_rank),
        ]
    return tuple(swaps)


def swapped_at_equal_belief(prepared: Prepared) -> EqualSwap | None:
    """None where no two episodes at the same t with the same observation have the same belief."""
    trial, other = prepared.equal, prepared.different
    if trial is None:
        return None
    episode = trial.recipient.episode
    far = None if other is None else float(other.apart.mean())
    changed = trial.whole.decision() != trial.alone.decision()
    if trial.place is not None:
        changed = (trial.whole.actions != trial.alone.actions).any(axis=1)
    return EqualSwap(
        changed=ratio_of_sums(changed, None, episode),
        values=ratio_of_sums(trial.apart, np.full(len(episode), far), episode) if far else None,
        loss=ratio_of_sums(trial.alone.returns - trial.whole.returns, None, episode),
        num_swaps=len(episode),
    )


def steered(prepared: Prepared) -> tuple[Swap, ...]:
    """Move memories by the least change towards the donor's belief as decoded, times each of `DOSES`."""
    trial, decoder = prepared.different, prepared.decoder
    if trial is None:
        return ()
    own = trial.recipient.memory
    change = decoder.steering(own.astype(np.float64), trial.recipient.group, trial.donor.belief)
    return tuple(scored(trial, trial.replaced(own + dose * change), kind="steering", dose=dose) for dose in DOSES)
