"""The nearest-neighbour estimator of Kraskov, Stögbauer and Grassberger, their first one: no network, nothing to fit.

It takes paired vectors x [N, dx] and y [N, dy] and returns an `Estimate`. On Gaussian data in one or two dimensions it
is right to a few hundredths of a bit, and so on their cubes; it reads low where dimensions or bits are many: with
N = 5000 and d = 4, 1.8 of 2 bits and 5.0 of 6.

Kraskov, Stögbauer, Grassberger: Estimating mutual information (Physical Review E 69, 2004).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray
from scipy.spatial import cKDTree
from scipy.special import digamma

from beliefscope.errors import is_whole, require
from beliefscope.fast_keys import generator
from beliefscope.information.check import checked_pair
from beliefscope.information.columns import normal_scores
from beliefscope.information.interface import Estimate

_NUM_SUBSETS = 10
_SMALLEST_SUBSET = 20
# 10,000 normal numbers in single precision repeat about one in a thousand; a discrete variable repeats all of them.
_MOST_REPEATS = 0.01


@dataclass(frozen=True)
class KSG:
    """I = ψ(k) + ψ(N) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩ with k neighbours, in the maximum norm of normal scores.

    Columns become normal scores first, which does not change the information and removes heavy tails.


    The standard error is the spread of the estimates on 10 disjoint random subsets, divided by √10: the variance of
    this estimator falls as 1/N (Holmes and Nemenman, Physical Review E 100, 2019), so that a tenth of the data has ten
    times the variance. It does not include the bias, and is nan where the subsets would be too small to measure.
    """

    neighbours: int = 3

    def __post_init__(self) -> None:
        require(
            is_whole(self.neighbours) and self.neighbours >= 1,
            rule="the number of neighbours is a whole number of at least 1",
            received=self.neighbours,
            advice="3 is usual, more gives less variance and more bias",
        )

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        pair = checked_pair(x, y, sets_allowed=False)
        num_samples = len(pair.x)
        require(
            num_samples > self.neighbours,
            rule=f"{self.neighbours} neighbours need at least {self.neighbours + 1} samples",
            received=num_samples,
            advice="pass more samples or ask for fewer neighbours",
        )
        for name, rows in pair._asdict().items():
            _require_few_repeats(name, rows)
        x, y = (normal_scores(rows, rows).astype(np.float64) for rows in pair)
        return Estimate(
            bits=self._bits(x, y),
            standard_error=self._standard_error(key, x, y),
            num_samples=num_samples,
            num_particles=None,
            estimator=f"KSG, k = {self.neighbours}",
            # No ball holds fewer than its own centre and k − 1 neighbours.
            ceiling=float((digamma(num_samples) - digamma(self.neighbours)) / np.log(2)),
        )

    def _bits(self, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
        k, joint = self.neighbours, np.concatenate([x, y], axis=1)
        # The nearest 'neighbour' of a point in the tree is the point itself.
        radius = np.asarray(cKDTree(joint).query(joint, k=[k + 1], p=np.inf)[0])[:, 0]
        spread = digamma(_num_within(x, radius)) + digamma(_num_within(y, radius))
        return float((digamma(k) + digamma(len(x)) - spread.mean()) / np.log(2))

    def _standard_error(self, key: PRNGKeyArray, x: Float[np.ndarray, "n dx"], y: Float[np.ndarray, "n dy"]) -> float:
        if len(x) < _NUM_SUBSETS * max(_SMALLEST_SUBSET, self.neighbours + 1):
            return float("nan")
        order = generator(key).permutation(len(x))
        bits = [self._bits(x[part], y[part]) for part in np.array_split(order, _NUM_SUBSETS)]
        return float(np.std(bits, ddof=1) / np.sqrt(_NUM_SUBSETS))


def _num_within(points: Float[np.ndarray, "n d"], radius: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """n + 1: the points strictly nearer than the radius, the centre among them."""
    return cKDTree(points).query_ball_point(points, r=np.nextafter(radius, 0), p=np.inf, return_length=True)


def _require_few_repeats(name: str, rows: Float[np.ndarray, "n d"]) -> None:
    counts = Counter(row.tobytes() for row in rows + 0.0)  # no negative zeros: their bytes differ
    fraction = sum(count for count in counts.values() if count > 1) / len(rows)
    require(
        fraction <= _MOST_REPEATS,
        rule=f"KSG measures continuous variables, and at most {_MOST_REPEATS:.0%} of the rows of {name} may repeat",
        received=round(fraction, 4),
        advice="use AtomsBound or mutual_information for beliefs that recur, and for one-hot or tied data",
    )
