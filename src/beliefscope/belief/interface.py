"""What a belief filter is: it follows one episode and turns its history into a belief.

`init(key, observation)` gives b_0, `update(key, belief, action, observation)` gives b_t from b_{t-1}, a_{t-1} and o_t;
both are told whether the episode is over. So a filter is an observer for `rollout`. Filters that sample use the key,
and the others ignore it. The caller does batching and compilation.

`condition_on_termination` says whether the filter knows that the episode continues (and, at its end, that it ended).
The paper calls termination observable, but its printed O does not tell the junction from the cells beyond it.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, PyTree

Belief = PyTree[Any]


class Health(NamedTuple):
    """How reliable a belief is."""

    effective_sample_size: Float[Array, ""]  # 1 / Σ w² for particles, infinite where nothing is sampled
    impossible: Bool[Array, ""]  # has an observation of probability zero been seen, now or earlier in the episode?


class Filter(eqx.Module):
    """Turns the observations and actions of one episode into beliefs."""

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, observation: PyTree, *, terminal: Bool[ArrayLike, ""] = False) -> Belief:
        """b_0 from the first observation; `terminal` tells whether the episode was over before it began."""

    @abc.abstractmethod
    def update(
        self,
        key: PRNGKeyArray,
        belief: Belief,
        action: Int[ArrayLike, ""],
        observation: PyTree,
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> Belief:
        """b_t from b_{t-1}, a_{t-1} and o_t; `terminal` tells whether the episode ended with o_t."""

    @abc.abstractmethod
    def features(self, key: PRNGKeyArray, belief: Belief) -> PyTree:
        """What an estimator reads: a vector [d], a set of vectors [M, d], or a record of those by part."""

    @abc.abstractmethod
    def health(self, belief: Belief) -> PyTree[Health]:
        """How reliable the belief is: a `Health`, or a record of those by part."""
