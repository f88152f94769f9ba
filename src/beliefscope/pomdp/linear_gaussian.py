"""A linear-Gaussian process: what a Kalman filter tracks, and what the irrelevant variables of the paper follow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from beliefscope.errors import check_std, is_whole, require
from beliefscope.pomdp.interface import Action

_SMALL = 8  # dimensions
_MOST_DIMENSIONS = 1000  # covariances have so many rows and columns


class LinearGaussian(eqx.Module):
    """s_0 ~ N(m, P), s_{t+1} = A s_t + B[a_t] + N(0, Q), o_t = C s_t + N(0, R)."""

    initial_mean: Float[Array, " d"]  # m
    initial_covariance: Float[Array, "d d"]  # P
    transition: Float[Array, "d d"]  # A
    process_covariance: Float[Array, "d d"]  # Q
    observation: Float[Array, "o d"]  # C
    observation_covariance: Float[Array, "o o"]  # R
    action_effect: Float[Array, "actions d"] | None = None  # B; None where actions change nothing

    def __check_init__(self) -> None:
        for name, value in vars(self).items():
            require(
                value is None or isinstance(value, np.ndarray | jax.Array),
                rule=f"{name} is an array of NumPy or JAX",
                received=type(value).__name__,
                advice="pass jnp.array(…) of it",
            )
        states, seen = len(self.initial_mean), len(self.observation)
        shapes = {"transition": (states, states), "observation": (seen, states), "initial_covariance": (states, states)}
        shapes |= {"process_covariance": (states, states), "observation_covariance": (seen, seen)}
        for name, shape in shapes.items():
            require(
                getattr(self, name).shape == shape,
                rule=f"{name} has the shape {shape}",
                received=getattr(self, name).shape,
                advice="check it against the lengths of the initial mean and of an observation",
            )
        effect = self.action_effect
        require(
            effect is None or (effect.ndim == 2 and effect.shape[1] == states),
            rule=f"action_effect has the shape (number of actions, {states})",
            received=None if effect is None else effect.shape,
            advice="give each action a row, with a number for each state variable",
        )
        for name in ("initial_covariance", "process_covariance", "observation_covariance"):
            _check_covariance(name, getattr(self, name))

    @classmethod
    def random_walk(
        cls, dimensions: int, *, initial_std: float, process_std: float, observation_std: float
    ) -> "LinearGaussian":
        """`dimensions` independent Gaussian random walks around zero, each observed with Gaussian noise."""
        require(
            is_whole(dimensions) and 1 <= dimensions <= _MOST_DIMENSIONS,
            rule=f"the number of dimensions is a whole number of at least 1 and at most {_MOST_DIMENSIONS}",
            received=dimensions,
            advice="the paper uses 1 and 4",
        )
        check_std("initial_std", initial_std)
        check_std("process_std", process_std)
        check_std("observation_std", observation_std)
        eye = jnp.eye(dimensions)
        return cls(
            initial_mean=jnp.zeros(dimensions),
            initial_covariance=initial_std**2 * eye,
            transition=eye,
            process_covariance=process_std**2 * eye,
            observation=eye,
            observation_covariance=observation_std**2 * eye,
        )

    def sample_initial(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return self.initial_mean + _noise(key, self.initial_covariance)

    def sample_transition(self, key: PRNGKeyArray, state: Float[Array, " d"], action: Action) -> Float[Array, " d"]:
        return self.drift(state, action) + _noise(key, self.process_covariance)

    def sample_observation(self, key: PRNGKeyArray, state: Float[Array, " d"]) -> Float[Array, " o"]:
        return self.observation @ state + _noise(key, self.observation_covariance)

    def drift(self, state: Float[Array, " d"], action: Action | Int[Array, ""]) -> Float[Array, " d"]:
        """A s + B[a]."""
        moved = self.transition @ state
        return moved if self.action_effect is None else moved + self.action_effect[action]


def _noise(key: PRNGKeyArray, covariance: Float[Array, "d d"]) -> Float[Array, " d"]:
    root = _small_cholesky if len(covariance) <= _SMALL else jnp.linalg.cholesky
    return root(covariance) @ jax.random.normal(key, covariance.shape[:1])


def _small_cholesky(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The lower root, column by column. It is written out because on a GPU a library's factorisation at every step of
    an episode takes far longer than the step."""
    columns, left, places = [], covariance, jnp.arange(len(covariance))
    for place in range(len(covariance)):
        column = jnp.where(places >= place, left[:, place] / jnp.sqrt(left[place, place]), 0.0)
        columns.append(column)
        left = left - jnp.outer(column, column)
    return jnp.stack(columns, axis=1)


def _check_covariance(name: str, covariance: Array) -> None:
    if isinstance(covariance, Tracer):
        return
    matrix = np.asarray(covariance)
    require(
        np.allclose(matrix, matrix.T) and bool(np.all(np.linalg.eigvalsh(matrix) > 0)),
        rule=f"{name} is symmetric and positive definite",
        received=matrix.tolist(),
        advice="pass a proper covariance matrix",
    )
