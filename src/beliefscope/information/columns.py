"""How the best bound's critics see columns and sets: as normal scores, independent directions and set features.

A normal score is the rank of a number among a reference's, as a quantile of N(0, 1). Information does not change under
invertible maps of single columns, and critics learn from columns of one shape and scale more easily than from heavy
tails. Equal numbers stay equal; a constant column becomes zeros. Ranks see every difference, however small: two
memories that differ in their last bit are as different as any two.

A set of particles becomes a vector: means over the particles of fixed functions. The functions are the coordinates,
their products in pairs, and sines and cosines along random directions at several scales. Enough such means determine a
distribution (a kernel mean embedding by random features: Rahimi, Recht, 2007; Smola et al., 2007), and they are
computed once, before any fit.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from scipy.special import ndtri

from beliefscope.information.interface import in_threads

_SCALES = (0.5, 1.0, 2.0, 4.0)  # of the frequencies, for coordinates of unit deviation
_DIRECTIONS = 16  # at each scale
_CHUNK = 500  # sets at a time, which bounds the memory


def set_features(sets: Float[np.ndarray, "n m d"], reference: Float[np.ndarray, "k m d"]) -> Float[np.ndarray, "n f"]:
    """One vector for each set, its coordinates in units of the reference's deviation."""
    particles = reference.reshape(-1, reference.shape[-1])
    # In double precision: NumPy adds up ten million rows one by one, and in single precision the sum comes to a halt.
    mean, deviation = particles.mean(axis=0, dtype=np.float64), particles.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return np.asarray(_features(jnp.asarray(sets, jnp.float32), *(jnp.asarray(a, jnp.float32) for a in (mean, scale))))


@jax.jit
def _features(sets: Float[Array, "n m d"], mean: Float[Array, " d"], scale: Float[Array, " d"]) -> Float[Array, "n f"]:
    size = sets.shape[-1]
    directions = np.random.default_rng(0).normal(size=(size, len(_SCALES), _DIRECTIONS))
    frequencies = jnp.asarray(directions * np.asarray(_SCALES)[:, None], jnp.float32).reshape(size, -1)

    def features(particles: Float[Array, "m d"]) -> Float[Array, " f"]:
        z = (particles - mean) * scale
        waves = z @ frequencies
        products = (z.T @ z / len(z))[jnp.triu_indices(size)]
        return jnp.concatenate(
            [jnp.mean(z, axis=0), products, *(jnp.mean(f(waves), axis=0) for f in (jnp.sin, jnp.cos))]
        )

    return lax.map(features, sets, batch_size=min(_CHUNK, len(sets)))


FAINTEST = 1e-6  # of the largest variance: directions below it are rounding
_TURNS = 40  # of the search for independent directions
_STILL = 1e-4  # a turn that moves no direction by more is the last
_PRODUCTS, _RIGHT = 40, 1e-4  # at most so many; one leaves a small singular value half as large again
_REFINED = 15  # steps of the second search, where tails are heavy
_STEEP = 2.0  # what the median of a direction's size becomes there
_HEAVY = 1.3  # of 1 for a Gaussian: from here on tails are heavy
_LARGEST = 0.3  # turn of one step


def normal_scores(rows: Float[np.ndarray, "n d"], reference: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n d"]:
    """The rows [n, d], column by column, in terms of the reference's [m, d]; in single precision."""
    columns = [_scores(*pair) for pair in zip(rows.T, reference.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.float32)


def _scores(values: Float[np.ndarray, " n"], reference: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
    ordered = np.sort(reference)
    if ordered[0] == ordered[-1]:
        return np.zeros(len(values))
    # The middle of the ranks of equal numbers, away from 0 and 1 by half a rank.
    below, upto = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return ndtri(np.clip((below + upto) / (2 * len(ordered)), 0.5 / len(ordered), 1 - 0.5 / len(ordered)))


def ranks_and_length(columns: Float[np.ndarray, "n k"], rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n more"]:
    """Normal scores of the columns and of the rows' length, which alone may be what two heavy tails share."""
    longer = np.column_stack([columns, np.linalg.norm(rows, axis=1)])
    scores = ndtri(np.arange(0.5, len(rows), 0.5) / len(rows)).astype(np.float32)

    def ranked(column: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        order = np.argsort(column)
        is_new = np.diff(column[order], prepend=np.nan) != 0
        first = np.flatnonzero(is_new)  # of each run of equal numbers
        last = np.append(first[1:], len(column)) - 1
        found = np.empty(len(column), np.float32)
        found[order] = scores[(first + last)[np.cumsum(is_new) - 1]]  # of equal numbers the middle
        return found

    return np.stack(in_threads(ranked, np.ascontiguousarray(longer.T)), axis=1)


def standardised(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Mean 0 and deviation 1, in double precision first: single precision may not tell a column's numbers apart."""
    columns = rows.astype(np.float64)
    columns -= columns.mean(axis=0)
    deviation = columns.std(axis=0)
    return (columns / np.where((deviation > 0) & (np.ptp(rows, axis=0) > 0), deviation, np.inf)).astype(np.float32)


def independent_directions(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
    """The rows in directions that are as far from Gaussian as can be.

    Where columns are mixtures of independent numbers, these directions are those numbers, whose ranks can be used.
    FastICA with tanh finds all directions at once, at right angles after whitening. Where tails are heavy the sample
    covariance, and so the right angle, is far from the true one. Then a second search turns each direction separately,
    until tanh(steep × direction) and every other direction are uncorrelated.
    """
    mean, white = whitening(rows)
    start = np.linalg.qr(np.random.default_rng(0).normal(size=(white.shape[1],) * 2))[0]
    with jax.default_matmul_precision("float32"):
        return np.asarray(_independent(*(jnp.asarray(part, jnp.float32) for part in ((rows - mean) @ white, start))))


@jax.jit
def _independent(z: Float[Array, "n k"], start: Float[Array, "k k"]) -> Float[Array, "n k"]:
    def turned(carry):
        number, turn, _ = carry
        bent = jnp.tanh(z @ turn)
        now = _at_right_angles(z.T @ bent / len(z) - turn * jnp.mean(1 - bent**2, axis=0))
        return number + 1, now, jnp.min(jnp.abs(jnp.sum(turn * now, axis=0)))

    def moves(carry):
        number, _, least = carry
        return (number < _TURNS) & (least <= 1 - _STILL)

    first = (jnp.zeros((), jnp.int32), start, jnp.zeros(()))
    _, turn, _ = lax.while_loop(moves, turned, first)
    found = z @ turn

    def refined(found):
        return lax.fori_loop(0, _REFINED, lambda _, rows: _turned_singly(rows), found)

    return lax.cond(jnp.min(_peaked(found)[1]) > _HEAVY, refined, lambda found: found, found)


def _at_right_angles(matrix: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The nearest orthogonal matrix, by products alone (Newton and Schulz), which a GPU does faster than an SVD."""
    scaled = matrix / jnp.sqrt(jnp.max(jnp.sum(jnp.abs(matrix), axis=0)) * jnp.max(jnp.sum(jnp.abs(matrix), axis=1)))

    def nearer(carry):
        number, m, square = carry
        m = 1.5 * m - 0.5 * m @ square
        return number + 1, m, m.T @ m

    def is_skew(carry):
        number, _, square = carry
        return (number < _PRODUCTS) & (jnp.max(jnp.abs(square - jnp.eye(len(square)))) > _RIGHT)

    return lax.while_loop(is_skew, nearer, (jnp.zeros((), jnp.int32), scaled, scaled.T @ scaled))[1]


def _peaked(rows: Float[Array, "n k"]) -> tuple[Float[Array, "n k"], Float[Array, " k"]]:
    """ψ of each direction, and E ψ' E u² / E ψ u: 1 of a Gaussian, more of heavier tails."""
    bent = jnp.tanh(rows)
    share = jnp.mean(bent * rows, axis=0)
    return bent / share, jnp.mean(1 - bent**2, axis=0) / share * jnp.mean(rows**2, axis=0)


def _turned_singly(rows: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """One step of Newton for each pair of directions, towards E ψ(u_i) u_j = 0."""
    rows = rows * (_STEEP / jnp.median(jnp.abs(rows), axis=0))
    bent, peaks = _peaked(rows)
    squares = jnp.mean(rows**2, axis=0)
    slope = peaks[:, None] * squares / squares[:, None]
    shared = bent.T @ rows / len(rows)
    determinant = slope * slope.T - 1
    step = jnp.where(determinant > _HEAVY**2 - 1, (shared.T - slope.T * shared) / determinant, 0)
    step = jnp.clip(step * (1 - jnp.eye(len(step))), -_LARGEST, _LARGEST)
    return rows + rows @ step.T


def whitening(rows: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d k"]]:
    """The mean, and the map after which what is left has covariance 1."""
    mean = rows.mean(axis=0)
    centred = rows - mean
    return mean, whitened(centred.T @ centred / len(rows))


def whitened(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d k"]:
    """The map after which the covariance is 1, of the directions in which there is variance."""
    variances, directions = np.linalg.eigh(covariance)
    there = variances > FAINTEST * max(variances[-1], 1e-30)
    return directions[:, there] / np.sqrt(variances[there])
