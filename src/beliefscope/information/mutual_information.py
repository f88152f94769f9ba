"""The one call for one's own data: `mutual_information(memory, belief)`, in bits, beside its shuffled control."""

import dataclasses
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from beliefscope.fast_keys import fast_key
from beliefscope.information.atoms_bound import AtomsBound
from beliefscope.information.check import Pair, checked_pair
from beliefscope.information.entropy import discrete_entropy
from beliefscope.information.interface import Estimate
from beliefscope.information.seeding import generator
from beliefscope.information.trusted import Trusted
from beliefscope.information.warning_signs import bound_warning, entropy_warning


def mutual_information(memory: Any, belief: Any, *, key: PRNGKeyArray | None = None) -> Estimate:
    """How many bits memories [N, m] and beliefs [N, d] share; a belief may also be a set of particles, [N, M, d].

    NumPy, JAX and PyTorch arrays will do, those of PyTorch on the CPU. One row is one pair, and pairs should be
    independent of each other: one step of each episode. Some thousand pairs are needed, and a minute or two on one
    core. Without a key the same arrays always give the same number. In the field `shuffled` stands what the same
    estimator says of the same samples with their pairs broken up. Where beliefs recur, the number is held against H(b)
    and against the atoms bound, and `warnings` says if it is above the one or below the other.
    """
    key_measure, key_shuffle, key_control = jax.random.split(fast_key(jax.random.key(0) if key is None else key), 3)
    pair = checked_pair(memory, belief, sets_allowed=True, names=("memory", "belief"))
    found = Trusted().estimate(key_measure, pair.x, pair.y)
    shuffled = Trusted().estimate(key_control, pair.x, generator(key_shuffle).permutation(pair.y))
    return dataclasses.replace(
        found, shuffled=shuffled, warnings=found.warnings + _held_against(key_measure, pair, found)
    )


def _held_against(key: PRNGKeyArray, pair: Pair, found: Estimate) -> tuple[str, ...]:
    """What is known where beliefs take few values."""
    if pair.y.ndim == 3 or (entropy := discrete_entropy(pair.y)).flagged:
        return ()
    proven = AtomsBound().estimate(key, pair.x, pair.y)
    above = entropy_warning(found.bits, found.standard_error, entropy.bits)
    return above + bound_warning(found.bits, found.standard_error, proven.bits - 2 * proven.standard_error)
