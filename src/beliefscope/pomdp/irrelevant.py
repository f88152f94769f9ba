"""Any POMDP with d irrelevant variables added: independent Gaussian random walks observed with noise."""

from math import sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from beliefscope.paper import Variant, check_variant
from beliefscope.pomdp.interface import POMDP, Action, check_pomdp_type, label_of
from beliefscope.pomdp.linear_gaussian import LinearGaussian


class Parts(eqx.Module):
    """The two parts of a state or an observation: what matters for the control problem and what does not."""

    relevant: PyTree
    irrelevant: Float[Array, "*batch d"]


class Irrelevant(POMDP):
    """`pomdp` with `dimensions` variables that follow random walks, are observed with noise and change nothing else."""

    pomdp: POMDP
    process: LinearGaussian
    dimensions: int = eqx.field(static=True)

    def __init__(
        self,
        pomdp: POMDP,
        dimensions: int,
        *,
        initial_std: float = 1.0,
        process_std: float = 1.0,
        observation_std: float = 1.0,
    ) -> None:
        check_pomdp_type(pomdp)
        self.pomdp = pomdp
        self.process = LinearGaussian.random_walk(
            dimensions, initial_std=initial_std, process_std=process_std, observation_std=observation_std
        )
        self.dimensions = int(dimensions)

    @classmethod
    def of_paper(cls, pomdp: POMDP, dimensions: int, variant: Variant = "text") -> "Irrelevant":
        """The paper's irrelevant variables in one of its variants."""
        check_variant(variant)
        std = 1.0 if variant == "text" else sqrt(0.1)
        return cls(pomdp, dimensions, initial_std=std, process_std=std, observation_std=1.0)

    @property
    def num_actions(self) -> int:
        return self.pomdp.num_actions

    @property
    def observation_size(self) -> int:
        return self.pomdp.observation_size + self.dimensions

    @property
    def discount(self) -> float:
        return self.pomdp.discount

    @property
    def horizon(self) -> int:
        return self.pomdp.horizon

    def sample_initial(self, key: PRNGKeyArray) -> Parts:
        key_relevant, key_irrelevant = jax.random.split(key)
        return Parts(self.pomdp.sample_initial(key_relevant), self.process.sample_initial(key_irrelevant))

    def sample_transition(self, key: PRNGKeyArray, state: Parts, action: Action) -> Parts:
        key_relevant, key_irrelevant = jax.random.split(key)
        relevant = self.pomdp.sample_transition(key_relevant, state.relevant, action)
        walked = self.process.sample_transition(key_irrelevant, state.irrelevant, action)
        return Parts(relevant, jnp.where(self.is_terminal(state), state.irrelevant, walked))

    def sample_observation(self, key: PRNGKeyArray, state: Parts, action: Action | None = None) -> Parts:
        key_relevant, key_irrelevant = jax.random.split(key)
        return Parts(
            self.pomdp.sample_observation(key_relevant, state.relevant, action),
            self.process.sample_observation(key_irrelevant, state.irrelevant),
        )

    def reward(
        self, state: Parts, action: Action, next_state: Parts, observation: Parts | None = None
    ) -> Float[Array, ""]:
        seen = None if observation is None else observation.relevant
        return self.pomdp.reward(state.relevant, action, next_state.relevant, seen)

    def is_terminal(self, state: Parts) -> Bool[Array, ""]:
        return self.pomdp.is_terminal(state.relevant)

    def sample_exploration(self, key: PRNGKeyArray) -> Int[Array, ""]:
        return self.pomdp.sample_exploration(key)

    def encode_observation(self, observation: Parts) -> Float[Array, " observation_size"]:
        return jnp.concatenate([self.pomdp.encode_observation(observation.relevant), observation.irrelevant])

    def state_features(self, state: Parts) -> Float[Array, " features"]:
        return jnp.concatenate([self.pomdp.state_features(state.relevant), state.irrelevant])


@label_of.register
def _(pomdp: Irrelevant) -> str:
    return f"{label_of(pomdp.pomdp)} + {pomdp.dimensions} irrelevant"
