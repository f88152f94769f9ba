"""The standard error of a bound over the choice of pairs: the bootstrap, on scores that were computed once."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from beliefscope.information.scores import Scores

_RESAMPLES = 200


def bootstrap_error(value: Callable[[Scores], Float[Array, ""]], folds: Sequence[Scores]) -> float:
    """The deviation of the mean of `value` over the folds when the pairs of each are drawn anew with replacement.

    It is the sampling error given the critic: neither its bias nor what another fit would give.
    """
    spread = [_deviation(value, fold, np.random.default_rng(number)) for number, fold in enumerate(folds)]
    return float(np.sqrt(np.sum(np.square(spread)))) / len(folds)


def _deviation(value: Callable[[Scores], Float[Array, ""]], scores: Scores, draw: np.random.Generator) -> float:
    number = len(scores.joint)
    drawn = [draw.integers(number, size=number) for _ in range(_RESAMPLES)]
    return float(
        np.std([value(Scores(jnp.asarray(scores.joint[i]), jnp.asarray(scores.product[:, i]))) for i in drawn], ddof=1)
    )
