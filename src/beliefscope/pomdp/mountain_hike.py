"""The Mountain Hike (Igl et al., 2018; the paper's appendix A): reach the top seeing only a noisy altitude.

The hiker starts at (−0.8, −0.8) and moves relative to an orientation it does not see: always 90° in the Mountain Hike,
one of four in the Varying Mountain Hike. A move is R(c)·a with the paper's matrix as printed; the paper's words
('North', 'Forward') disagree with that matrix, but by symmetry only the labels of the actions change.
"""

from math import log, pi

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from beliefscope.errors import check_std, is_real, require
from beliefscope.paper import START, TOP, Variant, altitude, check_variant, turned_move
from beliefscope.pomdp.interface import POMDP, Action, check_action, checked_discount, checked_horizon, label_of

NORTH = 1  # orientation index: 0, 1, 2, 3 stand for 0°, 90°, 180°, 270°


class HikeState(eqx.Module):
    """Where the hiker stands and which way it faces.

    The coordinates are separate because arrays of x and of y compile to much faster code than arrays of pairs (x, y).
    """

    x: Float[Array, "*batch"]
    y: Float[Array, "*batch"]
    orientation: Int[Array, "*batch"]


class MountainHike(POMDP):
    """The Mountain Hike; `varying=True` draws the orientation at the start of each episode.

    With `absorbing_goal=False` the top does not absorb: an episode still ends there, but the particles of a filter
    continue to move. `one_hot_orientation=False` makes a particle's orientation one number instead of four.
    """

    varying: bool = eqx.field(static=True)
    transition_std: float = eqx.field(static=True)  # σ_T
    observation_std: float = eqx.field(static=True)  # σ_O
    goal_radius: float = eqx.field(static=True)
    absorbing_goal: bool = eqx.field(static=True)
    one_hot_orientation: bool = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)

    def __init__(
        self,
        *,
        varying: bool = False,
        transition_std: float = 0.05,
        observation_std: float = 0.1,
        goal_radius: float = 0.1,
        absorbing_goal: bool = True,
        one_hot_orientation: bool = True,
        horizon: int | None = None,
        discount: float = 0.99,
    ) -> None:
        check_std("transition_std", transition_std)
        check_std("observation_std", observation_std)
        require(
            is_real(goal_radius) and 0 < goal_radius <= 2,
            rule="the goal's radius is above 0 and at most 2",
            received=goal_radius,
            advice="the paper uses 0.1",
        )
        self.varying = varying
        self.transition_std = float(transition_std)
        self.observation_std = float(observation_std)
        self.goal_radius = float(goal_radius)
        self.absorbing_goal = absorbing_goal
        self.one_hot_orientation = one_hot_orientation
        self.horizon = checked_horizon(horizon if horizon is not None else (160 if varying else 80))
        self.discount = checked_discount(discount)

    @classmethod
    def of_paper(cls, variant: Variant = "text", *, varying: bool = False) -> "MountainHike":
        """The paper's environment in one of its variants."""
        check_variant(variant)
        if variant == "text":
            return cls(varying=varying)
        return cls(varying=varying, goal_radius=0.2, absorbing_goal=False, one_hot_orientation=False)

    num_actions = 4
    observation_size = 1

    def sample_initial(self, key: PRNGKeyArray) -> HikeState:
        orientation = jax.random.randint(key, (), 0, 4) if self.varying else jnp.asarray(NORTH)
        return HikeState(x=jnp.asarray(START[0]), y=jnp.asarray(START[1]), orientation=orientation)

    def sample_transition(self, key: PRNGKeyArray, state: HikeState, action: Action) -> HikeState:
        check_action(action, self.num_actions)
        noise_x, noise_y = self.transition_std * jax.random.normal(key, (2,))
        step_x, step_y = turned_move(state.orientation, action, jnp)
        x = jnp.clip(state.x + step_x + noise_x, -1, 1)
        y = jnp.clip(state.y + step_y + noise_y, -1, 1)
        stays = self.is_terminal(state) & self.absorbing_goal
        return HikeState(jnp.where(stays, state.x, x), jnp.where(stays, state.y, y), state.orientation)

    def sample_observation(
        self, key: PRNGKeyArray, state: HikeState, action: Action | None = None
    ) -> Float[Array, "1"]:
        return altitude(state.x, state.y, jnp) + self.observation_std * jax.random.normal(key, (1,))

    def reward(
        self,
        state: HikeState,
        action: Action,
        next_state: HikeState,
        observation: Float[Array, "1"] | None = None,
    ) -> Float[Array, ""]:
        return jnp.where(self.is_terminal(state), 0.0, altitude(next_state.x, next_state.y, jnp))

    def is_terminal(self, state: HikeState) -> Bool[Array, ""]:
        return (state.x - TOP[0]) ** 2 + (state.y - TOP[1]) ** 2 < self.goal_radius**2

    def state_features(self, state: HikeState) -> Float[Array, " features"]:
        """The position, and the orientation where it varies."""
        position = jnp.stack([state.x, state.y])
        if not self.varying:
            return position
        if self.one_hot_orientation:
            return jnp.append(position, jax.nn.one_hot(state.orientation, 4))
        return jnp.append(position, state.orientation)

    def log_observation(
        self, observation: Float[Array, "1"], state: HikeState, action: Action | None = None
    ) -> Float[Array, ""]:
        error = (observation[0] - altitude(state.x, state.y, jnp)) / self.observation_std
        return -0.5 * error**2 - log(self.observation_std) - 0.5 * log(2 * pi)


@label_of.register
def _(hike: MountainHike) -> str:
    return "Varying Mountain Hike" if hike.varying else "Mountain Hike"
