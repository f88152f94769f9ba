"""Families of paired data: how to draw from them, and the bits of a model that knows the family but not the parameters.

A model's `draw(rng, num_samples)` returns x and y; its `reference(x, y, train, judge)` fits the parameters on the rows
`train` and returns the bits that the fitted model shows on the rows `judge`: the mean of log2 p(y | x) / p(y), or H(y)
less the cross entropy of a classifier where y takes finitely many values. A fit that is wrong lowers both on average.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from beliefscope.information.entropy import exact_entropy

Vectors = Float[np.ndarray, "n d"]
Samples = tuple[Float[np.ndarray, "n dx"], Float[np.ndarray, "n dy"] | Float[np.ndarray, "n m dy"]]
Rows = Any  # what selects rows of an array: whole numbers, a slice or a mask

_DEGREES = range(1, 11)  # of freedom of Student's t, among which its reference chooses
_STEPS = 60  # of the fit of Student's t
_REDRAWS = 2000  # of codes, for the mean product of two of them


@runtime_checkable
class Model(Protocol):
    """A family of data with its parameters."""

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples: ...

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float: ...


@dataclass(frozen=True)
class Codes:
    """y takes finitely many values; x is a code of the value with Gaussian noise, beside columns of noise alone."""

    values: Float[np.ndarray, "atoms dy"]
    weights: Float[np.ndarray, " atoms"]
    codes: Float[np.ndarray, "atoms columns"]
    redraw: Callable[..., Float[np.ndarray, "atoms columns"]]  # other codes of this kind
    noise: float
    useless: int = 0

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        atom = rng.choice(len(self.weights), size=num_samples, p=self.weights)
        codes = self.codes[atom] + self.noise * rng.standard_normal((num_samples, self.codes.shape[1]))
        return np.concatenate([codes, rng.standard_normal((num_samples, self.useless))], axis=1), self.values[atom]

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The values, their entropy, the useless columns and how codes are drawn are known.

        The codes themselves, the noise and the probabilities are not.
        """
        codes, atom = x[:, : self.codes.shape[1]].astype(np.float64), self.atoms_of(y)
        log_joint = _log_joint(codes[train], atom[train], codes[judge], self.prior())
        log_right = np.take_along_axis(log_joint, atom[judge][:, None], axis=1)[:, 0]
        return exact_entropy(self.weights) + float(np.mean(log_right - logsumexp(log_joint, axis=1))) / np.log(2)

    def prior(self) -> Float[np.ndarray, "atoms atoms"]:
        """The mean product of two atoms' codes, over codes drawn as these were."""
        rng = np.random.default_rng(0)
        drawn = np.concatenate([self.redraw(rng, columns=4) for _ in range(_REDRAWS)], axis=1).astype(np.float64)
        return drawn @ drawn.T / drawn.shape[1]

    def atoms_of(self, y: Float[np.ndarray, "n dy"]) -> Int[np.ndarray, " n"]:
        number = {row.tobytes(): atom for atom, row in enumerate(self.values.astype(np.float32))}
        return np.array([number[row.tobytes()] for row in y.astype(np.float32)])


def _log_joint(
    x: Float[np.ndarray, "n d"],
    atom: Int[np.ndarray, " n"],
    judged: Float[np.ndarray, "m d"],
    prior: Float[np.ndarray, "atoms atoms"],
) -> Float[np.ndarray, "m atoms"]:
    """log p(x, atom) of the judged rows: each atom a Gaussian cloud, all of one variance, around its code.

    The columns of the codes are treated as Gaussian vectors whose covariance is the prior. So an atom that was seen
    seldom, or never, has an uncertain code, which the codes of similar atoms inform.
    """
    counts = np.bincount(atom, minlength=len(prior))
    seen, size = np.flatnonzero(counts), x.shape[1]
    means = np.zeros((len(prior), size))
    np.add.at(means, atom, x)
    means /= np.maximum(counts, 1)[:, None]
    within = np.sum((x - means[atom]) ** 2) / (size * max(1, len(x) - len(seen)))
    within = max(within, 1e-15 * np.mean(x**2))  # x may be without noise
    gain = np.linalg.solve(prior[np.ix_(seen, seen)] + np.diag(within / counts[seen]), prior[seen]).T
    codes = gain @ means[seen]
    variance = within + np.maximum(0, np.diag(prior) - np.sum(gain * prior[:, seen], axis=1))
    squares = np.sum(judged**2, axis=1, keepdims=True) - 2 * judged @ codes.T + np.sum(codes**2, axis=1)
    log_weights = np.log((counts + 0.5) / (counts + 0.5).sum())
    return log_weights - size / 2 * np.log(variance) - squares / (2 * variance)


class Map(NamedTuple):
    """An invertible map of rows."""

    forward: Callable[[Vectors], Vectors]
    inverse: Callable[[Vectors], Vectors]


SAME = Map(lambda rows: rows, lambda rows: rows)
CUBE = Map(lambda rows: rows**3, np.cbrt)
FIFTH = Map(lambda rows: rows**5, lambda rows: np.sign(rows) * np.abs(rows) ** 0.2)
LOGNORMAL = Map(lambda rows: np.exp(1.5 * rows), lambda rows: np.log(np.maximum(rows, 1e-30)) / 1.5)
ARCSINH = Map(lambda rows: np.arcsinh(4 * rows), lambda rows: np.sinh(rows) / 4)


def rotated(matrix: Float[np.ndarray, "d d"], first: Map = SAME) -> Map:
    """A map of each number, then the rotation of the rows by an orthogonal matrix."""
    return Map(lambda rows: first.forward(rows) @ matrix, lambda rows: first.inverse(rows @ matrix.T))


def spiral(matrix: Float[np.ndarray, "d d"], speed: float) -> Map:
    """Each row turns by an angle of `speed` times its length, in the planes of the matrix's columns two by two."""

    def turned(rows: Vectors, speed: float) -> Vectors:
        turns = np.exp(1j * speed * np.linalg.norm(rows, axis=1, keepdims=True))
        columns, even = rows @ matrix, 2 * (rows.shape[1] // 2)
        planes = (columns[:, 0:even:2] + 1j * columns[:, 1:even:2]) * turns
        pairs = np.stack([planes.real, planes.imag], axis=2).reshape(len(rows), even)
        return np.concatenate([pairs, columns[:, even:]], axis=1) @ matrix.T

    return Map(lambda rows: turned(rows, speed), lambda rows: turned(rows, -speed))


@dataclass(frozen=True)
class GaussianPairs:
    """Pairs of correlated Gaussian numbers, and an invertible map of each side; `mixed`: the reference must fit it."""

    correlations: Float[np.ndarray, " d"]
    map_x: Map = SAME
    map_y: Map = SAME
    mixed: bool = False

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        x, noise = rng.standard_normal((2, num_samples, len(self.correlations)))
        y = self.correlations * x + np.sqrt(1 - self.correlations**2) * noise
        return self.map_x.forward(x), self.map_y.forward(y)

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """Which correlations are zero is known, and the maps unless they are mixed."""
        informed = np.flatnonzero(self.correlations)
        if self.mixed:
            return canonical_bits(x, y, train, judge, rank=len(informed))
        return _bits_in_pairs(self.map_x.inverse(x)[:, informed], self.map_y.inverse(y)[:, informed], train, judge)


def _bits_in_pairs(x: Vectors, y: Vectors, train: Rows, judge: Rows) -> float:
    return sum(canonical_bits(x[:, [i]], y[:, [i]], train, judge, rank=1) for i in range(x.shape[1]))


def canonical_bits(x: Vectors, y: Vectors, train: Rows, judge: Rows, *, rank: int) -> float:
    """The mean log ratio of Gaussian densities of that many canonical correlations, which are fitted."""
    x, y = _whitened(x.astype(np.float64), train), _whitened(y.astype(np.float64), train)
    left, r, right = np.linalg.svd(x[train].T @ y[train] / len(x[train]), full_matrices=False)
    u, v, r = x[judge] @ left[:, :rank], y[judge] @ right[:rank].T, r[:rank]
    log_ratio = -np.log(1 - r**2) / 2 - (r**2 * (u**2 + v**2) - 2 * r * u * v) / (2 * (1 - r**2))
    return float(log_ratio.sum(axis=1).mean()) / np.log(2)


def _whitened(rows: Vectors, train: Rows) -> Vectors:
    rows = rows - rows[train].mean(axis=0)
    values, vectors = np.linalg.eigh(rows[train].T @ rows[train] / len(rows[train]))
    return rows @ vectors / np.sqrt(values)


@dataclass(frozen=True)
class UniformNoise:
    """x is uniform on [0, 1] in each column, and y is x plus noise that is uniform on [−width, width]."""

    columns: int
    width: float

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        x = rng.random((num_samples, self.columns))
        return x, x + rng.uniform(-self.width, self.width, x.shape)

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The width is not known. It is at least the largest noise seen, with a tail of the power −n beyond."""
        x, y = x.astype(np.float64), y.astype(np.float64)
        noise = np.abs(y[train] - x[train])
        largest, n = noise.max(), noise.size

        def below(t: np.ndarray) -> np.ndarray:
            """The probability of noise below t."""
            tail = np.maximum(np.abs(t) / largest, 1) ** -float(n) / 2 / (n + 1)
            middle = np.clip(np.abs(t) / largest, 0, 1) / 2 * n / (n + 1)
            return 0.5 + np.sign(t) * (middle + 0.5 / (n + 1) - tail)

        log_beyond = np.log(np.maximum(np.abs(y[judge] - x[judge]) / largest, 1))
        log_density = np.log(n / (n + 1) / (2 * largest)) - (n + 1) * log_beyond
        log_ratio = log_density - np.log(below(y[judge]) - below(y[judge] - 1))
        return float(log_ratio.sum(axis=1).mean()) / np.log(2)


@dataclass(frozen=True)
class Student:
    """(x, y) has the multivariate t distribution: pairs of correlated Gaussian numbers over one common scale."""

    columns: int
    correlation: float
    freedom: int

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        x, noise = rng.standard_normal((2, num_samples, self.columns))
        scale = np.sqrt(rng.chisquare(self.freedom, (num_samples, 1)) / self.freedom)
        return x / scale, (self.correlation * x + np.sqrt(1 - self.correlation**2) * noise) / scale

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The centre is known; the matrix is fitted for each number of degrees of freedom and the likeliest taken."""
        both = np.concatenate([x, y], axis=1).astype(np.float64)
        fits = [(_student_matrix(both[train], freedom), freedom) for freedom in _DEGREES]
        best = max(fits, key=lambda fit: multivariate_t(shape=fit[0], df=fit[1]).logpdf(both[train]).sum())
        return float(student_log_ratio(both[judge], *best, columns=self.columns).mean()) / np.log(2)


def _student_matrix(rows: Vectors, freedom: int) -> Float[np.ndarray, "d d"]:
    """The likeliest matrix, by the EM algorithm."""
    size = rows.shape[1]
    matrix = np.diag(np.median(np.abs(rows), axis=0) ** 2)
    for _ in range(_STEPS):
        lengths = np.sum(rows @ np.linalg.inv(matrix) * rows, axis=1)
        matrix = (rows * ((freedom + size) / (freedom + lengths))[:, None]).T @ rows / len(rows)
    return matrix


def student_log_ratio(both: Vectors, matrix: np.ndarray, freedom: int, *, columns: int) -> Float[np.ndarray, " n"]:
    """log p(x, y) / p(x) p(y), of which x is the first columns."""
    x, y = slice(None, columns), slice(columns, None)
    joint, alone_x, alone_y = (
        multivariate_t(shape=matrix[part, part], df=freedom).logpdf(both[:, part]) for part in (slice(None), x, y)
    )
    return np.asarray(joint - alone_x - alone_y)


@dataclass(frozen=True)
class Particles:
    """z is hidden, x a code of z + noise, y a set of particles around z. The mean of y has all its information on z."""

    weights: Float[np.ndarray, "d columns"]
    noise: float
    deviation: float
    num_particles: int

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        hidden, noise = rng.standard_normal((2, num_samples, len(self.weights)))
        spread = rng.standard_normal((num_samples, self.num_particles, len(self.weights)), dtype=np.float32)
        code = np.tanh((hidden + self.noise * noise) @ self.weights)
        return code, hidden[:, None].astype(np.float32) + np.float32(self.deviation) * spread

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The code is known; the noise, the particles' deviation and so the correlation are not."""
        inside = np.clip(x.astype(np.float64), 1e-7 - 1, 1 - 1e-7)
        seen = np.arctanh(inside) @ np.linalg.pinv(self.weights)
        return _bits_in_pairs(seen, y.mean(axis=1, dtype=np.float64), train, judge)


@dataclass(frozen=True)
class Noise:
    """Independent normal numbers of these shapes."""

    shape_x: tuple[int, ...]
    shape_y: tuple[int, ...]

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        x, y = (rng.standard_normal((num_samples, *shape), dtype=np.float32) for shape in (self.shape_x, self.shape_y))
        return x, y

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        return 0.0


@dataclass(frozen=True)
class Shuffled:
    """x of a model and y of the same or another, from different pairs: they are independent."""

    model: Model
    other: Model | None = None

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        return self.model.draw(rng, num_samples)[0], (self.other or self.model).draw(rng, num_samples)[1]

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        return 0.0


@dataclass(frozen=True)
class Invertible:
    """x is normal and y an invertible function of it."""

    columns: int
    map_y: Map

    def draw(self, rng: np.random.Generator, num_samples: int) -> Samples:
        x = rng.standard_normal((num_samples, self.columns))
        return x, self.map_y.forward(x)

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        return np.inf
