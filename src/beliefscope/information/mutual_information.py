"""`mutual_information(memory, belief)`: one call for your own data, with its shuffled control."""

import dataclasses
import sys
import time
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from beliefscope.fast_keys import fast_key, generator
from beliefscope.information.best_bound import BestBound, BestBoundEstimate, BestBoundSettings
from beliefscope.information.check import checked_pair
from beliefscope.information.entropy import discrete_entropy
from beliefscope.warning_signs import entropy_warning

_PATIENCE = 5.0  # seconds, after which it is said what is being done


def mutual_information(memory: Any, belief: Any, *, key: PRNGKeyArray | None = None) -> BestBoundEstimate:
    """How many bits memories [N, m] and beliefs [N, d] share; a belief may also be a set of particles, [N, M, d].

    It takes NumPy, JAX and PyTorch arrays, those of PyTorch on the CPU. One row is one pair, and pairs should be
    independent of each other: one step of each episode. It needs some thousand pairs and some twenty seconds on one
    core. Without a key the same arrays always give the same number. `interval` says where the truth lies, `warnings`
    what makes the number doubtful, and `shuffled` what the same estimator reads when x and y are paired at random.
    Where beliefs recur, the number is compared with H(b).
    """
    key_measure, key_shuffle, key_control = jax.random.split(fast_key(jax.random.key(0) if key is None else key), 3)
    pair = checked_pair(memory, belief, sets_allowed=True, names=("memory", "belief"))
    say = _Progress()
    found = BestBound().estimate(key_measure, pair.x, pair.y, watch=say)
    say("the shuffled control")
    once = BestBound(BestBoundSettings(splits=1))  # that it shows nothing, one split tells as well as three
    shuffled = once.estimate(key_control, pair.x, generator(key_shuffle).permutation(pair.y))
    doubts: tuple[str, ...] = ()
    if pair.y.ndim == 2 and not (entropy := discrete_entropy(pair.y)).flagged:
        doubts = entropy_warning(found.bits, found.standard_error, entropy.bits)
    return dataclasses.replace(found, shuffled=shuffled, warnings=found.warnings + doubts)


class _Progress:
    """A line on stderr for each step that begins after the first seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, step: str) -> None:
        taken = time.monotonic() - self._start
        if taken > _PATIENCE:
            print(f"mutual_information: {taken:.0f} s, now {step}", file=sys.stderr, flush=True)
