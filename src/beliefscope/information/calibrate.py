"""How well an estimator measures known information with beliefs like these.

The given beliefs are turned into synthetic memories whose information with them is known. Each belief is an atom, or,
where beliefs seldom recur, one of some hundred cells that k-means finds. A synthetic memory is a random code of the
atom, as wide as the memory to be measured, with noise: h = tanh(W φ) + σξ. I(h; atom) follows from the posterior over
atoms, with a Monte Carlo error. h depends on the belief only through the atom, so this is also I(h; b). The weakest
noise is zero, where the truth is the entropy of the atoms. The curve of estimated against true bits is shown beside a
number. It is never used to correct one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.best_bound import BestBound
from beliefscope.information.columns import set_features
from beliefscope.information.entropy import exact_entropy, row_labels, smoothed_information
from beliefscope.information.interface import Estimate, Estimator, checked_belief

NOISES = (0.0, 0.2, 0.4, 0.8)  # σ in units of √m, for codes of m columns: two of them are about √m apart
_CELLS = 128
_ROUNDS = 10  # of k-means
_SELDOM = 10  # rows that an atom has on average, below which beliefs are put into cells
_DRAWS = 50_000  # of the noise, for each truth


class Point(NamedTuple):
    """One synthetic memory."""

    noise: float
    truth: float  # bits
    truth_error: float  # its Monte Carlo error
    read: Estimate


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Read against true bits, from the least information to the most."""

    points: tuple[Point, ...]
    num_atoms: int
    in_cells: bool  # the atoms are cells of beliefs that seldom recur

    def __str__(self) -> str:
        lines = [f"  truth {point.truth:5.2f}   reads {point.read.bits:5.2f}" for point in self.points]
        return "\n".join([f"{self.num_atoms} {'cells' if self.in_cells else 'beliefs'}, bits", *lines])

    def sentence(self, bits: float) -> str:
        """The truth at which the estimator reads this number, for people: "reads 5.4 where the truth is 6.1"."""
        order = np.argsort([point.read.bits for point in self.points])
        reads = np.array([self.points[place].read.bits for place in order])
        truths = np.array([self.points[place].truth for place in order])
        if bits > reads[-1]:
            return f"reads {reads[-1]:.1f} at most, where the truth is {truths[-1]:.1f}"
        return f"reads {max(bits, reads[0]):.1f} where the truth is {np.interp(bits, reads, truths):.1f}"


def calibrate(
    belief: Any,
    memory_size: int,
    *,
    estimator: Estimator | None = None,
    noises: tuple[float, ...] = NOISES,
    key: PRNGKeyArray | None = None,
) -> Calibration:
    """Known information between beliefs [N, d] or [N, M, d] and synthetic memories [N, memory_size], and what is read.

    A minute or two on one core with the default estimator, `BestBound()`: one estimate for each noise.
    """
    belief = checked_belief("belief", belief)
    require(
        is_whole(memory_size) and memory_size >= 1,
        rule="the memory's size is a whole number of at least 1",
        received=memory_size,
        advice="pass the number of columns of the memory that is measured, memory.shape[1]",
    )
    require(
        len(noises) > 0 and all(noise >= 0 for noise in noises),
        rule="each noise is a number of at least 0",
        received=noises,
        advice=f"leave it out for {NOISES}",
    )
    key_codes, *keys = jax.random.split(fast_key(jax.random.key(0) if key is None else key), 1 + len(noises))
    rows = set_features(belief, belief) if belief.ndim == 3 else np.asarray(belief, np.float64)
    atoms, in_cells = _atoms(rows)
    weights = np.bincount(atoms) / len(atoms)
    codes = _codes(generator(key_codes), rows, atoms, memory_size)
    points = [
        _point(each, noise, codes, atoms, weights, belief, estimator or BestBound())
        for each, noise in zip(keys, noises, strict=True)
    ]
    return Calibration(
        points=tuple(sorted(points, key=lambda point: point.truth)), num_atoms=len(weights), in_cells=in_cells
    )


def _point(
    key: PRNGKeyArray,
    noise: float,
    codes: Float[np.ndarray, "atoms m"],
    atoms: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " atoms"],
    belief: np.ndarray,
    estimator: Estimator,
) -> Point:
    key_noise, key_truth, key_fit = jax.random.split(key, 3)
    deviation = float(noise * np.sqrt(codes.shape[1]))
    memory = codes[atoms] + deviation * generator(key_noise).normal(size=(len(atoms), codes.shape[1]))
    truth, error = exact_entropy(weights), 0.0
    if noise > 0:
        draws = max(2, _DRAWS // len(weights))
        found = smoothed_information(
            key_truth, codes, np.arange(len(weights)), weights, noise=deviation, num_samples=draws
        )
        truth, error = found.bits, found.standard_error
    return Point(noise, truth, error, estimator.estimate(key_fit, memory.astype(np.float32), belief))


def _atoms(rows: Float[np.ndarray, "n d"]) -> tuple[Int[np.ndarray, " n"], bool]:
    """The number of each row's atom, and whether atoms are cells."""
    atoms = row_labels(rows)
    number = int(atoms.max()) + 1
    if number * _SELDOM <= len(rows):
        return atoms, False
    _, cells = np.unique(_cells(rows), return_inverse=True)
    return cells, True


def _cells(rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """The k-means cell of each row; columns are in units of their deviation."""
    rows = rows / np.maximum(rows.std(axis=0), 1e-12)
    centres = rows[np.random.default_rng(0).choice(len(rows), min(_CELLS, len(rows)), replace=False)]
    nearest = np.zeros(len(rows), int)
    for _ in range(_ROUNDS):
        nearest = np.argmin(np.sum(centres**2, axis=1) - 2 * rows @ centres.T, axis=1)
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, rows)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return nearest


def _codes(
    draw: np.random.Generator, rows: Float[np.ndarray, "n d"], atoms: Int[np.ndarray, " n"], size: int
) -> Float[np.ndarray, "atoms size"]:
    """Codes of an atom's mean features and of random numbers of its own: near atoms have nearer codes."""
    counts = np.bincount(atoms)
    means = np.zeros((len(counts), rows.shape[1]))
    np.add.at(means, atoms, rows)
    means /= counts[:, None]
    means = (means - means.mean(axis=0)) / np.maximum(means.std(axis=0), 1e-12)
    mixed = means @ draw.normal(size=(means.shape[1], size)) / np.sqrt(means.shape[1])
    return np.tanh(mixed + draw.normal(size=mixed.shape))
