"""The belief of a POMDP with irrelevant variables: a product of independent parts, each with its own filter."""

import equinox as eqx
import jax
from jaxtyping import ArrayLike, Bool, Int, PRNGKeyArray, PyTree

from beliefscope.belief.interface import Filter
from beliefscope.errors import require
from beliefscope.pomdp.irrelevant import Parts


class ByPart(eqx.Module):
    """Something for each part of a product POMDP: beliefs, features or health."""

    relevant: PyTree
    irrelevant: PyTree


class ProductFilter(Filter):
    """Runs one filter on each part of the observation and keeps their beliefs apart."""

    relevant: Filter
    irrelevant: Filter

    def __check_init__(self) -> None:
        for part in (self.relevant, self.irrelevant):
            require(
                isinstance(part, Filter),
                rule="a product filter is made of two filters",
                received=part,
                advice="pass relevant=… and irrelevant=…",
            )

    def init(self, key: PRNGKeyArray, observation: Parts, *, terminal: Bool[ArrayLike, ""] = False) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.init(key_relevant, observation.relevant, terminal=terminal),
            irrelevant=self.irrelevant.init(key_irrelevant, observation.irrelevant, terminal=terminal),
        )

    def update(
        self,
        key: PRNGKeyArray,
        belief: ByPart,
        action: Int[ArrayLike, ""],
        observation: Parts,
        *,
        terminal: Bool[ArrayLike, ""] = False,
    ) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.update(
                key_relevant, belief.relevant, action, observation.relevant, terminal=terminal
            ),
            irrelevant=self.irrelevant.update(
                key_irrelevant, belief.irrelevant, action, observation.irrelevant, terminal=terminal
            ),
        )

    def features(self, key: PRNGKeyArray, belief: ByPart) -> ByPart:
        key_relevant, key_irrelevant = jax.random.split(key)
        return ByPart(
            relevant=self.relevant.features(key_relevant, belief.relevant),
            irrelevant=self.irrelevant.features(key_irrelevant, belief.irrelevant),
        )

    def health(self, belief: ByPart) -> ByPart:
        return ByPart(self.relevant.health(belief.relevant), self.irrelevant.health(belief.irrelevant))
