"""Sufficiency: how much of what the belief knows about the state is in the memory, from 0 to 1.

Let the state s be drawn from the belief b. A memory h is made from the same history as b, so I(h; s) ≤ I(b; s), and the
difference is E KL(b ‖ p(s | h)): the information on s that is lost if h replaces b. Everything is a cross entropy on
rows that no decoder has seen, with the whole belief and not with one drawn state:

    CE_0   of the mean belief                     CE_h   of a decoder of h, its logits added to those of the mean belief
    CE_t   of the mean belief at the time t       CE_ht  of a decoder of h, its logits added to those of that at t
    H      the mean entropy of the beliefs; no answer can have a lower cross entropy

Sufficiency given the time is (CE_t − CE_ht) / (CE_t − H), plain sufficiency (CE_0 − CE_h) / (CE_0 − H), and time alone
has (CE_0 − CE_t) / (CE_0 − H). A decoder that does not find all information makes the number too low, never too high.

`sufficiency_by_step` gives it at each step of an episode. It fits decoders of the memory, beyond the mean belief at
each t, to pairs of one step of each episode. It judges them on all steps of other episodes: the share at step t is
(CE_t − CE_ht) / (CE_t − H) of the rows of that step. A step at which the belief knows next to nothing beyond the time
has no share.
"""

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray
from scipy.sparse import csr_array
from scipy.special import digamma, entr

from beliefscope.errors import require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.decoders import Fits, Split, checked_gaussian, gaussian_cross_entropies, reading, splits
from beliefscope.information.interface import checked_rows
from beliefscope.information.networks import NEVER
from beliefscope.information.probe import CELLS_AT_ONCE, Histogram, binned, checked_probabilities, coarser

LEAST_PAIRS = 500
LEAST_BITS = 0.05  # where the belief knows less than this beyond the baseline, no share of it is given
BINS = 10  # of a column of particles; a second grid has half as many
SEEDS = 2  # splits, and decoders of each family
LEAST_ROWS = 20  # at a step; where fewer episodes last that long, there is no number
_STEP_RESAMPLES = 300  # of the episodes of a step
_RESAMPLES = 500  # of rows and splits
_STRENGTHS = 10.0 ** np.arange(-2, 5)  # rows of the overall mean that are added to those of each t
_WIDE = 0.2


class Ratio(NamedTuple):
    """A share between 0 and 1 with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.0%} [{100 * self.low:.0f}, {100 * self.high:.0f}]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """What decoders read beyond one baseline. The ratios are None where there is almost nothing to read."""

    available: float  # bits: what the belief knows about the state beyond the baseline
    linear: Ratio | None
    mlp: Ratio | None
    best: Ratio | None  # of the family that did better on the choosing rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sufficiency:
    """What a memory holds of what the belief knows about the state."""

    given_time: Reading | None  # beyond what the time tells; None where no times were given
    plain: Reading
    time_alone: Ratio | None  # what the time tells, as a share of what the belief knows
    entropy: float  # bits: the mean entropy of the beliefs, corrected for M where they are sets of particles
    num_samples: int  # N, the pairs given
    num_particles: int | None  # M
    num_cells: int | None  # of the grid that particles are counted in: then the state is the cell
    coarser: "Sufficiency | None" = None  # the same on a coarser grid
    warnings: tuple[str, ...] = ()

    @property
    def value(self) -> Ratio | None:
        """The main number: given the time where times are known, by the better decoder."""
        return (self.given_time or self.plain).best

    def __str__(self) -> str:
        reading, when = (self.given_time, "Given the time, ") if self.given_time else (self.plain, "")
        about = "the state" if self.num_cells is None else f"the cell, of {self.num_cells},"
        knows = f"the {reading.available:.2f} bits that the belief knows about {about}"
        marks = [f"N = {self.num_samples}", *([f"M = {self.num_particles}"] if self.num_particles else [])]
        if reading.best is None:
            text = f"{when}{knows} are too few for a share ({', '.join(marks)})"
        else:
            marks = [f"linear {reading.linear}", f"MLP {reading.mlp}", *marks]
            text = f"{when}the memory holds {reading.best} of {knows} ({', '.join(marks)})"
        return "; ".join([text[0].upper() + text[1:], *self.warnings])


class _Beliefs(NamedTuple):
    """Beliefs as rows of probabilities; sets of particles with the entropies, in nats, of what they are drawn from."""

    rows: Float[np.ndarray, "n d"]
    entropies: Float[np.ndarray, " n"] | None = None
    particles: int | None = None
    cells: int | None = None


class _Scores(NamedTuple):
    """Nats on the judging rows of every split, and which family did better on the choosing rows, by baseline."""

    entropy: Float[np.ndarray, "splits judge"]
    baseline: dict[str, Float[np.ndarray, "splits judge"]]  # none, time
    decoded: dict[str, dict[str, Float[np.ndarray, "splits judge"]]]  # by baseline and family
    better: dict[str, str]


def sufficiency(memory: Any, belief: Any, time: Any = None, *, key: PRNGKeyArray | None = None) -> Sufficiency:
    """Of memories [N, m]; the beliefs are rows of probabilities [N, d], sets of particles [N, M, d], or a pair (means
    [N, d], covariances [N, d, d]) of a Kalman filter; `time` [N] is the step of each row.

    One row is one pair, each from another episode. Particles are counted in cells, 10 along each column and 5 in
    `coarser`, and the state is then the cell. Without a key the same arrays always give the same numbers.
    """
    key_split, key_fit = jax.random.split(fast_key(jax.random.key(0) if key is None else key))
    memory = checked_rows("memory", memory, at_least=LEAST_PAIRS)
    times = _checked_times(time, len(memory))
    parts = splits(key_split, len(memory), SEEDS)
    x = jnp.asarray(reading(memory))
    if isinstance(belief, tuple):
        mean, covariance = checked_gaussian(belief, len(memory))
        scores = _Scores(*gaussian_cross_entropies(key_fit, x, mean, covariance, times, parts))
        return _summary(scores, number=len(memory), particles=None, cells=None)
    belief = np.asarray(belief)
    require(
        belief.ndim in (2, 3) and len(belief) == len(memory),
        rule="belief has a row for each memory, with the shape [N, d] or [N, M, d]",
        received=belief.shape,
        advice=f"pass one row of probabilities or one set of particles for each of the {len(memory)} memories",
    )
    if belief.ndim == 2:
        rows = checked_probabilities(belief)
        return _of_rows(key_fit, x, _Beliefs(rows), times, parts)
    grid, number = binned(belief, bins=BINS), belief.shape[1]
    fine, coarse = (_of_rows(key_fit, x, _counted(found, number), times, parts) for found in (grid, coarser(grid)))
    return dataclasses.replace(fine, coarser=coarse, warnings=fine.warnings + _disagreement(fine, coarse))


def _of_rows(key: PRNGKeyArray, x, beliefs: _Beliefs, times: Int[np.ndarray, " n"] | None, parts: Split) -> Sufficiency:
    rows = beliefs.rows
    extra = 0 if beliefs.cells is None else -rows.shape[1] % CELLS_AT_ONCE
    where = np.zeros(len(rows), int) if times is None else times
    tables: dict[str, np.ndarray] = {"none": np.stack([_mean(rows[train])[None] for train in parts.train])}
    if times is not None:
        tables["time"] = np.stack(
            [_means_at(rows, times, *map(np.asarray, each)) for each in zip(*parts[:2], strict=True)]
        )
        tables["none"] = np.broadcast_to(tables["none"], tables["time"].shape)
    stacked = np.pad(np.concatenate(list(tables.values())), ((0, 0), (0, 0), (0, extra)), constant_values=NEVER)
    y, baselines, which = (
        jnp.asarray(np.pad(rows, ((0, 0), (0, extra))), jnp.float32),
        jnp.asarray(stacked, jnp.float32),
        jnp.asarray(where),
    )
    repeated = Split(*(jnp.asarray(np.concatenate([part] * len(tables))) for part in parts))
    fits = Fits(key, x, y, which, baselines, repeated)
    baseline = {
        name: np.stack([_cross_entropy(rows[j], each[where[j]]) for j, each in zip(parts.judge, table, strict=True)])
        for name, table in tables.items()
    }
    entropies = _entropies(rows) if beliefs.entropies is None else beliefs.entropies
    found = fits.cross_entropies()
    by_name = {name: slice(place * SEEDS, (place + 1) * SEEDS) for place, name in enumerate(tables)}
    scores = _Scores(
        entropy=np.stack([entropies[judge] for judge in parts.judge]),
        baseline=baseline,
        decoded={
            name: {family: each.judged[here].astype(np.float64) for family, each in found.items()}
            for name, here in by_name.items()
        },
        better={
            name: min(found, key=lambda family: float(found[family].chosen[here].mean()))
            for name, here in by_name.items()
        },
    )
    return _summary(scores, number=len(rows), particles=beliefs.particles, cells=beliefs.cells)


def _summary(scores: _Scores, *, number: int, particles: int | None, cells: int | None) -> Sufficiency:
    readings = {name: _reading(scores, name) for name in scores.baseline}
    time_alone = (
        _ratio(scores.baseline["none"], scores.baseline["time"], scores.entropy) if "time" in readings else None
    )
    headline = readings.get("time", readings["none"]).best
    wide = headline is not None and headline.high - headline.low > _WIDE
    return Sufficiency(
        given_time=readings.get("time"),
        plain=readings["none"],
        time_alone=time_alone,
        entropy=float(scores.entropy.mean() / np.log(2)),
        num_samples=number,
        num_particles=particles,
        num_cells=cells,
        warnings=("the interval is wide: measure on more pairs",) if wide else (),
    )


def _reading(scores: _Scores, name: str) -> Reading:
    ratios = {
        family: _ratio(scores.baseline[name], judged, scores.entropy) for family, judged in scores.decoded[name].items()
    }
    available = float((scores.baseline[name] - scores.entropy).mean() / np.log(2))
    return Reading(available=available, linear=ratios["linear"], mlp=ratios["MLP"], best=ratios[scores.better[name]])


def _ratio(
    baseline: Float[np.ndarray, "splits judge"],
    decoded: Float[np.ndarray, "splits judge"],
    entropy: Float[np.ndarray, "splits judge"],
) -> Ratio | None:
    """(baseline − decoded) / (baseline − entropy) of the means; its interval resamples rows and splits."""
    parts = np.stack([baseline - decoded, baseline - entropy])
    gained, there = parts.mean(axis=(1, 2))
    if there < LEAST_BITS * np.log(2):
        return None
    weights, drawn = _resampling(parts.shape[2])
    means = parts @ weights.T  # by part, split and resample
    gained_b, there_b = means[:, drawn, np.arange(_RESAMPLES)[:, None]].mean(axis=2)
    low, high = np.percentile(np.maximum(gained_b / np.maximum(there_b, 1e-9), 0), [2.5, 97.5])
    value = max(0.0, float(gained / there))
    return Ratio(value, min(value, float(low)), max(value, float(high)))


@cache
def _resampling(number: int) -> tuple[Float[np.ndarray, "resamples number"], Int[np.ndarray, "resamples splits"]]:
    """The weight of each row in each resample, and which splits it is made of: the same for all measurements."""
    draw = np.random.default_rng(number)
    counts = np.stack([np.bincount(draw.integers(number, size=number), minlength=number) for _ in range(_RESAMPLES)])
    return counts / number, draw.integers(SEEDS, size=(_RESAMPLES, SEEDS))


def _mean(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """The logarithm of the mean belief, as if one more row were uniform: no state is impossible."""
    return np.log((rows.sum(axis=0, dtype=np.float64) + 1 / rows.shape[1]) / (len(rows) + 1))


def _means_at(
    rows: Float[np.ndarray, "n d"],
    times: Int[np.ndarray, " n"],
    train: Int[np.ndarray, " train"],
    choose: Int[np.ndarray, " choose"],
) -> Float[np.ndarray, "times d"]:
    """The logarithm of the mean belief at each t, shrunk to the overall mean as strongly as suits the choosing rows."""
    number, overall = int(times.max()) + 1, np.exp(_mean(rows[train]))
    (sums, counts), (other, _) = (_summed(rows[part], times[part], number) for part in (train, choose))
    tables = [np.log((sums + strength * overall) / (counts[:, None] + strength)) for strength in _STRENGTHS]
    return min(tables, key=lambda table: -float(np.sum(other * table)))


def _summed(rows, times: Int[np.ndarray, " n"], number: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the rows at each t, and how many they are."""
    at = csr_array((np.ones(len(times)), (times, np.arange(len(times)))), shape=(number, len(times)))
    return at @ rows.astype(np.float64), np.bincount(times, minlength=number)


def _cross_entropy(rows: Float[np.ndarray, "n d"], log_answer: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    return -np.einsum("nd,nd->n", rows, log_answer)


def _entropies(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    return entr(rows).sum(axis=1)


def _counted(found: Histogram, number: int) -> _Beliefs:
    """Sets of so many particles as frequencies, and the entropies of what they are drawn from (Grassberger, 2003).

    The entropy of frequencies is too low, since M particles leave likely cells empty. His estimator has
    log M − Σ n G(n) / M, with G(n) = ψ(n) + (−1)^n (ψ((n + 1) / 2) − ψ(n / 2)) / 2.
    """
    count = np.arange(1, number + 1)
    sign = np.where(count % 2 == 0, 0.5, -0.5)
    gained = np.concatenate([[0.0], digamma(count) + sign * (digamma((count + 1) / 2) - digamma(count / 2))])
    counts = np.rint(found.frequencies * number).astype(np.int64)
    entropies = np.log(number) - np.sum(counts * gained[counts], axis=1) / number
    rows = found.frequencies / found.frequencies.sum(axis=1, keepdims=True)
    return _Beliefs(rows, entropies, number, rows.shape[1])


def _disagreement(fine: Sufficiency, coarse: Sufficiency) -> tuple[str, ...]:
    if fine.value is None or coarse.value is None or abs(fine.value.value - coarse.value.value) <= 0.1:
        return ()
    return (f"on {coarse.num_cells} coarser cells it is {coarse.value.value:.0%}",)


def _checked_times(time: Any, number: int) -> Int[np.ndarray, " n"] | None:
    """Times as numbers of the distinct ones, from 0."""
    if time is None:
        return None
    times = np.asarray(time)
    require(
        times.shape == (number,) and times.dtype.kind in "iu",
        rule=f"time has a whole number for each of the {number} memories",
        received=f"{times.dtype} of shape {times.shape}",
        advice="pass the step at which each pair was taken, or leave time out",
    )
    return np.unique(times, return_inverse=True)[1]


class Steps(NamedTuple):
    """Memories, beliefs and times, a row for each step of an episode."""

    memory: Float[np.ndarray, "n m"]
    belief: Float[np.ndarray, "n *M d"]
    time: Int[np.ndarray, " n"]


class StepShare(NamedTuple):
    """What the memory holds at one step."""

    time: int
    number: int  # of judged episodes that last so long
    available: float  # bits: what the belief knows about the state beyond the time
    share: Ratio | None  # None where that is next to nothing


def sufficiency_by_step(pairs: Any, along: Any, *, key: PRNGKeyArray | None = None) -> tuple[StepShare, ...]:
    """`pairs` has one step of each of N episodes, `along` all steps of others; both as `Steps`, or what can be such.

    The beliefs are rows of probabilities [N, d] or sets of particles [N, M, d], of one kind in both.
    """
    pairs, along = (Steps(*map(np.asarray, given)) for given in (pairs, along))
    number = len(pairs.time)
    require(
        number >= LEAST_PAIRS,
        rule=f"a decoder for all steps needs at least {LEAST_PAIRS} pairs",
        received=number,
        advice="measure on more episodes",
    )
    x = checked_rows("memory", np.concatenate([pairs.memory, along.memory]))
    beliefs = _rows(np.concatenate([pairs.belief, along.belief]))
    known, times = np.unique(np.concatenate([pairs.time, along.time]), return_inverse=True)
    key_split, key_fit = jax.random.split(fast_key(jax.random.key(0) if key is None else key))
    order = generator(key_split).permutation(number)
    train, choose = order[: number * 4 // 5], order[number * 4 // 5 :]
    judge = number + np.arange(len(along.time))
    baseline = _means_at(beliefs.rows, times, train, choose)
    fits = Fits(
        key_fit,
        jnp.asarray(reading(x)),
        jnp.asarray(beliefs.rows, jnp.float32),
        jnp.asarray(times),
        jnp.asarray(baseline[None], jnp.float32),
        Split(*(jnp.asarray(part[None]) for part in (train, choose, judge))),
    ).cross_entropies()
    best = min(fits.values(), key=lambda found: float(found.chosen[0]))
    entropies = _entropies(beliefs.rows) if beliefs.entropies is None else beliefs.entropies
    unread = _cross_entropy(beliefs.rows[judge], baseline[times[judge]])
    gained = np.stack([unread - best.judged[0], unread - entropies[judge]])
    return tuple(
        _share(int(known[time]), gained[:, times[judge] == time])
        for time in np.unique(times[judge])
        if np.sum(times[judge] == time) >= LEAST_ROWS
    )


def _rows(belief: Float[np.ndarray, "n *M d"]) -> _Beliefs:
    if belief.ndim == 2:
        return _Beliefs(checked_probabilities(belief))
    return _counted(binned(belief, bins=BINS), belief.shape[1])


def _share(time: int, parts: Float[np.ndarray, "2 n"]) -> StepShare:
    """Of the nats gained by the memory and by the belief; episodes are drawn anew for the interval."""
    gained, there = parts.mean(axis=1)
    number, available = parts.shape[1], float(there / np.log(2))
    if available < LEAST_BITS:
        return StepShare(time, number, available, None)
    drawn = np.random.default_rng(number).integers(number, size=(_STEP_RESAMPLES, number))
    means = parts[:, drawn].mean(axis=2)
    low, high = np.percentile(np.maximum(means[0] / np.maximum(means[1], 1e-9), 0), [2.5, 97.5])
    value = max(0.0, float(gained / there))
    return StepShare(time, number, available, Ratio(value, min(value, float(low)), max(value, float(high))))
