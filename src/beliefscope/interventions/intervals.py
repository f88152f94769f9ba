"""Means with intervals, where several rows come from one episode: episodes are resampled, not rows."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

RESAMPLES = 1000


class Score(NamedTuple):
    """A number with its 95 % interval over episodes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio_of_sums(
    above: Shaped[np.ndarray, " n"],
    below: Shaped[np.ndarray, " n"] | None,
    episode: Int[np.ndarray, " n"],
    *,
    level: float = 0.95,
) -> Score | None:
    """Σ above / Σ below (by default the number of rows), with its bootstrap interval; None where Σ below is 0."""
    below = np.ones(len(above)) if below is None else below
    if not len(above) or below.sum() == 0:
        return None
    number, at = np.unique(episode, return_inverse=True)
    sums = np.stack([np.bincount(at, weights=each, minlength=len(number)) for each in (above, below)])
    tops, bottoms = sums @ _resamples(len(number))
    drawn = tops[bottoms != 0] / bottoms[bottoms != 0]
    value = float(above.sum() / below.sum())
    tail = 50 * (1 - level)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Score(value, min(value, float(low)), max(value, float(high)))


@lru_cache(maxsize=8)
def _resamples(number: int) -> Float[np.ndarray, "number resamples"]:
    """How often each episode is in each resample: always the same, so that the same rows give the same interval."""
    draw = np.random.default_rng(number)
    return draw.multinomial(number, np.full(number, 1 / number), RESAMPLES).T.astype(np.float64)
