"""Data whose mutual information is known, in two halves: one for building an estimator, one for judging it once.

`estimator_cases(frozen=False)` returns the half that settings may be chosen on, by name; `estimator_cases(frozen=True)`
the half that nobody looks at before the estimator is finished. Both halves have the same families of data, with other
parameters and other random constants. An `EstimatorCase` has the true bits and two methods: `sample(seed, num_samples)`
returns pairs, and `reference(x, y, train, judge)` the bits that someone finds who knows the family of the data but not
its parameters: they are fitted on the rows `train` and valued on the rows `judge`. An estimator that does not know the
family cannot be expected to find more in so many pairs.

The random constants of a case (codes, rotations, weights) come from its name, those of a POMDP from its seed.
"""

import functools
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln

from beliefscope.information.atoms import smoothed_information
from beliefscope.information.belief_atoms import Atoms, belief_atoms, random_tables, tiger_tables
from beliefscope.information.entropy import exact_entropy
from beliefscope.information.estimator_models import (
    ARCSINH,
    CUBE,
    SAME,
    Codes,
    GaussianPairs,
    Invertible,
    Map,
    Model,
    Noise,
    Particles,
    Rows,
    Samples,
    Shuffled,
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
    bits: float  # np.inf where y is an invertible function of a continuous x
    model: Model
    standard_error: float = 0.0  # of `bits`; zero for closed forms
    frozen: bool = False

    def sample(self, seed: int, num_samples: int) -> Samples:
        """x [N, dx] and y [N, dy] or [N, M, dy] in single precision; the same seed gives each case its own noise."""
        x, y = self.model.draw(np.random.default_rng([seed, _number(self.name)]), num_samples)
        return x.astype(np.float32), y.astype(np.float32)

    def reference(self, x: np.ndarray, y: np.ndarray, train: Rows, judge: Rows) -> float:
        """The bits that the family's model shows on the rows `judge` with parameters fitted on the rows `train`."""
        return self.model.reference(x, y, train, judge)


def estimator_cases(*, frozen: bool) -> dict[str, EstimatorCase]:
    """One half of the cases, by name. The first call takes some ten seconds: truths of noisy codes are sampled."""
    return {case.name: case for case in _half(frozen)}


@functools.cache
def _half(frozen: bool) -> tuple[EstimatorCase, ...]:
    cases = _frozen_cases() if frozen else _learning_cases()
    return tuple(replace(case, frozen=frozen) for case in cases)


def _learning_cases() -> list[EstimatorCase]:
    tiger = _tiger_beliefs(doors=2, actions=3, accuracy=0.85, horizon=8)
    small = _random_beliefs(1, states=3, observations=3, actions=2, horizon=3)
    large = _random_beliefs(2, states=6, observations=2, actions=2, horizon=8, resets=True)
    sharp = _random_beliefs(3, states=4, observations=4, actions=2, horizon=3)
    short = _random_beliefs(8, states=2, observations=2, actions=3, horizon=3)
    return [
        _belief_case("tiger of 2 doors", tiger, columns=32, noise=0.6),
        _belief_case("POMDP 1", small, columns=64, noise=0.05, rough=True),
        _belief_case("POMDP 2", large, columns=64, noise=0.3),
        _belief_case("POMDP 3", sharp, columns=32, noise=0.02, rough=True),
        _belief_case("POMDP 8", short, columns=48, noise=1.0, rough=True),
        _same_belief_case("tiger of 2 doors", tiger),
        _same_belief_case("POMDP 2", large),
        _code_case("random", 51, columns=32, noise=1.0, width=51),
        _code_case("random", 404, columns=256, noise=0.5, width=808),
        _code_case("smooth", 102, columns=64, noise=0.01, width=106, useless=100),
        _code_case("smooth", 404, columns=128, noise=0.3, width=404),
        _code_case("hierarchical", 51, columns=256, noise=1.0, width=55, useless=100),
        _code_case("hierarchical", 404, columns=32, noise=0.1, width=408),
        _gaussian_case("dense", 50, rank=50, bits=6.0),
        _gaussian_case("dense", 20, rank=2, bits=2.0),
        _gaussian_case("dense", 2, rank=2, bits=0.3),
        _gaussian_case("in pairs", 10, rank=10, bits=12.0),
        _gaussian_case("sparse", 50, rank=2, bits=3.0),
        _gaussian_case("sparse", 6, rank=2, bits=1.0),
        _uniform_case(1, 0.75),
        _uniform_case(5, 0.1),
        _student_case(1, freedom=1, bits=0.5),
        _student_case(2, freedom=3, bits=3.0),
        _student_case(5, freedom=5, bits=0.0),
        _rotated_case("asinh", 2, bits=3.0),
        _rotated_case("cube", 8, bits=4.0),
        _rotated_case("cube", 25, bits=8.0),
        _rotated_case("spiral", 3, bits=2.0),
        _independent_case("1 and 1, normal", Noise((1,), (1,))),
        _independent_case("4 and 4, normal", Noise((4,), (4,))),
        _independent_case("64 and 106, normal", Noise((64,), (106,))),
        _independent_case("256 and 808, normal", Noise((256,), (808,))),
        _independent_case("3 and 3, heavy tails", Shuffled(_student_case(3, freedom=1, bits=3.0).model)),
        _independent_case("code of 102 symbols", Shuffled(_code("102 shuffled", "smooth", 102, 64, 0.1, 106))),
        _independent_case("sets of 100", Shuffled(_particle_case(100, 2, bits=3.0).model)),
        _particle_case(50, 1, bits=5.0, deviation=0.15),
        _particle_case(120, 2, bits=3.0, deviation=1.0),
        _particle_case(300, 3, bits=1.0, deviation=0.3),
        _infinite_case("y = x, d = 1", 1, SAME),
        _infinite_case("y = x, d = 8", 8, SAME),
        _infinite_case("y a spiral of x, d = 2", 2, spiral(np.eye(2), 1.5)),
    ]


def _frozen_cases() -> list[EstimatorCase]:
    tiger = _tiger_beliefs(doors=3, actions=2, accuracy=0.7, horizon=8)
    small = _random_beliefs(19, states=2, observations=4, actions=2, horizon=3)
    large = _random_beliefs(12, states=3, observations=2, actions=2, horizon=8, resets=True)
    sharp = _random_beliefs(13, states=6, observations=2, actions=3, horizon=3)
    long = _random_beliefs(14, states=5, observations=3, actions=2, horizon=5, resets=True)
    return [
        _belief_case("tiger of 3 doors", tiger, columns=64, noise=0.4),
        _belief_case("POMDP 19", small, columns=32, noise=0.05, rough=True),
        _belief_case("POMDP 12", large, columns=40, noise=0.8, rough=True),
        _belief_case("POMDP 13", sharp, columns=64, noise=0.15),
        _belief_case("POMDP 14", long, columns=56, noise=0.03, rough=True),
        _same_belief_case("tiger of 3 doors", tiger),
        _same_belief_case("POMDP 13", sharp),
        _code_case("random", 51, columns=128, noise=0.01, width=808, useless=100),
        _code_case("random", 404, columns=32, noise=1.0, width=404),
        _code_case("smooth", 51, columns=256, noise=1.0, width=51),
        _code_case("smooth", 404, columns=48, noise=0.05, width=408, useless=100),
        _code_case("hierarchical", 102, columns=32, noise=0.3, width=102, useless=100),
        _code_case("hierarchical", 404, columns=256, noise=0.2, width=808),
        _gaussian_case("dense", 50, rank=4, bits=3.0),
        _gaussian_case("dense", 16, rank=16, bits=12.0),
        _gaussian_case("in pairs", 2, rank=2, bits=6.0),
        _gaussian_case("in pairs", 25, rank=25, bits=4.0),
        _gaussian_case("sparse", 50, rank=2, bits=0.3),
        _gaussian_case("sparse", 12, rank=2, bits=5.0),
        _uniform_case(1, 0.05),
        _uniform_case(5, 0.4),
        _student_case(1, freedom=5, bits=2.0),
        _student_case(2, freedom=2, bits=1.0),
        _student_case(5, freedom=1, bits=0.3),
        _rotated_case("cube", 2, bits=1.5),
        _rotated_case("asinh", 5, bits=5.0),
        _rotated_case("spiral", 25, bits=5.0),
        _rotated_case("spiral", 2, bits=4.0),
        _independent_case("1 and 1, uniform", Shuffled(_uniform_case(1, 0.2).model)),
        _independent_case("5 and 3, normal", Noise((5,), (3,))),
        _independent_case("48 and 206, normal", Noise((48,), (206,))),
        _independent_case("256 and 808, code", Shuffled(_code("808 shuffled", "random", 404, 256, 0.3, 808))),
        _independent_case("10 and 10, heavy tails", Shuffled(_student_case(10, freedom=2, bits=5.0).model)),
        _independent_case("code of 51 symbols", Shuffled(_code("51 shuffled", "hierarchical", 51, 32, 0.5, 51))),
        _independent_case("sets of 200", Shuffled(_particle_case(200, 3, bits=2.0).model)),
        _particle_case(50, 3, bits=5.0, deviation=0.8),
        _particle_case(150, 2, bits=2.0, deviation=0.3),
        _particle_case(300, 1, bits=1.0, deviation=1.0),
        _infinite_case("y = x, d = 2", 2, SAME),
        _infinite_case("y the cube of x, d = 1", 1, CUBE),
        _infinite_case("y arcsinh of x, rotated, d = 8", 8, _rotation("asinh", _orthogonal(_constants("8"), 8))),
    ]


def _number(name: str) -> int:
    return crc32(name.encode())


def _constants(name: str) -> np.random.Generator:
    """The generator of the constants of a case, the same in every session."""
    return np.random.default_rng(_number(name))


# Beliefs of POMDPs and symbols: y takes finitely many values, x is a code of the value with Gaussian noise.


def _tiger_beliefs(*, doors: int, actions: int, accuracy: float, horizon: int) -> Atoms:
    return belief_atoms(tiger_tables(doors=doors, actions=actions, accuracy=accuracy), horizon)


def _random_beliefs(
    seed: int, *, states: int, observations: int, actions: int, horizon: int, resets: bool = False
) -> Atoms:
    tables = random_tables(seed, states=states, observations=observations, actions=actions, resets=resets)
    return belief_atoms(tables, horizon)


def _belief_case(pomdp: str, atoms: Atoms, *, columns: int, noise: float, rough: bool = False) -> EstimatorCase:
    """The memory is tanh of a random map of the belief; a rough one also of random numbers of its own for each."""
    name = f"beliefs of {pomdp}, {'rough' if rough else 'smooth'} memory of {columns}, noise {noise:g}"
    redraw = partial(_memories, beliefs=atoms.values, columns=columns, rough=rough)
    return _noisy_case(name, "POMDP beliefs", Codes(*atoms, redraw(_constants(name)), redraw, noise))


def _memories(
    rng: np.random.Generator, *, beliefs: Float[np.ndarray, "atoms states"], columns: int, rough: bool
) -> Float[np.ndarray, "atoms columns"]:
    features = (beliefs - beliefs.mean(axis=0)) / beliefs.std(axis=0)
    own = rng.normal(size=(len(features), columns)) if rough else 0
    return np.tanh(_mixed(rng, features, columns) + own).astype(np.float32)


def _same_belief_case(pomdp: str, atoms: Atoms) -> EstimatorCase:
    redraw = partial(_random_code, symbols=len(atoms.weights), columns=atoms.values.shape[1])
    model = Codes(*atoms, codes=atoms.values, redraw=redraw, noise=0.0)
    return EstimatorCase(f"beliefs of {pomdp}, x = y", "POMDP beliefs", exact_entropy(atoms.weights), model)


def _code_case(kind: str, symbols: int, *, columns: int, noise: float, width: int, useless: int = 0) -> EstimatorCase:
    name = f"{kind} code of {symbols} symbols, {columns} + {useless} columns, noise {noise:g}, {width} wide"
    return _noisy_case(name, "codes", _code(name, kind, symbols, columns, noise, width, useless))


def _code(name: str, kind: str, symbols: int, columns: int, noise: float, width: int, useless: int = 0) -> Codes:
    """Symbols of the same probability, one-hot in y, beside columns of zeros up to `width`."""
    make = {"random": _random_code, "smooth": _smooth_code, "hierarchical": _hierarchical_code}[kind]
    redraw, values = partial(make, symbols=symbols, columns=columns), np.eye(symbols, width, dtype=np.float32)
    return Codes(values, np.full(symbols, 1 / symbols), redraw(_constants(name)), redraw, noise, useless)


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


def _noisy_case(name: str, family: str, model: Codes) -> EstimatorCase:
    """The posterior of y given x is exact, its mean over the noise is sampled."""
    num_atoms = len(model.weights)
    truth = smoothed_information(
        jax.random.key(_number(name)),
        model.codes,
        np.arange(num_atoms),
        model.weights,
        noise=model.noise,
        num_samples=_DRAWS // num_atoms,
    )
    return EstimatorCase(name, family, truth.bits, model, standard_error=truth.standard_error)


# Gaussian vectors, and maps that keep their information.


def _gaussian_case(kind: str, columns: int, *, rank: int, bits: float) -> EstimatorCase:
    """Dense: both sides rotated. In pairs: column by column. Sparse: `rank` columns anywhere in x and anywhere in y."""
    name = f"Gaussian, {kind}, d = {columns}, rank {rank}, {bits:g} bits"
    rng = _constants(name)
    correlations = np.zeros(columns)
    correlations[:rank] = [_correlation(bits * float(part)) for part in rng.dirichlet(np.full(rank, 3.0))]
    map_x = map_y = SAME
    if kind == "dense":
        map_x, map_y = rotated(_orthogonal(rng, columns)), rotated(_orthogonal(rng, columns))
    if kind == "sparse":
        map_x, map_y = (rotated(np.eye(columns)[rng.permutation(columns)]) for _ in range(2))
    return EstimatorCase(name, "Gaussian", bits, GaussianPairs(correlations, map_x, map_y, mixed=kind == "dense"))


def _rotated_case(kind: str, columns: int, *, bits: float) -> EstimatorCase:
    """Correlated pairs, in which both sides are rotated after a map of each number, or turned by their length."""
    name = f"{kind}, rotated, d = {columns}, {bits:g} bits"
    rng = _constants(name)
    map_x, map_y = (_rotation(kind, _orthogonal(rng, columns)) for _ in range(2))
    correlations = np.full(columns, _correlation(bits / columns))
    return EstimatorCase(name, "rotations", bits, GaussianPairs(correlations, map_x, map_y))


def _rotation(kind: str, matrix: Float[np.ndarray, "d d"]) -> Map:
    return spiral(matrix, speed=2.0) if kind == "spiral" else rotated(matrix, {"asinh": ARCSINH, "cube": CUBE}[kind])


def _correlation(bits: float) -> float:
    """ρ of a pair of Gaussian numbers with so many bits, −½ log2(1 − ρ²)."""
    return float(np.sqrt(1 - 2.0 ** (-2 * bits)))


def _orthogonal(rng: np.random.Generator, columns: int) -> Float[np.ndarray, "d d"]:
    return np.linalg.qr(rng.normal(size=(columns, columns)))[0]


# Other families.


def _uniform_case(columns: int, width: float) -> EstimatorCase:
    """Each column has width − log 2 width nats, or 1 / (4 width) from ½ on: Czyż et al.: Beyond normal (2023)."""
    nats = width - np.log(2 * width) if width < 0.5 else 1 / (4 * width)
    name = f"uniform noise of ±{width:g}, d = {columns}"
    return EstimatorCase(name, "uniform noise", columns * float(nats / np.log(2)), UniformNoise(columns, width))


def _student_case(columns: int, *, freedom: int, bits: float) -> EstimatorCase:
    """`bits` of correlation, and those of the common scale: the formula is explained in known_cases.py."""
    f_none, f_one, f_both = (
        gammaln(n / 2) - n / 2 * digamma(n / 2) for n in (freedom, freedom + columns, freedom + 2 * columns)
    )
    name = f"Student t({freedom}), d = {columns}, {bits:g} bits of correlation"
    model = Student(columns, _correlation(bits / columns), freedom)
    return EstimatorCase(name, "Student's t", bits + float((f_none + f_both - 2 * f_one) / np.log(2)), model)


def _particle_case(num_particles: int, size: int, *, bits: float, deviation: float = 0.5) -> EstimatorCase:
    """The mean of a set is z plus noise of variance s² / M, and the rest is correlated Gaussian pairs."""
    name = f"sets of {num_particles} particles, d = {size}, {bits:g} bits"
    noise = np.sqrt(1 / (_correlation(bits / size) ** 2 * (1 + deviation**2 / num_particles)) - 1)
    weights = _constants(name).normal(size=(size, 64)) / 4
    return EstimatorCase(name, "particles", bits, Particles(weights, float(noise), deviation, num_particles))


def _independent_case(name: str, model: Model) -> EstimatorCase:
    return EstimatorCase(f"independent, {name}", "independent", 0.0, model)


def _infinite_case(name: str, columns: int, map_y: Map) -> EstimatorCase:
    return EstimatorCase(f"infinite, {name}", "infinite", np.inf, Invertible(columns, map_y))
