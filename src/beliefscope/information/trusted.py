"""The estimator for one's own data: no critic scores a pair that it has seen, and each score is a mean of four.

Arrays are cut into five folds; critics trained on four of them score the fifth, and the bits are the mean over folds.
Columns become normal scores, sets become vectors of means. Critics are separable, so that a batch contrasts each
x with every y of the batch (InfoNCE in both directions), and what is reported is the bound of Donsker and Varadhan on
pairs that were not trained on, with every x against every y of another pair: all shuffles there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import fast_key
from beliefscope.information.bootstrap import bootstrap_error
from beliefscope.information.bounds import DonskerVaradhan
from beliefscope.information.check import Pair, checked_pair, is_constant
from beliefscope.information.each import on_each
from beliefscope.information.interface import Estimate, no_information
from beliefscope.information.normal_scores import normal_scores
from beliefscope.information.scores import Samples, Scores
from beliefscope.information.separable import fit_separable, score_all
from beliefscope.information.set_features import set_features
from beliefscope.information.warning_signs import ceiling_warning

_FOLDS = 5
_MEMBERS = 4  # critics of a fold, whose scores are averaged
_FACTORS = np.arange(0, 2.05, 0.1)  # by which the scores may be multiplied; 0 is a critic that knows nothing
_LEAST = 1000  # samples


class _Parts(NamedTuple):
    """The rows that train, that choose, and that are scored."""

    train: Int[Array, " train"]
    choose: Int[Array, " choose"]
    judge: Int[Array, " judge"]


@dataclass(frozen=True)
class Trusted:
    """Calibrated on data of known information (docs/calibration.md); no setting is left to its user."""

    name = "trusted"

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]."""
        pair = checked_pair(x, y, sets_allowed=True)
        _check_number(len(pair.x))
        key_folds, key_fit = jax.random.split(fast_key(key))
        order = np.asarray(jax.random.permutation(key_folds, len(pair.x)))
        # All folds are of one size, so that they are one program; at most four pairs are not scored.
        folds = order[: len(order) // _FOLDS * _FOLDS].reshape(_FOLDS, -1)
        rest = [np.concatenate([folds[other] for other in range(_FOLDS) if other != fold]) for fold in range(_FOLDS)]
        parts = [_parts(rows, fold, one_in=8) for rows, fold in zip(rest, folds, strict=True)]
        # The marginals of all pairs make the scale; which x belongs to which y plays no part in it.
        return self._estimate(key_fit, pair, pair, parts)

    def estimate_sampler(
        self, key: PRNGKeyArray, sample: Callable[[PRNGKeyArray, int], tuple[Any, Any]], *, num_samples: int
    ) -> Estimate:
        """From a source of pairs, `sample(key, n) -> x, y`: N train, a fifth of them chooses, N fresh are scored."""
        require(
            is_whole(num_samples),
            rule="the number of samples is a whole number",
            received=num_samples,
            advice="the paper uses 10000",
        )
        _check_number(num_samples)
        key_train, key_fresh, key_fit = jax.random.split(fast_key(key), 3)
        both = [checked_pair(*sample(key, num_samples), sets_allowed=True) for key in (key_train, key_fresh)]
        numbers = [len(pair.x) for pair in both]
        require(
            numbers == [num_samples, num_samples],
            rule=f"sample(key, {num_samples}) returns {num_samples} pairs",
            received=numbers,
            advice="return as many pairs as are asked for",
        )
        pair = Pair(*(np.concatenate(part) for part in zip(*both, strict=True)))
        parts = [_parts(np.arange(num_samples), np.arange(num_samples, 2 * num_samples), one_in=5)]
        return self._estimate(key_fit, pair, both[0], parts)

    def _estimate(self, key: PRNGKeyArray, pair: Pair, reference: Pair, parts: list[_Parts]) -> Estimate:
        number, particles = sum(len(part.judge) for part in parts), pair.y.shape[1] if pair.y.ndim == 3 else None
        ceiling = float(np.log2(number))
        if is_constant(pair.x) or is_constant(pair.y):
            return no_information(number, particles, self.name, ceiling)
        x, y = (_prepared(*two) for two in zip(pair, reference, strict=True))
        stacked: _Parts = jax.tree.map(lambda *rows: jnp.stack(rows), *parts)
        with jax.default_matmul_precision("float32"):  # GPUs would round the factors of a product to 10 bits
            found, curves = _measure(key, Samples(x, y), stacked)
        scores = [Scores(*fold) for fold in zip(*map(np.asarray, found), strict=True)]
        bits = float(np.mean([_value(fold) for fold in scores]))
        return Estimate(
            bits=bits,
            standard_error=bootstrap_error(DonskerVaradhan(), scores),
            num_samples=number,
            num_particles=particles,
            estimator=self.name,
            ceiling=ceiling,
            curve=np.asarray(curves).mean(axis=(0, 1)),
            warnings=ceiling_warning(bits, ceiling),
        )


def _check_number(number: int) -> None:
    require(
        number >= _LEAST,
        rule=f"the trusted estimate needs at least {_LEAST} pairs",
        received=number,
        advice="measure on more pairs, 10000 where possible",
    )


def _parts(rows: Int[np.ndarray, " rest"], judge: Int[np.ndarray, " judge"], *, one_in: int) -> _Parts:
    choose = len(rows) // one_in
    return _Parts(*map(jnp.asarray, (rows[choose:], rows[:choose], judge)))


def _prepared(values: np.ndarray, reference: np.ndarray) -> Float[Array, "n d"]:
    if values.ndim == 3:
        values, reference = set_features(values, reference), set_features(reference, reference)
    return jnp.asarray(normal_scores(values, reference))


@jax.jit
def _value(scores: Scores) -> Float[Array, ""]:
    return DonskerVaradhan().bits(scores)


@jax.jit
def _measure(key: PRNGKeyArray, samples: Samples, parts: _Parts) -> tuple[Scores, Float[Array, "folds members epochs"]]:
    """The scores of every fold, and the bound on the choosing pairs after every epoch of every member."""
    return on_each(partial(_fold, samples), jax.random.split(key, len(parts.train)), parts)


def _fold(samples: Samples, key: PRNGKeyArray, parts: _Parts) -> tuple[Scores, Float[Array, "members epochs"]]:
    train, choose, judge = (Samples(samples.x[rows], samples.y[rows]) for rows in parts)
    critics, curves = on_each(lambda key_one: fit_separable(key_one, train, choose), jax.random.split(key, _MEMBERS))
    factors = jnp.asarray(_FACTORS, jnp.float32)
    bits = lax.map(lambda factor: DonskerVaradhan().bits(score_all(critics, choose, factor)), factors)
    return score_all(critics, judge, factors[jnp.argmax(bits)]), curves
