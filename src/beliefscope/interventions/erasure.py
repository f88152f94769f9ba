"""Erasure: an agent that loses a part of the belief at every step, as far as a linear function of its memory shows it.

The memory that is carried into the next step goes through an `Eraser`. What the agent reads off
the memory within a step, its values, comes before that. So what is lost is what was remembered, not what is seen.

What a memory loses of the belief is measured by its sufficiency given the time, on the histories of the whole agent:
the erased agent reads them without acting. One step of each episode is a pair, of eight times as many episodes: the
decoders of a long maze need thousands of pairs to find what is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.agent.network import RecurrentAgent
from beliefscope.belief import Filter
from beliefscope.errors import nearest, require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.sufficiency import Ratio, sufficiency
from beliefscope.interventions.episodes import Played, Removal, VectorAgent, play_again, play_moments
from beliefscope.interventions.stepped import BatchAgent, as_vector_agent
from beliefscope.interventions.subspaces import NUMERICAL, Score, ratio_of_sums
from beliefscope.pomdp import POMDP, TMaze
from beliefscope.pomdp.rollout import Trajectory, discounted_return

RANDOM = 2  # sets of random linear functions of the memory that each erasure is compared with
PAIRS = 8  # for sufficiency, for each episode that is played for the return
LEAST_PAIRS = 2000  # fewer show too little of what even the whole memory holds

# From beliefs [n, d] and times [n] to numbers [n, c] that are to be erased.
Label = Callable[[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]], Float[np.ndarray, "n c"]]


class Eraser(NamedTuple):
    """x ↦ x − M (x − c), after which no linear function of x is correlated with the labels on the fitting rows."""

    matrix: Float[np.ndarray, "w w"]  # M
    centre: Float[np.ndarray, " w"]  # c
    reach: Float[np.ndarray, " w"]  # twice as far from c as any of the fitting rows after erasure
    rank: int  # of M
    width: int  # in how many directions the memory varies at all

    @property
    def everything(self) -> bool:
        """Has all that varies been erased?"""
        return self.rank >= self.width


def fit_eraser(memory: Float[np.ndarray, "n w"], labels: Float[np.ndarray, "n c"]) -> Eraser:
    """Least-squares concept erasure (Belrose et al., 2023): the least change in mean square that removes every linear
    trace of the labels. M = W⁺ P W, where W is the inverse root of the memory's covariance and P projects onto the
    columns of W Cov(x, labels).
    """
    centre = memory.mean(axis=0, dtype=np.float64)
    rows, marks = memory - centre, labels - labels.mean(axis=0, dtype=np.float64)
    marks = marks[:, marks.std(axis=0) > 0]
    variances, directions = np.linalg.eigh(rows.T @ rows / len(rows))
    varies = variances > max(NUMERICAL * variances[-1], 1e-30)
    kept, deviations = directions[:, varies], np.sqrt(variances[varies])
    width = int(varies.sum())
    cross = (kept / deviations).T @ (rows.T @ (marks / np.maximum(marks.std(axis=0), 1e-30)) / len(rows))
    left, sizes, _ = np.linalg.svd(cross, full_matrices=False) if cross.size else (np.zeros((width, 0)), np.zeros(0), 0)
    rank = int(np.sum(sizes > 1e-6 * sizes[0])) if len(sizes) and sizes[0] > 0 else 0
    matrix = (kept * deviations) @ left[:, :rank] @ left[:, :rank].T @ (kept / deviations).T
    # What is constant stays so to the last digit: a decoder would find a trace of rounding.
    matrix[np.ptp(memory, axis=0) == 0] = 0
    return Eraser(matrix, centre, 2 * np.abs(rows - rows @ matrix.T).max(axis=0), rank, width)


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What an agent loses with one part of the belief, and with as many random linear functions of its memory."""

    part: str
    rank: int  # directions erased
    width: int  # directions in which the memory varies
    returns: float  # the mean discounted return with the whole memory
    loss: Score | None  # of return
    random_loss: Score | None  # None where the rank reaches the width: there is no other subspace
    sufficiency: Score | None  # of the whole memory given the time; None for fewer than 2,000 pairs, or nothing to read
    sufficiency_loss: Score | None
    random_sufficiency_loss: Score | None  # the mean over the random sets

    @property
    def everything(self) -> bool:
        return self.rank >= self.width


def belief_labels(pomdp: POMDP) -> dict[str, Label]:
    """What can be erased: the whole belief and the time, and of a T-Maze the treasure's side and the cell."""
    labels: dict[str, Label] = {}
    if isinstance(pomdp, TMaze):
        # A state is 2 · cell + side.
        labels["side"] = lambda belief, time: belief[:, ::2].sum(axis=1, keepdims=True)
        labels["cell"] = lambda belief, time: belief[:, ::2] + belief[:, 1::2]
    labels["time"] = lambda belief, time: time[:, None].astype(float)
    labels["belief"] = lambda belief, time: belief
    return labels


def erased(
    key: PRNGKeyArray,
    agent: VectorAgent,
    pomdp: POMDP,
    filter: Filter,
    *,
    labels: dict[str, Label] | None = None,
    memory: str | None = None,
    num_episodes: int = 1000,
) -> tuple[Erasure, ...]:
    """Erase each label from all that the agent carries, or from one array of it (a name of its parts)."""
    key_fit, key_play, key_random = jax.random.split(fast_key(key), 3)
    key_pairs = jax.random.fold_in(key_play, 1)
    columns, count = _columns(agent, memory), num_episodes
    # The eraser is fitted to other episodes than those that are counted.
    fitted = play_moments(key_fit, agent, pomdp, filter, num_episodes=count).moments
    before = play_again(key_play, agent, pomdp, num_episodes=count)
    rows, histories = fitted.memory.astype(np.float64)[:, columns], None
    if PAIRS * count >= LEAST_PAIRS:
        histories = _one_of_each(play_moments(key_pairs, agent, pomdp, filter, num_episodes=PAIRS * count))
    whole = _sufficiency(agent, pomdp, histories)
    draw, found = generator(key_random), []
    for part, label in (belief_labels(pomdp) if labels is None else labels).items():
        marks = label(fitted.belief.astype(np.float64), fitted.time)
        eraser = fit_eraser(rows, marks)
        # As many random linear functions of the memory, erased in the same way.
        drawn = [draw.normal(size=(rows.shape[1], eraser.rank)) for _ in range(RANDOM * (not eraser.everything))]
        others = [fit_eraser(rows, rows @ functions) for functions in drawn]
        agents = [without(agent, each, columns) for each in (eraser, *others)]
        after, *by_chance = (play_again(key_play, each, pomdp, num_episodes=count) for each in agents)
        left, *left_by_chance = (_sufficiency(each, pomdp, histories) for each in agents)
        found.append(
            Erasure(
                part=part,
                rank=eraser.rank,
                width=eraser.width,
                returns=float(np.mean(_returns(before, pomdp))),
                loss=_loss(before, [after], pomdp),
                random_loss=_loss(before, by_chance, pomdp),
                sufficiency=None if whole is None else Score(*whole),
                sufficiency_loss=_less(whole, [left]),
                random_sufficiency_loss=_less(whole, left_by_chance),
            )
        )
    return tuple(found)


def without(
    agent: RecurrentAgent | BatchAgent | VectorAgent, eraser: Eraser, columns: slice = slice(None)
) -> VectorAgent:
    """The agent whose memory goes through the eraser at every step, in these columns of the vector."""
    agent = as_vector_agent(agent)
    width = max(part.stop for part in agent.parts().values())
    matrix, centre, reach = np.zeros((width, width)), np.zeros(width), np.full(width, np.inf)
    matrix[columns, columns], centre[columns], reach[columns] = eraser.matrix, eraser.centre, eraser.reach
    return agent.losing(Removal(*(jnp.asarray(each, jnp.float32) for each in (matrix, centre, reach))))


def _columns(agent: VectorAgent, memory: str | None) -> slice:
    if memory is None:
        return slice(None)
    parts = agent.parts()
    require(
        memory in parts,
        rule=f"the memory has the parts {', '.join(parts)}",
        received=memory,
        advice=nearest(memory, parts, otherwise="leave memory out to erase from all of it"),
    )
    return parts[memory]


def _returns(played: Trajectory, pomdp: POMDP) -> Float[np.ndarray, " n"]:
    return np.asarray(discounted_return(played.rewards, pomdp.discount), np.float64)


def _loss(before: Trajectory, after: list[Trajectory], pomdp: POMDP) -> Score | None:
    if not after:
        return None
    lost = np.mean([_returns(before, pomdp) - _returns(each, pomdp) for each in after], axis=0)
    return ratio_of_sums(lost, None, np.arange(len(lost)))


def _one_of_each(played: Played) -> Played:
    """With a moment of each episode, drawn at random."""
    order = np.random.default_rng(0).permutation(len(played.moments.episode))
    one = np.unique(played.moments.episode[order], return_index=True)[1]
    return played._replace(moments=played.moments.rows(order[one]))


def _sufficiency(agent: VectorAgent, pomdp: POMDP, histories: Played | None) -> Ratio | None:
    """Of what this agent remembers if it reads these histories, at one moment of each."""
    if histories is None or len(histories.moments.time) < LEAST_PAIRS:
        return None
    moments, times = histories.moments, np.zeros((len(histories.trajectory.lengths), 1), int)
    times[moments.episode, 0] = moments.time
    memory = agent.memories(pomdp, histories.trajectory, times)[moments.episode, 0]
    return sufficiency(memory, moments.belief, moments.time).value


def _less(before: Ratio | None, after: list[Ratio | None]) -> Score | None:
    """The mean loss. Its interval takes the errors of both sides for independent, which makes it too wide."""
    known = [each for each in after if each is not None]
    if before is None or not known:
        return None
    value = before.value - float(np.mean([each.value for each in known]))
    down = np.hypot(before.value - before.low, np.mean([each.high - each.value for each in known]))
    up = np.hypot(before.high - before.value, np.mean([each.value - each.low for each in known]))
    return Score(value, float(value - down), float(value + up))
