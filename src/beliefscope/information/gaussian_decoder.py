"""Decoders of beliefs that are Gaussian, N(μ, Σ): what a normal distribution says whose mean is read off the memory.

The answer is N(m + f(h), S), where m is the mean belief's centre (at each t, or overall), f a decoder and S the second
moment of s about the answer. The cross entropy of N(μ, Σ) with it is known in closed form.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.information.critics import Layers
from beliefscope.information.decoders import FAMILIES, Family, Split, descend, silent
from beliefscope.information.each import on_each

_STRENGTHS = 10.0 ** np.arange(-1, 5)  # rows of the overall moments that are added to those of each t
_SPREADS = np.array([1.0, 1.1, 1.25, 1.5, 2.0, 3.0])  # by which S may be widened: residuals on training rows are small


class _Moments(NamedTuple):
    centre: Float[np.ndarray, "times d"]
    spread: Float[np.ndarray, "times d d"]


def gaussian_cross_entropies(
    key: PRNGKeyArray,
    x: Float[Array, "n x"],
    mean: Float[np.ndarray, "n d"],
    covariance: Float[np.ndarray, "n d d"],
    times: Int[np.ndarray, " n"] | None,
    parts: Split,
):
    """Nats on the judging rows: entropies, then by baseline the baseline's, each family's, and the better family."""
    size = mean.shape[1]
    entropy = 0.5 * (np.linalg.slogdet(covariance)[1] + size * np.log(2 * np.pi * np.e))
    wheres = {"none": np.zeros(len(mean), int)} | ({} if times is None else {"time": times})
    baseline: dict[str, np.ndarray] = {}
    decoded: dict[str, dict[str, np.ndarray]] = {}
    better: dict[str, str] = {}
    for place, (name, where) in enumerate(wheres.items()):
        started = [_answered(mean, covariance, where, split) for split in _each(parts)]
        baseline[name] = np.stack([judged for _, _, judged in started])
        centres = np.stack([moments.centre[where] for moments, _, _ in started])
        shapes = np.stack([np.linalg.inv(np.linalg.cholesky(moments.spread))[where] for moments, _, _ in started])
        losses, decoded[name] = {}, {}
        for number, family in enumerate(FAMILIES):
            key_fit = jax.random.fold_in(key, place * len(FAMILIES) + number)
            read = _read(key_fit, x, mean - centres, shapes, parts, family)
            found = [
                _answered(mean, covariance, where, split, centre + answer)
                for split, centre, answer in zip(_each(parts), centres, read, strict=True)
            ]
            losses[family.name] = float(np.mean([chosen for _, chosen, _ in found]))
            decoded[name][family.name] = np.stack([judged for _, _, judged in found])
        better[name] = min(losses, key=lambda family: losses[family])
    return np.stack([entropy[judge] for judge in parts.judge]), baseline, decoded, better


def _each(parts: Split) -> list[Split]:
    return [Split(*rows) for rows in zip(*parts, strict=True)]


def _answered(
    mean: Float[np.ndarray, "n d"],
    covariance: Float[np.ndarray, "n d d"],
    where: Int[np.ndarray, " n"],
    split: Split,
    read: Float[np.ndarray, "n d"] | None = None,
) -> tuple[_Moments, float, Float[np.ndarray, " judge"]]:
    """Normal answers around what was read, or around the mean belief at each t: their moments, nats on choosing rows,
    nats of each judging row. How far moments at t are drawn to the overall ones, the choosing rows decide."""
    best = None
    for strength in _STRENGTHS if where.any() else _STRENGTHS[:1]:
        moments = _moments(mean, covariance, where, split.train, read, strength)
        for widened in _SPREADS:
            now = moments._replace(spread=moments.spread * widened)
            chosen = float(np.mean(_nats(mean, covariance, where, split.choose, now, read)))
            if best is None or chosen < best[1]:
                best = now, chosen
    assert best is not None
    return *best, _nats(mean, covariance, where, split.judge, best[0], read)


def _moments(mean, covariance, where, rows, read, strength: float) -> _Moments:
    number = int(where.max()) + 1
    overall, count = mean[rows].mean(axis=0), np.bincount(where[rows], minlength=number)[:, None] + strength
    centre = (_summed(mean[rows], where[rows], number) + strength * overall) / count
    off = mean[rows] - (centre[where[rows]] if read is None else read[rows])
    second = covariance[rows] + off[:, :, None] * off[:, None, :]
    spread = (_summed(second, where[rows], number) + strength * second.mean(axis=0)) / count[:, None]
    return _Moments(centre, spread)


def _summed(values: Float[np.ndarray, "n *d"], where: Int[np.ndarray, " n"], number: int):
    total = np.zeros((number, *values.shape[1:]))
    np.add.at(total, where, values)
    return total


def _nats(mean, covariance, where, rows, moments: _Moments, read) -> Float[np.ndarray, " rows"]:
    """−E log N(s; answer, S) over s ~ N(μ, Σ)."""
    at = where[rows]
    off = mean[rows] - (moments.centre[at] if read is None else read[rows])
    second = covariance[rows] + off[:, :, None] * off[:, None, :]
    precision, log_volume = np.linalg.inv(moments.spread), np.linalg.slogdet(2 * np.pi * moments.spread)[1]
    return 0.5 * (log_volume[at] + np.einsum("nij,nji->n", precision[at], second))


def _read(key, x, targets, shapes, parts: Split, family: Family) -> Float[np.ndarray, "splits n d"]:
    """f(h) of every row, fitted to μ − m in units of the baseline's deviations."""
    arrays = (jnp.asarray(array, jnp.float32) for array in (targets, shapes))
    keys = jax.random.split(key, len(parts.train))
    with jax.default_matmul_precision("float32"):
        return np.asarray(_fitted(keys, x, *arrays, Split(*map(jnp.asarray, parts)), family), np.float64)


@partial(jax.jit, static_argnames="family")
def _fitted(keys, x, targets, shapes, parts: Split, family: Family):
    def one(key, target: Float[Array, "n d"], shape: Float[Array, "n d d"], split: Split):
        scale = jnp.std(target, axis=0) + 1e-12

        def loss(decoder: Layers, rows) -> Float[Array, " n"]:
            seen, aim, unit = rows
            return jnp.sum(jnp.einsum("nij,nj->ni", unit, aim - scale * decoder(seen)) ** 2, axis=1) / 2

        train, choose = ((x[rows], target[rows], shape[rows]) for rows in split[:2])
        key_start, key_fit = jax.random.split(key)
        start = silent(key_start, x.shape[1], family, target.shape[1])
        decoder, _ = descend(key_fit, start, loss, train, choose, family.descent)
        return scale * decoder(x)

    return on_each(one, keys, targets, shapes, parts)
