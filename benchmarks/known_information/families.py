"""How each case of known information is made: beliefs of small POMDPs, codes of symbols, Gaussian vectors and others.

A function for each family returns an `EstimatorCase` with its name, its true bits and its model. `tiger_tables` and
`random_tables` build a POMDP; `belief_atoms(tables, horizon)` enumerates its histories under a random policy. It
returns the values that its belief takes and their probabilities, which are very unequal.
"""

import functools
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from zlib import crc32

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln

from beliefscope.information.entropy import SmoothedInformation, exact_entropy, smoothed_information

from .models import (
    ARCSINH,
    CUBE,
    FIFTH,
    LOGNORMAL,
    SAME,
    Codes,
    GaussianPairs,
    Invertible,
    Map,
    Model,
    Particles,
    Rows,
    Samples,
    Student,
    UniformNoise,
    rotated,
    spiral,
)

_DRAWS = 100_000  # of the noise, for each truth that is a mean over it


@dataclass(frozen=True)
class EstimatorCase:
    """Paired samples and the information between them.

    No setting may be chosen, by a person or by a search, after a look at a result on a frozen case.
    """

    name: str
    family: str
    closed_form: (
        float | None
    )  # the bits where they have one; np.inf where y is an invertible function of a continuous x
    model: Model
    frozen: bool = False

    @property
    def bits(self) -> float:
        return self._truth.bits

    @property
    def standard_error(self) -> float:
        """Of `bits`; zero for closed forms."""
        return self._truth.standard_error

    @functools.cached_property
    def _truth(self) -> SmoothedInformation:
        """Of noisy codes the posterior of y given x is exact; its mean over the noise is sampled when asked for."""
        if self.closed_form is not None:
            return SmoothedInformation(bits=self.closed_form, standard_error=0.0, entropy=np.nan)
        assert isinstance(self.model, Codes)
        atoms, weights = np.arange(len(self.model.weights)), self.model.weights
        key, draws = jax.random.key(_number(self.name)), _DRAWS // len(atoms)
        return smoothed_information(key, self.model.codes, atoms, weights, noise=self.model.noise, num_samples=draws)

    def sample(self, seed: int, num_samples: int) -> Samples:
        """x [N, dx] and y [N, dy] or [N, M, dy] in single precision; the same seed gives each case its own noise."""
        x, y = self.model.draw(np.random.default_rng([seed, _number(self.name)]), num_samples)
        return x.astype(np.float32), y.astype(np.float32)

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The bits that the family's model shows on the rows `judge` with parameters fitted on the rows `train`."""
        return self.model.reference(x, y, train, judge)


class Atoms(NamedTuple):
    """The values that a belief takes and their probabilities."""

    values: Float[np.ndarray, "atoms dy"]
    weights: Float[np.ndarray, " atoms"]


class Tables(NamedTuple):
    """A finite POMDP whose policy draws each action with the same probability."""

    initial: Float[np.ndarray, " states"]
    transition: Float[np.ndarray, "actions states states"]
    observation: Float[np.ndarray, "actions states observations"]  # of the state reached


def tiger_tables(*, doors: int, actions: int, accuracy: float) -> Tables:
    """The first action listens for the tiger; the others open a door, show nothing, and the tiger moves."""
    even = np.full((doors, doors), 1 / doors)
    heard = np.full((doors, doors), (1 - accuracy) / (doors - 1))
    np.fill_diagonal(heard, accuracy)
    moves, sights = [np.eye(doors)] + [even] * (actions - 1), [heard] + [even] * (actions - 1)
    return Tables(even[0], np.stack(moves), np.stack(sights))


def random_tables(seed: int, *, states: int, observations: int, actions: int, resets: bool) -> Tables:
    """Rows drawn from Dirichlet distributions; with `resets` the last action starts the POMDP again."""
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(states))
    transition = rng.dirichlet(np.full(states, 0.3), size=(actions, states))
    observation = rng.dirichlet(np.full(observations, 0.7), size=(actions, states))
    if resets:
        transition[-1] = initial
    return Tables(initial, transition, observation)


def belief_atoms(tables: Tables, horizon: int) -> Atoms:
    """The exact distribution of the belief after t steps, t drawn uniformly from 1 to `horizon`.

    Beliefs that agree when rounded to six digits are one; the next belief depends on the history by the belief alone.
    """
    num_actions = len(tables.transition)
    now, visited = Atoms(tables.initial[None], np.ones(1)), []
    for _ in range(horizon):
        joint = np.einsum("bs,ast,ato->baot", now.values, tables.transition, tables.observation)
        evidence = joint.sum(axis=3, keepdims=True)
        beliefs = (joint / np.maximum(evidence, 1e-300)).reshape(-1, joint.shape[3])
        weights = (now.weights[:, None, None] * evidence[..., 0] / num_actions).reshape(-1)
        now = _merged(beliefs[weights > 0], weights[weights > 0])
        visited.append(now)
    values = np.concatenate([atoms.values for atoms in visited])
    values, weights = _merged(values, np.concatenate([atoms.weights for atoms in visited]) / horizon)
    return Atoms(values.round(6).astype(np.float32), weights)


def _merged(values: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]) -> Atoms:
    _, first, atom = np.unique(values.round(6), axis=0, return_index=True, return_inverse=True)
    return Atoms(values[first], np.bincount(atom, weights))


def _number(name: str) -> int:
    return crc32(name.encode())


def constants(name: str) -> np.random.Generator:
    """The generator of the constants of a case, the same in every process."""
    return np.random.default_rng(_number(name))


# Beliefs of POMDPs and symbols: y takes finitely many values, x is a code of the value with Gaussian noise.


def tiger_beliefs(*, doors: int, actions: int, accuracy: float, horizon: int) -> Atoms:
    return belief_atoms(tiger_tables(doors=doors, actions=actions, accuracy=accuracy), horizon)


def random_beliefs(
    seed: int, *, states: int, observations: int, actions: int, horizon: int, resets: bool = False
) -> Atoms:
    tables = random_tables(seed, states=states, observations=observations, actions=actions, resets=resets)
    return belief_atoms(tables, horizon)


def belief_case(pomdp: str, atoms: Atoms, *, columns: int, noise: float, rough: bool = False) -> EstimatorCase:
    """The memory is tanh of a random map of the belief; a rough one also of random numbers of its own for each."""
    name = f"beliefs of {pomdp}, {'rough' if rough else 'smooth'} memory of {columns}, noise {noise:g}"
    redraw = partial(_memories, beliefs=atoms.values, columns=columns, rough=rough)
    return EstimatorCase(name, "POMDP beliefs", None, Codes(*atoms, redraw(constants(name)), redraw, noise))


def _memories(
    rng: np.random.Generator, *, beliefs: Float[np.ndarray, "atoms states"], columns: int, rough: bool
) -> Float[np.ndarray, "atoms columns"]:
    features = (beliefs - beliefs.mean(axis=0)) / beliefs.std(axis=0)
    own = rng.normal(size=(len(features), columns)) if rough else 0
    return np.tanh(_mixed(rng, features, columns) + own).astype(np.float32)


def same_belief_case(pomdp: str, atoms: Atoms) -> EstimatorCase:
    redraw = partial(_random_code, symbols=len(atoms.weights), columns=atoms.values.shape[1])
    model = Codes(*atoms, codes=atoms.values, redraw=redraw, noise=0.0)
    return EstimatorCase(f"beliefs of {pomdp}, x = y", "POMDP beliefs", exact_entropy(atoms.weights), model)


def code_case(kind: str, symbols: int, *, columns: int, noise: float, width: int, useless: int = 0) -> EstimatorCase:
    name = f"{kind} code of {symbols} symbols, {columns} + {useless} columns, noise {noise:g}, {width} wide"
    return EstimatorCase(name, "codes", None, code(name, kind, symbols, columns, noise, width, useless))


def code(name: str, kind: str, symbols: int, columns: int, noise: float, width: int, useless: int = 0) -> Codes:
    """Symbols of the same probability, one-hot in y, beside columns of zeros up to `width`."""
    make = {"random": _random_code, "smooth": _smooth_code, "hierarchical": _hierarchical_code}[kind]
    redraw, values = partial(make, symbols=symbols, columns=columns), np.eye(symbols, width, dtype=np.float32)
    return Codes(values, np.full(symbols, 1 / symbols), redraw(constants(name)), redraw, noise, useless)


def _random_code(rng: np.random.Generator, symbols: int, columns: int) -> Float[np.ndarray, "symbols columns"]:
    return np.tanh(rng.normal(size=(symbols, columns))).astype(np.float32)


def _smooth_code(rng: np.random.Generator, symbols: int, columns: int) -> Float[np.ndarray, "symbols columns"]:
    """Waves of a symbol's position and the sign of its branch, as a memory in a T-Maze may have them."""
    position, branch = np.arange(symbols) // 2 / (symbols / 2), 1.0 - 2 * (np.arange(symbols) % 2)
    angles = np.pi * position[:, None] * np.arange(1, 5)
    waves = np.concatenate([np.sin(angles), np.cos(angles), branch[:, None]], axis=1)
    return np.tanh(_mixed(rng, waves, columns)).astype(np.float32)


def _hierarchical_code(rng: np.random.Generator, symbols: int, columns: int) -> Float[np.ndarray, "symbols columns"]:
    """Symbols are the leaves of a binary tree; each branching adds a random step, half as long as the one before."""
    levels = int(np.ceil(np.log2(symbols)))
    code = np.zeros((symbols, columns))
    for level in range(1, levels + 1):
        code += 0.5 ** (level - 1) * rng.normal(size=(2**level, columns))[np.arange(symbols) >> (levels - level)]
    return code.astype(np.float32)


def _mixed(
    rng: np.random.Generator, features: Float[np.ndarray, "atoms f"], columns: int
) -> Float[np.ndarray, "atoms columns"]:
    return features @ rng.normal(size=(features.shape[1], columns)) / np.sqrt(features.shape[1])


# Gaussian vectors, and maps that keep their information.


def gaussian_case(kind: str, columns: int, *, rank: int, bits: float) -> EstimatorCase:
    """Dense: both sides rotated. In pairs: column by column. Sparse: `rank` columns anywhere in x and anywhere in y."""
    name = f"Gaussian, {kind}, d = {columns}, rank {rank}, {bits:g} bits"
    rng = constants(name)
    correlations = np.zeros(columns)
    correlations[:rank] = [_correlation(bits * float(part)) for part in rng.dirichlet(np.full(rank, 3.0))]
    map_x = map_y = SAME
    if kind == "dense":
        map_x, map_y = rotated(orthogonal(rng, columns)), rotated(orthogonal(rng, columns))
    if kind == "sparse":
        map_x, map_y = (rotated(np.eye(columns)[rng.permutation(columns)]) for _ in range(2))
    return EstimatorCase(name, "Gaussian", bits, GaussianPairs(correlations, map_x, map_y, mixed=kind == "dense"))


def rotated_case(kind: str, columns: int, *, bits: float) -> EstimatorCase:
    """Correlated pairs, in which both sides are rotated after a map of each number, or turned by their length."""
    name = f"{kind}, rotated, d = {columns}, {bits:g} bits"
    rng = constants(name)
    map_x, map_y = (rotation(kind, orthogonal(rng, columns)) for _ in range(2))
    correlations = np.full(columns, _correlation(bits / columns))
    return EstimatorCase(name, "rotations", bits, GaussianPairs(correlations, map_x, map_y))


def rotation(kind: str, matrix: Float[np.ndarray, "d d"]) -> Map:
    return spiral(matrix, speed=2.0) if kind == "spiral" else rotated(matrix, {"asinh": ARCSINH, "cube": CUBE}[kind])


def _correlation(bits: float) -> float:
    """ρ of a pair of Gaussian numbers with so many bits, −½ log2(1 − ρ²)."""
    return float(np.sqrt(1 - 2.0 ** (-2 * bits)))


def orthogonal(rng: np.random.Generator, columns: int) -> Float[np.ndarray, "d d"]:
    return np.linalg.qr(rng.normal(size=(columns, columns)))[0]


# Other families.


def uniform_case(columns: int, width: float) -> EstimatorCase:
    """Each column has width − log 2 width nats, or 1 / (4 width) from ½ on: Czyż et al.: Beyond normal (2023)."""
    nats = width - np.log(2 * width) if width < 0.5 else 1 / (4 * width)
    name = f"uniform noise of ±{width:g}, d = {columns}"
    return EstimatorCase(name, "uniform noise", columns * float(nats / np.log(2)), UniformNoise(columns, width))


def student_case(columns: int, *, freedom: int, bits: float) -> EstimatorCase:
    """`bits` of correlation, and those of the common scale: the formula is explained in information/known_cases.py."""
    f_none, f_one, f_both = (
        gammaln(n / 2) - n / 2 * digamma(n / 2) for n in (freedom, freedom + columns, freedom + 2 * columns)
    )
    name = f"Student t({freedom}), d = {columns}, {bits:g} bits of correlation"
    model = Student(columns, _correlation(bits / columns), freedom)
    return EstimatorCase(name, "Student's t", bits + float((f_none + f_both - 2 * f_one) / np.log(2)), model)


def tailed_case(kind: str, columns: int, *, bits: float) -> EstimatorCase:
    """Correlated pairs after a map of each number that makes its tails heavy, each column by itself."""
    shape = {"lognormal": LOGNORMAL, "fifth power": FIFTH}[kind]
    model = GaussianPairs(np.full(columns, _correlation(bits / columns)), shape, shape)
    return EstimatorCase(f"{kind}, d = {columns}, {bits:g} bits", "heavy tails", bits, model)


def particle_case(num_particles: int, size: int, *, bits: float, deviation: float = 0.5) -> EstimatorCase:
    """The mean of a set is z plus noise of variance s² / M, and the rest is correlated Gaussian pairs."""
    name = f"sets of {num_particles} particles, d = {size}, {bits:g} bits"
    noise = np.sqrt(1 / (_correlation(bits / size) ** 2 * (1 + deviation**2 / num_particles)) - 1)
    weights = constants(name).normal(size=(size, 64)) / 4
    return EstimatorCase(name, "particles", bits, Particles(weights, float(noise), deviation, num_particles))


def independent_case(name: str, model: Model) -> EstimatorCase:
    return EstimatorCase(f"independent, {name}", "independent", 0.0, model)


def infinite_case(name: str, columns: int, map_y: Map) -> EstimatorCase:
    return EstimatorCase(f"infinite, {name}", "infinite", np.inf, Invertible(columns, map_y))
