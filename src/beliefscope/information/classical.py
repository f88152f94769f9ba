"""Estimators without networks: nearest neighbours, and the formula for Gaussian vectors.

`KSG` is the first estimator of Kraskov, Stögbauer and Grassberger: Estimating mutual information (Physical Review E 69,
2004). It takes paired vectors x [N, dx] and y [N, dy] and returns an `Estimate`. On Gaussian data in one or two
dimensions it is right to a few hundredths of a bit, and so on their cubes; it reads low where dimensions or bits are
many: with N = 5000 and d = 4, 1.8 of 2 bits and 5.0 of 6.

`Gaussian` is the information between jointly Gaussian vectors, from their covariance: I = ½ log2(det C_x det C_y /
det C_xy). On other data it is the information that second moments show. `gaussian_bits` takes the known covariance of
(x, y) and returns the bits.

`cross_checks` gives both to compare with the best bound. They are not bounds and never chosen.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray
from scipy.spatial import cKDTree
from scipy.special import digamma, polygamma

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import generator
from beliefscope.information.columns import normal_scores, whitening
from beliefscope.information.interface import Estimate, checked_pair

_NUM_SUBSETS = 10
_SMALLEST_SUBSET = 20
# 10,000 normal numbers in single precision repeat about one in a thousand; a discrete variable repeats all of them.
_MOST_REPEATS = 0.01


@dataclass(frozen=True)
class KSG:
    """I = ψ(k) + ψ(N) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩ with k neighbours, in the maximum norm of normal scores.

    Columns become normal scores first, which does not change the information and removes heavy tails.


    The standard error is the spread of the estimates on 10 disjoint random subsets, divided by √10: the variance of
    this estimator falls as 1/N (Holmes and Nemenman, Physical Review E 100, 2019), so that a tenth of the data has ten
    times the variance. It does not include the bias, and is nan where the subsets would be too small to measure.
    """

    neighbours: int = 3

    def __post_init__(self) -> None:
        require(
            is_whole(self.neighbours) and self.neighbours >= 1,
            rule="the number of neighbours is a whole number of at least 1",
            received=self.neighbours,
            advice="3 is usual, more gives less variance and more bias",
        )

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        pair = checked_pair(x, y, sets_allowed=False)
        num_samples = len(pair.x)
        require(
            num_samples > self.neighbours,
            rule=f"{self.neighbours} neighbours need at least {self.neighbours + 1} samples",
            received=num_samples,
            advice="pass more samples or ask for fewer neighbours",
        )
        for name, rows in pair._asdict().items():
            _require_few_repeats(name, rows)
        x, y = (normal_scores(rows, rows).astype(np.float64) for rows in pair)
        return Estimate(
            bits=self._bits(x, y),
            standard_error=self._standard_error(key, x, y),
            num_samples=num_samples,
            num_particles=None,
            estimator=f"KSG, k = {self.neighbours}",
            # No ball holds fewer than its own centre and k − 1 neighbours.
            ceiling=float((digamma(num_samples) - digamma(self.neighbours)) / np.log(2)),
        )

    def _bits(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
        k, joint = self.neighbours, np.concatenate([x, y], axis=1)
        # The nearest 'neighbour' of a point in the tree is the point itself.
        radius = np.asarray(cKDTree(joint).query(joint, k=[k + 1], p=np.inf)[0])[:, 0]
        spread = digamma(_num_within(x, radius)) + digamma(_num_within(y, radius))
        return float((digamma(k) + digamma(len(x)) - spread.mean()) / np.log(2))

    def _standard_error(self, key: PRNGKeyArray, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
        if len(x) < _NUM_SUBSETS * max(_SMALLEST_SUBSET, self.neighbours + 1):
            return float("nan")
        order = generator(key).permutation(len(x))
        bits = [self._bits(x[part], y[part]) for part in np.array_split(order, _NUM_SUBSETS)]
        return float(np.std(bits, ddof=1) / np.sqrt(_NUM_SUBSETS))


def _num_within(points: Float[np.ndarray, "n d"], radius: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """n + 1: the points strictly nearer than the radius, the centre among them."""
    return cKDTree(points).query_ball_point(points, r=np.nextafter(radius, 0), p=np.inf, return_length=True)


def _require_few_repeats(name: str, rows: Float[np.ndarray, "n d"]) -> None:
    counts = Counter(row.tobytes() for row in rows + 0.0)  # no negative zeros: their bytes differ
    fraction = sum(count for count in counts.values() if count > 1) / len(rows)
    require(
        fraction <= _MOST_REPEATS,
        rule=f"KSG measures continuous variables, and at most {_MOST_REPEATS:.0%} of the rows of {name} may repeat",
        received=round(fraction, 4),
        advice="use AtomsBound or mutual_information for beliefs that recur, and for one-hot or tied data",
    )


# Columns count as dependent when what is left of one after the others is so many roundings of its precision.
_ROUNDINGS = 100


class NoInformation(NamedTuple):
    """What the sample covariances of independent x and y show, in nats."""

    mean: float
    variance: float


@dataclass(frozen=True)
class Gaussian:
    """Sample covariances in the closed form, less its bias for Gaussian data; few bits can come out negative.

    The expectation of a log determinant of a Wishart matrix is a sum of digamma functions, so the bias is known
    exactly: it does not depend on the true covariance. The standard error is the delta method's, √(Σ ρ² / N) nats with
    canonical correlations ρ, plus (as a variance) the exact spread at ρ = 0, where the delta method gives nothing.
    Both hold for Gaussian data.
    """

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        pair = checked_pair(x, y, sets_allowed=False)
        num_samples, size_x, size_y = len(pair.x), pair.x.shape[1], pair.y.shape[1]
        require(
            num_samples > size_x + size_y,
            rule=f"the covariance of {size_x} + {size_y} columns needs more than {size_x + size_y} samples",
            received=num_samples,
            advice="pass more samples or fewer columns",
        )
        basis_x, basis_y = _basis("x", pair.x), _basis("y", pair.y)
        # The sines of the angles between the two spaces, √(1 − ρ²), without the cancellation of 1 − ρ² near ρ = 1.
        sines = np.linalg.svd(basis_y - basis_x @ (basis_x.T @ basis_y), compute_uv=False)
        tolerance = _ROUNDINGS * max(np.finfo(pair.x.dtype).eps, np.finfo(pair.y.dtype).eps)
        require(
            bool(sines.min() > tolerance),
            rule="x does not determine a column of y linearly, which would make the information infinite",
            received=f"the residual {sines.min():.1e}",
            advice="leave that column out or add noise to it",
        )
        nothing = no_information(num_samples - 1, size_x, size_y)
        # Squared sample correlations are dx dy / (N − 1) too many in sum where the true ones are zero.
        squares = max(0.0, float(np.sum(1 - sines**2)) - size_x * size_y / (num_samples - 1))
        return Estimate(
            bits=float(-np.sum(np.log2(sines)) - nothing.mean / np.log(2)),
            standard_error=float(np.sqrt(squares / num_samples + nothing.variance) / np.log(2)),
            num_samples=num_samples,
            num_particles=None,
            estimator="Gaussian",
        )


def gaussian_bits(covariance: Any, dx: int) -> float:
    """The bits between the first dx entries of a Gaussian vector and the rest, from its covariance [d, d]."""
    covariance = np.asarray(covariance, np.float64)
    require(
        covariance.ndim == 2 and covariance.shape == covariance.T.shape and np.allclose(covariance, covariance.T),
        rule="a covariance is a symmetric matrix",
        received=covariance.shape,
        advice="pass the covariance of x and y together",
    )
    require(
        is_whole(dx) and 0 < dx < len(covariance),
        rule=f"dx of {len(covariance)} entries belong to x, at least one and not all",
        received=dx,
        advice="pass the covariance of x and y together",
    )
    blocks = covariance[:dx, :dx], covariance[dx:, dx:], covariance
    signs, log_dets = zip(*(np.linalg.slogdet(block) for block in blocks), strict=True)
    require(
        bool(min(signs) > 0),
        rule="a covariance is positive definite",
        received=f"the smallest eigenvalue {np.linalg.eigvalsh(covariance).min():.1e}",
        advice="leave out constant and dependent entries",
    )
    return float((log_dets[0] + log_dets[1] - log_dets[2]) / 2 / np.log(2))


def _basis(name: str, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """An orthonormal basis of the centred columns."""
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    length, size = np.linalg.norm(centred, axis=0), np.abs(rows).max(axis=0) * np.sqrt(len(rows))
    tolerance = _ROUNDINGS * np.finfo(rows.dtype).eps
    constant = length <= tolerance * size
    require(
        not constant.any(),
        rule=f"no column of {name} is constant, which would make its covariance singular",
        received=f"{int(constant.sum())} constant of {rows.shape[1]} columns",
        advice="leave constant columns out",
    )
    basis, lengths, _ = np.linalg.svd(centred / length, full_matrices=False)
    require(
        bool(lengths[-1] > tolerance * lengths[0]),
        rule=f"the columns of {name} are linearly independent, so that their covariance is not singular",
        received=f"{int(np.sum(lengths > tolerance * lengths[0]))} independent of {rows.shape[1]} columns",
        advice="leave duplicate columns out, and one column of probabilities that sum to 1",
    )
    return basis


def no_information(freedom: int, dx: int, dy: int) -> NoInformation:
    """Of the plug-in number at zero information, ½ Σ over the columns of x of −log Beta((ν − dy − i)/2, dy/2)."""
    full = (freedom - np.arange(dx)) / 2
    left = full - dy / 2
    return NoInformation(
        mean=float(np.sum(digamma(full) - digamma(left))) / 2,
        variance=float(np.sum(polygamma(1, left) - polygamma(1, full))) / 4,
    )


_KSG_ROWS = 2000  # drawn from all: its cost grows faster than their number
_KSG_COLUMNS = 8  # of both sides together: with more it reads low, and its search is slow
_SURE = 1e-9  # what a correlation of so little less than 1 leaves is rounding


def cross_checks(x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> dict[str, float]:
    """In bits, by name. KSG is left out where rows repeat or columns are many, the formula where rows are too few."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    found = {}
    if x.shape[1] + y.shape[1] <= _KSG_COLUMNS:
        some = np.random.default_rng(0).permutation(len(x))[:_KSG_ROWS]
        with suppress(ValueError):  # too many rows repeat
            found[f"KSG of {len(some)} pairs"] = KSG().estimate(jax.random.key(0), x[some], y[some]).bits
    if len(x) > 2 * (x.shape[1] + y.shape[1]):
        found["Gaussian formula"] = _gaussian_formula(x, y)
    return found


def _gaussian_formula(x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
    """As `Gaussian`, of the directions in which there is variance: beliefs that sum to 1 have one less than columns."""
    (mean_x, white_x), (mean_y, white_y) = whitening(x), whitening(y)
    cross = white_x.T @ (x.T @ y / len(x) - np.outer(mean_x, mean_y)) @ white_y
    left = 1 - np.linalg.svd(cross, compute_uv=False) ** 2
    if left.min() < _SURE:
        return float("inf")
    by_chance = no_information(len(x) - 1, white_x.shape[1], white_y.shape[1]).mean
    return float((-0.5 * np.sum(np.log(left)) - by_chance) / np.log(2))
