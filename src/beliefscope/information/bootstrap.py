"""The standard error of a bound over the choice of pairs: the bootstrap, on scores that were computed once."""

from collections.abc import Sequence
from functools import cache, partial

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from beliefscope.information.bounds import Bound
from beliefscope.information.each import on_each
from beliefscope.information.scores import Scores

_RESAMPLES = 200


def bootstrap_error(bound: Bound, folds: Sequence[Scores]) -> float:
    """The deviation of the bound's mean over the folds when the pairs of each are drawn anew with replacement.

    It is the sampling error given the critic: neither its bias nor what another fit would give.
    """
    spread = [np.std(_values(bound, fold, _drawn(seed, len(fold.joint))), ddof=1) for seed, fold in enumerate(folds)]
    return float(np.sqrt(np.sum(np.square(spread)))) / len(folds)


@cache
def _drawn(seed: int, number: int) -> Int[Array, "resamples n"]:
    """Which pairs each resample holds: the same for all estimates, so that they are drawn and sent to a GPU once."""
    return jax.device_put(np.random.default_rng(seed).integers(number, size=(_RESAMPLES, number), dtype=np.int32))


@partial(jax.jit, static_argnums=0)
def _values(bound: Bound, scores: Scores, drawn: Int[Array, "resamples n"]) -> Float[Array, " resamples"]:
    return on_each(lambda rows: bound.bits(Scores(scores.joint[rows], scores.product[:, rows])), drawn)
