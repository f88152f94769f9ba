"""Data whose mutual information is known: what an estimator is calibrated on and judged by.

`known_cases()` returns them by name. A `KnownCase` has the true bits (with the standard error of that truth, zero
where it is a closed form) and `sample(key, num_samples) -> (x, y)`, in plain JAX: compile it with
`jax.jit(case.sample, static_argnums=1)`. The shapes are those of memories (64 numbers), beliefs of a T-Maze (106 or
206 probabilities) and sets of particles, beside the usual small benchmarks.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import digamma, gammaln

from beliefscope.information.entropy import smoothed_information

Samples = tuple[Float[Array, "n dx"], Float[Array, "n dy"] | Float[Array, "n m dy"]]
Vectors = tuple[Float[Array, "n dx"], Float[Array, "n dy"]]
Sets = tuple[Float[Array, "n dx"], Float[Array, "n m dy"]]

_MEMORY_SIZE = 64
_PARTICLE_DEVIATION = 0.5


@dataclass(frozen=True)
class KnownCase:
    """Paired samples and the information between them.

    A frozen case is never used for tuning an estimator: no setting may be chosen, by a person or by a search, after a
    look at its result. Its only use is a final test of whether the choices hold on other data.
    """

    name: str
    bits: float
    sample: Callable[[PRNGKeyArray, int], Samples]
    standard_error: float = 0.0  # of `bits`
    frozen: bool = False


@functools.cache
def _all_cases() -> tuple[KnownCase, ...]:
    return (
        _gaussian_case(1, 0.5),
        _gaussian_case(1, 1.0),
        _gaussian_case(1, 2.0),
        _gaussian_case(2, 2.0),
        _gaussian_case(2, 4.0),
        _gaussian_case(4, 2.0),
        _gaussian_case(4, 4.0, frozen=True),
        _gaussian_case(4, 6.0),
        _gaussian_case(16, 4.0),
        _warped_case("cubed", lambda value: value**3),
        _warped_case("arcsinh", lambda value: jnp.arcsinh(4 * value)),
        _student_case(1, 1.0),
        _student_case(2, 2.0),
        _symbol_case(102),
        _symbol_case(202),
        _noisy_case(102, 1.0),
        _noisy_case(102, 2.0),
        _noisy_case(202, 1.5, frozen=True),
        _set_case(100, 2.0),
        _set_case(100, 4.0, frozen=True),
        _set_case(1000, 2.0),
        _set_case(1000, 4.0),
        KnownCase("independent, 4 and 4", 0.0, partial(_independent, shape_x=(4,), shape_y=(4,))),
        KnownCase("independent, 64 and 106", 0.0, partial(_independent, shape_x=(_MEMORY_SIZE,), shape_y=(106,))),
        KnownCase(
            "independent, 64 and set of 100", 0.0, partial(_independent, shape_x=(_MEMORY_SIZE,), shape_y=(100, 2))
        ),
    )


def known_cases() -> dict[str, KnownCase]:
    """All of them, by name. The first call takes a second: three truths are computed by sampling."""
    return {case.name: case for case in _all_cases()}


# Gaussian vectors: y = ρx + √(1 − ρ²) noise in each dimension, and what keeps their information.


def _gaussian_case(dimension: int, bits: float, *, frozen: bool = False) -> KnownCase:
    sample = partial(_gaussian, dimension=dimension, correlation=_correlation(bits / dimension))
    return KnownCase(f"Gaussian, d = {dimension}, {bits:g} bits", bits, sample, frozen=frozen)


def _warped_case(name: str, warp: Callable[[Array], Array]) -> KnownCase:
    """An invertible map of each number changes no information."""
    sample = partial(_warped, warp=warp, dimension=2, correlation=_correlation(1.0))
    return KnownCase(f"Gaussian, d = 2, 2 bits, {name}", 2.0, sample)


def _correlation(bits: float) -> float:
    """ρ of a pair of Gaussian numbers with so many bits, −½ log2(1 − ρ²)."""
    return float(np.sqrt(1 - 2.0 ** (-2 * bits)))


def _gaussian(key: PRNGKeyArray, num_samples: int, *, dimension: int, correlation: float) -> Vectors:
    x, noise = jax.random.normal(key, (2, num_samples, dimension))
    return x, correlation * x + np.sqrt(1 - correlation**2) * noise


def _warped(
    key: PRNGKeyArray, num_samples: int, *, warp: Callable[[Array], Array], dimension: int, correlation: float
) -> Vectors:
    x, y = _gaussian(key, num_samples, dimension=dimension, correlation=correlation)
    return warp(x), warp(y)


# Student's t with 3 degrees of freedom: a Gaussian pair over one common scale, which x and y both tell something of.


def _student_case(dimension: int, gaussian_bits: float, *, freedom: int = 3) -> KnownCase:
    """(x, y) is multivariate t; the bits of its correlation, and those of the common scale.

    In h(x) + h(y) − h(x, y) all is as for Gaussian vectors but f(ν) + f(ν + 2d) − 2 f(ν + d) nats, with
    f(n) = log Γ(n/2) − n/2 ψ(n/2): Arellano-Valle, Contreras-Reyes, Genton: Shannon entropy and mutual information
    for multivariate skew-elliptical distributions (2013); Czyż et al.: Beyond normal (2023), the bmi benchmark.
    """
    f_none, f_one, f_both = (
        gammaln(n / 2) - n / 2 * digamma(n / 2) for n in (freedom, freedom + dimension, freedom + 2 * dimension)
    )
    bits = gaussian_bits + float((f_none + f_both - 2 * f_one) / np.log(2))
    sample = partial(
        _student, dimension=dimension, correlation=_correlation(gaussian_bits / dimension), freedom=freedom
    )
    return KnownCase(f"Student t({freedom}), d = {dimension}, {gaussian_bits:g} bits of correlation", bits, sample)


def _student(key: PRNGKeyArray, num_samples: int, *, dimension: int, correlation: float, freedom: int) -> Vectors:
    key_pair, key_scale = jax.random.split(key)
    x, y = _gaussian(key_pair, num_samples, dimension=dimension, correlation=correlation)
    scale = jnp.sqrt(jnp.mean(jax.random.normal(key_scale, (num_samples, freedom, 1)) ** 2, axis=1))
    return x / scale, y / scale


# Symbols: the memory is a smooth code of a T-Maze's history, a position and a branch; the belief is certain of it.


def _symbol_case(num_symbols: int) -> KnownCase:
    bits = float(np.log2(num_symbols))
    return KnownCase(f"code of {num_symbols} symbols", bits, partial(_noisy_code, num_symbols=num_symbols, noise=0.0))


def _noisy_case(num_symbols: int, noise: float, *, frozen: bool = False) -> KnownCase:
    """Gaussian noise on the code: the posterior is exact, its mean over the noise is sampled."""
    truth = smoothed_information(
        jax.random.key(num_symbols),
        symbol_codes(num_symbols),
        np.arange(num_symbols),
        np.full(num_symbols, 1 / num_symbols),
        noise=noise,
        num_samples=400,
    )
    return KnownCase(
        f"code of {num_symbols} symbols with noise {noise}",
        truth.bits,
        partial(_noisy_code, num_symbols=num_symbols, noise=noise),
        standard_error=truth.standard_error,
        frozen=frozen,
    )


def symbol_codes(num_symbols: int) -> Float[np.ndarray, "symbols 64"]:
    """One memory for each symbol: tanh of a fixed random map of waves of its position and of the sign of its branch."""
    symbol = np.arange(num_symbols)
    position, branch = symbol // 2 / (num_symbols // 2), 1.0 - 2 * (symbol % 2)
    angles = np.pi * position[:, None] * np.arange(1, 5)
    waves = np.concatenate([np.sin(angles), np.cos(angles), branch[:, None]], axis=1)
    weights = np.random.default_rng(0).normal(size=(waves.shape[1], _MEMORY_SIZE)) / np.sqrt(waves.shape[1])
    return np.tanh(waves @ weights).astype(np.float32)


def _noisy_code(key: PRNGKeyArray, num_samples: int, *, num_symbols: int, noise: float) -> Vectors:
    key_symbol, key_noise = jax.random.split(key)
    symbol = jax.random.randint(key_symbol, (num_samples,), 0, num_symbols)
    code = jnp.asarray(symbol_codes(num_symbols))[symbol]
    # Four entries stay zero, as those of a T-Maze's terminal states do until an episode ends.
    belief = jax.nn.one_hot(symbol, num_symbols + 4)
    return code + noise * jax.random.normal(key_noise, code.shape), belief


# Sets: z is hidden, x a code of z + noise, y a set of M particles around z. All that y tells of z is in its mean.


def _set_case(num_particles: int, bits: float, *, frozen: bool = False) -> KnownCase:
    """The mean of the set is z plus noise of variance s² / M, and the rest is two correlated Gaussian pairs."""
    mean_variance = 1 + _PARTICLE_DEVIATION**2 / num_particles
    noise = np.sqrt(1 / (_correlation(bits / 2) ** 2 * mean_variance) - 1)
    sample = partial(_particles, num_particles=num_particles, noise=float(noise))
    return KnownCase(f"set of {num_particles} particles, {bits:g} bits", bits, sample, frozen=frozen)


def _particles(key: PRNGKeyArray, num_samples: int, *, num_particles: int, noise: float) -> Sets:
    key_hidden, key_noise, key_particles = jax.random.split(key, 3)
    hidden = jax.random.normal(key_hidden, (num_samples, 2))
    seen = hidden + noise * jax.random.normal(key_noise, hidden.shape)
    # 64 tanh of two numbers give them back: no information is lost.
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(2, _MEMORY_SIZE)) / 2, jnp.float32)
    spread = jax.random.normal(key_particles, (num_samples, num_particles, 2))
    return jnp.tanh(seen @ weights), hidden[:, None] + _PARTICLE_DEVIATION * spread


def _independent(key: PRNGKeyArray, num_samples: int, *, shape_x: tuple[int, ...], shape_y: tuple[int, ...]) -> Samples:
    key_x, key_y = jax.random.split(key)
    return jax.random.normal(key_x, (num_samples, *shape_x)), jax.random.normal(key_y, (num_samples, *shape_y))
