"""The information between jointly Gaussian vectors, from their covariance: I = ½ log2(det C_x det C_y / det C_xy).

`Gaussian().estimate` takes samples x [N, dx] and y [N, dy] and returns an `Estimate`; `gaussian_bits` takes the known
covariance of (x, y) and returns the bits. On other data it is the information that second moments show.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import digamma, polygamma

from beliefscope.errors import is_whole, require
from beliefscope.information.check import checked_pair
from beliefscope.information.interface import Estimate

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
