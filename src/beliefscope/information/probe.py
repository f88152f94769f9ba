"""A decoder probe: how much of the belief a simple decoder reads from the memory.

`decode(key, memory, belief)` takes memories [N, m] and beliefs, rows of probabilities [N, d] or particle sets [N, M, d]
(which `histogram` turns into rows of frequencies), fits a softmax decoder on 60 % of the pairs, keeps the epoch that
was best on another 20 %, and scores it once on the last 20 %. The returned `Decoding` has the scores beside those of
the baseline, which ignores the memory and always answers the mean belief. `fit_decoder` takes the same and returns the
fitted `Decoder`, which answers for other memories too.

Particle sets become frequencies on a grid that all sets share. A column of at most two values (an entry of a one-hot
code) is divided by value, any other into `bins` equal parts of its range over all particles. Cells into which no
particle falls are left out.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import log_softmax

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import generator
from beliefscope.information.bounds import Samples
from beliefscope.information.interface import checked_rows
from beliefscope.information.networks import NEVER, Layers, fit_network

MAX_CELLS = 10_000
_NUMBERS_AT_ONCE = 250_000  # what is computed of so many stays in a processor's cache


class _Axis(NamedTuple):
    """How one column is divided: by value, or into equal parts of its range."""

    low: float
    high: float
    parts: int
    by_value: bool

    def part(self, values: Float[np.ndarray, "*batch"]) -> Int[np.ndarray, "*batch"]:
        """In which part each value lies."""
        if self.by_value:
            return (values > self.low).astype(np.int64)
        part = (values.astype(np.float64) - self.low) / (self.high - self.low) * self.parts
        return np.minimum(part.astype(np.int64), self.parts - 1)

    def centre(self, part: Int[np.ndarray, " cells"]) -> Float[np.ndarray, " cells"]:
        if self.by_value:
            return np.where(part > 0, self.high, self.low)
        return self.low + (part + 0.5) / self.parts * (self.high - self.low)


class Histogram(NamedTuple):
    """How the particles of each set are spread over the cells."""

    frequencies: Float[np.ndarray, "n cells"]
    parts: Int[np.ndarray, "cells d"]  # in which part of each column a cell lies
    axes: tuple[_Axis, ...]

    @property
    def centres(self) -> Float[np.ndarray, "cells d"]:
        """The centre of each cell; along a column that is divided by value it is that value."""
        along = [axis.centre(part) for axis, part in zip(self.axes, self.parts.T, strict=True)]
        return np.stack(along, axis=1).astype(np.float32)


def histogram(sets: Any, *, bins: int = 10) -> Float[np.ndarray, "n cells"]:
    """The frequencies of particle sets [N, M, d], in single precision."""
    return binned(sets, bins=bins).frequencies


def binned(sets: Any, *, bins: int = 10) -> Histogram:
    """The same with the cells."""
    sets = _checked_sets(sets, bins)
    axes = tuple(_divided(column, bins) for column in np.moveaxis(sets, -1, 0))
    blocks = np.array_split(np.arange(len(sets)), min(len(sets), -(-sets.size // _NUMBERS_AT_ONCE)))
    cell, parts = _numbered(sets, axes, blocks)
    return Histogram(_frequencies(cell, len(parts), blocks), parts, axes)


def _checked_sets(sets: Any, bins: Any) -> Float[np.ndarray, "n m d"]:
    require(
        is_whole(bins) and 1 <= bins <= 1000,
        rule="the number of bins of a column is a whole number from 1 to 1000",
        received=bins,
        advice="10 bins show where the particles are without most cells standing empty",
    )
    sets = np.asarray(sets)
    require(
        sets.ndim == 3 and sets.size > 0,
        rule="particle sets have the shape [N, M, d], at least one particle each",
        received=sets.shape,
        advice="put the samples on the first axis, the particles on the second and their coordinates on the third",
    )
    # A check of rows reads sets too, once each is flattened.
    return checked_rows("sets", sets.reshape(len(sets), -1), at_least=1).reshape(sets.shape)


def _frequencies(
    cell: Int[np.ndarray, "n m"], num_cells: int, blocks: list[np.ndarray]
) -> Float[np.ndarray, "n cells"]:
    """The share of each set's particles in each cell, counted for a block of sets at once."""
    found = np.empty((len(cell), num_cells), np.float32)
    for block in blocks:
        in_row = cell[block] + num_cells * np.arange(len(block))[:, None]  # as if each set had cells of its own
        counts = np.bincount(in_row.ravel(), minlength=len(block) * num_cells)
        found[block] = counts.reshape(len(block), -1) / cell.shape[1]
    return found


def coarser(found: Histogram) -> Histogram:
    """Half as many bins along each column that is not divided by value: two neighbours become one."""
    axes = tuple(axis if axis.by_value else axis._replace(parts=-(-axis.parts // 2)) for axis in found.axes)
    halves = np.where([axis.by_value for axis in axes], found.parts, found.parts // 2)
    parts, merged = np.unique(halves, axis=0, return_inverse=True)
    return Histogram(found.frequencies @ np.eye(len(parts), dtype=np.float32)[merged.ravel()], parts, axes)


def _divided(column: Float[np.ndarray, "n m"], bins: int) -> _Axis:
    low, high = float(column.min()), float(column.max())
    by_value = all(np.all((row == low) | (row == high)) for row in column)  # most columns fail at the first row
    return _Axis(low, high, parts=1 + (high > low) if by_value else bins, by_value=by_value)


def _numbered(
    sets: Float[np.ndarray, "n m d"], axes: tuple[_Axis, ...], blocks: list[np.ndarray]
) -> tuple[Int[np.ndarray, "n m"], Int[np.ndarray, "cells d"]]:
    """The cell of each particle, and the parts of each cell. After each column the cells that occur are numbered anew,
    so that the numbers stay small however many columns there are."""
    cell, parts = np.zeros(sets.shape[:2], np.int64), np.zeros((1, 0), np.int64)
    for place, axis in enumerate(axes):
        occupied = np.zeros(len(parts) * axis.parts, bool)
        for block in blocks:
            cell[block] = cell[block] * axis.parts + axis.part(sets[block, :, place])
            occupied[cell[block]] = True
        numbers, anew = np.flatnonzero(occupied), np.cumsum(occupied) - 1
        for block in blocks:
            cell[block] = anew[cell[block]]
        parts = np.column_stack([parts[numbers // axis.parts], numbers % axis.parts])
        require(
            len(parts) <= MAX_CELLS,
            rule=f"the particles fall into at most {MAX_CELLS} cells",
            received=f"{len(parts)} or more",
            advice="use fewer bins, or keep only the columns that matter",
        )
    return cell, parts


_BATCH_SIZE = 512
CELLS_AT_ONCE = 128  # sets fall into ever another number of cells: rounded up, one compiled program fits many


class _Settings(NamedTuple):
    hidden: tuple[int, ...]
    learning_rate: float  # of Adam at the start; it falls to zero along a cosine
    steps: int  # whatever the number of samples: few samples need as many as many do


# On 10,000 memories of 64 numbers and beliefs of 106: a posterior that is a softmax of the memory is read to 0.001 bits
# by the linear probe, and 102 codes that lie close together to 0.07 bits; fewer or smaller steps leave the codes mixed.
# Batches of 1024 would read them to 0.05 bits in twice the time.
_SETTINGS = {"linear": _Settings((), 0.05, 4000), "MLP": _Settings((128, 128), 0.002, 2000)}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How well the belief b was read from the memory, as means over the held-out pairs; b̂ is the decoder's answer.

    Numbers with another N, M or probe cannot be compared, nor can those of particle sets with those of probabilities.
    """

    cross_entropy: float  # −Σ b log2 b̂, bits
    kl: float  # KL(b‖b̂), bits: the cross-entropy less the entropy of b, 0 where the belief is read exactly
    total_variation: float  # ½ Σ |b − b̂|, from 0 to 1
    baseline_cross_entropy: float  # the same three where b̂ is the mean of the training beliefs and one uniform row
    baseline_kl: float
    baseline_total_variation: float
    probe: str
    num_samples: int  # N, of which 60 % trained
    num_held_out: int
    num_particles: int | None  # M, where the beliefs were particle sets


class _Scores(NamedTuple):
    cross_entropy: float
    kl: float
    total_variation: float


class Decoder(NamedTuple):
    """A fitted probe: memories of the same agent → b̂."""

    layers: Layers  # memory → logits, those of b̂ first
    offset: Float[np.ndarray, " m"]  # a memory is read as (memory − offset) · scale
    scale: Float[np.ndarray, " m"]
    mean: Float[np.ndarray, " d"]  # what the baseline answers
    held_out: Int[np.ndarray, " held_out"]  # the numbers of the pairs that had no part in the fit
    centres: Float[np.ndarray, "d c"] | None  # of the cells that b̂ is over, where the beliefs were particle sets

    def logits(self, memory: Any) -> Float[np.ndarray, "n d"]:
        rows = checked_rows("memory", memory, at_least=1)
        require(
            rows.shape[1] == len(self.offset),
            rule=f"this decoder reads memories of {len(self.offset)} numbers",
            received=rows.shape,
            advice="pass memories of the agent that it was fitted to",
        )
        return np.asarray(self.layers(jnp.asarray(_scaled(rows, self.offset, self.scale))))[:, : len(self.mean)]

    def probabilities(self, memory: Any) -> Float[np.ndarray, "n d"]:
        """b̂ for each row of `memory` [n, m], in single precision."""
        return np.exp(log_softmax(self.logits(memory).astype(np.float64), axis=1)).astype(np.float32)


class _Targets(NamedTuple):
    """The pairs as a decoder reads them: the beliefs are rows of probabilities."""

    memory: Float[np.ndarray, "n m"]
    belief: Float[np.ndarray, "n d"]
    centres: Float[np.ndarray, "d c"] | None


def decode(key: PRNGKeyArray, memory: Any, belief: Any, *, probe: Literal["linear", "MLP"] = "linear") -> Decoding:
    """Fit the probe, memory [N, m] → belief [N, d] or [N, M, d], and score it on pairs that it has not seen.

    "linear" is multinomial logistic regression, "MLP" has two hidden layers of 128 units. Where the
    memory does not determine the belief, N well above the m·d weights is needed: what is not learnt because there are
    too few samples counts as not held.
    """
    settings, targets = _settings(probe), _targets(memory, belief)
    decoder = _decoder(key, targets, settings)
    memory_left, belief_left = targets.memory[decoder.held_out], targets.belief[decoder.held_out]
    ours = _scores(belief_left, decoder.logits(memory_left))
    theirs = _scores(belief_left, np.log(decoder.mean)[None])
    return Decoding(
        **ours._asdict(),
        **{f"baseline_{name}": score for name, score in theirs._asdict().items()},
        probe=probe,
        num_samples=len(targets.memory),
        num_held_out=len(decoder.held_out),
        num_particles=None if targets.centres is None else np.shape(belief)[1],
    )


def fit_decoder(key: PRNGKeyArray, memory: Any, belief: Any, *, probe: Literal["linear", "MLP"] = "linear") -> Decoder:
    """The decoder that `decode` scores, from the same arguments."""
    settings, targets = _settings(probe), _targets(memory, belief)
    return _decoder(key, targets, settings)


def _settings(probe: Any) -> _Settings:
    require(
        isinstance(probe, str) and probe in _SETTINGS,
        rule="a probe is 'linear' or 'MLP'",
        received=probe,
        advice="begin with 'linear', which shows what can be read without further computation",
    )
    return _SETTINGS[probe]


def _targets(memory: Any, belief: Any) -> _Targets:
    memory, belief = checked_rows("memory", memory, at_least=50), np.asarray(belief)
    require(
        belief.ndim in (2, 3),
        rule="belief has the shape [N, d] or [N, M, d]",
        received=belief.shape,
        advice="pass one row of probabilities or one set of particles for each memory",
    )
    require(
        len(memory) == len(belief),
        rule="memory and belief need the same number of samples, one pair a row",
        received=(len(memory), len(belief)),
        advice="pass arrays whose first axes agree",
    )
    if belief.ndim == 3:
        found = binned(belief)
        return _Targets(memory, found.frequencies, found.centres)
    return _Targets(memory, checked_probabilities(belief), None)


def _decoder(key: PRNGKeyArray, targets: _Targets, settings: _Settings) -> Decoder:
    key_split, key_init, key_epochs = jax.random.split(key, 3)
    memory, belief, centres = targets
    order = generator(key_split).permutation(len(memory))
    train, choose, held_out = np.split(order, [round(0.6 * len(order)), round(0.8 * len(order))])

    # As if one more training row were uniform: a state that was never seen stays possible, and the logarithm finite.
    mean = (belief[train].sum(axis=0, dtype=np.float64) + 1 / belief.shape[1]) / (len(train) + 1)
    offset, scale = _scaling(memory[train])
    extra = 0 if centres is None else -belief.shape[1] % CELLS_AT_ONCE
    padded = np.pad(belief.astype(np.float32), ((0, 0), (0, extra)))
    trained, chosen = (
        Samples(jnp.asarray(_scaled(memory[i], offset, scale)), jnp.asarray(padded[i])) for i in (train, choose)
    )
    bias = np.pad(np.log(mean), (0, extra), constant_values=NEVER)
    layers = _fit(key_epochs, _start(key_init, trained, bias, settings), trained, chosen, settings)
    return Decoder(layers, offset, scale, mean, held_out, centres)


def checked_probabilities(belief: Any) -> Float[np.ndarray, "n d"]:
    rows = checked_rows("belief", belief)
    sums = rows.sum(axis=1, dtype=np.float64)
    require(
        bool(np.all(rows >= 0)) and bool(np.all(np.abs(sums - 1) <= 1e-4)),
        rule="each belief is a row of probabilities, non-negative and of sum 1",
        received=f"sums from {sums.min():g} to {sums.max():g}, the smallest entry {rows.min():g}",
        advice="pass probabilities or particle sets, since the mean and covariance of a Kalman filter are neither",
    )
    return rows / sums[:, None]


def _scaling(train: Float[np.ndarray, "train m"]) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """What to take off and to multiply with for mean 0 and deviation 1; what is constant becomes 0."""
    known = train.astype(np.float64)
    varies = np.ptp(known, axis=0) > 0  # the deviation of equal numbers is rounding, not always 0
    return known.mean(axis=0), np.where(varies, 1 / np.where(varies, known.std(axis=0), 1.0), 0.0)


def _scaled(
    memory: Float[np.ndarray, "n m"], offset: Float[np.ndarray, " m"], scale: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "n m"]:
    return ((memory - offset) * scale).astype(np.float32)


def _start(key: PRNGKeyArray, train: Samples, bias: Float[np.ndarray, " d"], settings: _Settings) -> Layers:
    """A decoder that answers by its bias, the mean belief: nothing to unlearn where the memory says nothing."""
    layers = Layers(key, (train.x.shape[1], *settings.hidden, len(bias))).silenced()
    return eqx.tree_at(lambda decoder: decoder.biases[-1], layers, jnp.asarray(bias, jnp.float32))


@partial(jax.jit, static_argnames="settings")
def _fit(key: PRNGKeyArray, start: Layers, train: Samples, choose: Samples, settings: _Settings) -> Layers:
    """The decoder after the epoch, the start included, whose cross-entropy on `choose` was least."""
    number = len(train.x)
    size = min(_BATCH_SIZE, number)
    epochs = -(-settings.steps // (number // size))
    adam = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, epochs * (number // size)))

    def batches(key_epoch: PRNGKeyArray) -> Int[Array, "steps size"]:
        return jax.random.permutation(key_epoch, number)[: number // size * size].reshape(-1, size)

    def step(carry, batch: Int[Array, " size"]):
        decoder, state = carry
        gradient = jax.grad(_cross_entropy)(decoder, Samples(train.x[batch], train.y[batch]))
        updates, state = adam.update(gradient, state)
        return eqx.apply_updates(decoder, updates), state

    return fit_network(
        jax.random.split(key, epochs),
        (start, adam.init(start)),  # pyright: ignore[reportArgumentType]
        batches=batches,
        step=step,
        network=lambda state: state[0],
        value=lambda decoder: -_cross_entropy(decoder, choose),
        include_start=True,
    ).best


def _cross_entropy(decoder: Layers, samples: Samples) -> Float[Array, ""]:
    return jnp.mean(optax.softmax_cross_entropy(decoder(samples.x), samples.y))


def _scores(belief: Float[np.ndarray, "n d"], logits: Float[np.ndarray, "#n d"]) -> _Scores:
    """In double precision. Log-softmax needs no floor: finite logits give finite bits, however unlikely the state."""
    belief, log_answer = belief.astype(np.float64), log_softmax(logits.astype(np.float64), axis=1)
    cross_entropy = -np.mean(np.sum(belief * log_answer, axis=1)) / np.log(2)
    entropy = -np.mean(np.sum(belief * np.log(np.where(belief > 0, belief, 1.0)), axis=1)) / np.log(2)
    total_variation = np.mean(np.sum(np.abs(belief - np.exp(log_answer)), axis=1)) / 2
    return _Scores(float(cross_entropy), float(cross_entropy - entropy), float(total_variation))
