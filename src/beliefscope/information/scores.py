"""What a critic says of pairs and of shuffled pairs: all that a bound needs to be evaluated."""

from typing import NamedTuple

import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from beliefscope.information.critics import Critic, SetCritic, VectorCritic


class Samples(NamedTuple):
    """Pairs; y is a batch of vectors or of sets."""

    x: Float[Array, "n x"]
    y: Float[Array, "n *set y"]


class Scores(NamedTuple):
    """T of the pairs, and of the same x with the y of other pairs."""

    joint: Float[Array | np.ndarray, " n"]
    product: Float[Array | np.ndarray, "shuffles n"]


def score(critic: Critic, samples: Samples, shuffles: Int[Array, "shuffles n"], *, chunk: int = 1000) -> Scores:
    """The scores, computed `chunk` pairs at a time."""
    critic, samples = _embedded(critic, samples)
    product = lax.map(lambda order: _scores(critic, samples._replace(y=samples.y[order]), chunk), shuffles)
    return Scores(_scores(critic, samples, chunk), product)


def _embedded(critic: Critic, samples: Samples) -> tuple[VectorCritic, Samples]:
    """Each set is read once, whatever the number of shuffles."""
    if isinstance(critic, SetCritic):
        return critic.mu, samples._replace(y=critic.embed(samples.y))
    return critic, samples


def _scores(critic: VectorCritic, samples: Samples, chunk: int) -> Float[Array, " n"]:
    return lax.map(lambda pair: critic(*pair), samples, batch_size=min(chunk, len(samples.x)))
