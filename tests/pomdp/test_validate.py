"""The checker names what is wrong; each defect is planted in a POMDP that is otherwise sound."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from zoo import POMDPS

from beliefscope.pomdp import POMDP, TabularPOMDP, TMaze, check_pomdp


class Walk(POMDP):
    """A walk on a line, seen with noise, that ends at 3; `defect` breaks one thing."""

    defect: str = eqx.field(static=True, default="")
    num_actions: int = eqx.field(static=True, default=2)
    observation_size: int = eqx.field(static=True, default=1)
    discount: float = eqx.field(static=True, default=0.9)
    horizon: int = eqx.field(static=True, default=12)

    def sample_initial(self, key):
        return jax.random.normal(key)

    def sample_transition(self, key, state, action):
        if self.defect == "state shape":
            return jnp.stack([state, state])
        if self.defect == "python branch" and state > 0:
            return state
        moved = state + jnp.where(action == 0, 1.0, -0.2) + 0.1 * jax.random.normal(key)
        if self.defect == "state not finite":
            return moved / 0.0
        return moved if self.defect == "moves" else jnp.where(self.is_terminal(state), state, moved)

    def sample_observation(self, key, state, action=None):
        if self.defect == "observation shape" and action is not None:
            return jnp.stack([state, state])
        seen = state[None] + 0.5 * jax.random.normal(key, (1,))
        return seen * jnp.nan if self.defect == "not finite" else seen

    def reward(self, state, action, next_state, observation=None):
        if self.defect == "reward shape":
            return jnp.zeros(2)
        if self.defect == "blind reward":
            return jnp.asarray(observation)[0]
        gain = jnp.where(self.is_terminal(state), 0.0, next_state)
        return next_state if self.defect == "rewarded end" else gain

    def is_terminal(self, state):
        return state if self.defect == "terminal type" else state > 3

    def sample_exploration(self, key):
        return jnp.asarray(2) if self.defect == "exploration" else jax.random.randint(key, (), 0, 2)

    def encode_observation(self, observation):
        return jnp.append(observation, 0.0) if self.defect == "code shape" else observation

    def log_observation(self, observation, state, action=None):
        if self.defect == "first density" and action is None:
            return jnp.zeros(())
        if self.defect == "no action":
            state = state + jnp.asarray(action)
        if self.defect == "density shape":
            return -2 * (observation - state) ** 2
        std = {"narrow density": 0.3, "wide density": 0.8}.get(self.defect, 0.5)
        shift = 0.3 * state if self.defect == "biased density" else 0.0
        inside = -jnp.inf if self.defect == "impossible" else 0.0
        return -0.5 * ((observation[0] - state - shift) / std) ** 2 + inside


DEFECTS = {
    "horizon": "a horizon is a whole number",
    "state shape": "sample_transition returns .* where sample_initial returns",
    "python branch": "sample_transition cannot be traced by JAX",
    "moves": "a terminal state moves under action 0",
    "observation shape": "sample_observation returns .* without an action",
    "not finite": "encode_observation returns values that are not finite",
    "reward shape": "reward returns .* where a scalar",
    "rewarded end": "a terminal state earns a reward by action 0",
    "terminal type": "is_terminal returns .* where a scalar of type bool",
    "exploration": r"sample_exploration returned \[2\] where actions lie below 2",
    "code shape": r"encode_observation returns the shape \(2,\) where observation_size is 1",
    "narrow density": "log_observation is not the density that sample_observation samples from",
    "wide density": "log_observation is not the density",
    "biased density": "log_observation is not the density",
    "impossible": "log_observation is not finite at an observation that was just sampled",
    "first density": "log_observation is not the density that sample_observation samples from before the first action",
    "no action": r"log_observation \(without an action\) cannot be traced by JAX",
    "density shape": r"log_observation returns float32\[1\] where a scalar of type floating is needed",
    "blind reward": r"reward \(without an observation\) cannot be traced by JAX",
    "state not finite": "sample_transition returns values that are not finite",
}


def test_a_sound_pomdp_passes():
    check_pomdp(Walk())


@pytest.mark.slow
@pytest.mark.parametrize("chance", [1e-3, 1e-4])
def test_a_rare_observation_is_no_defect(chance):
    observation = np.array([[1 - chance, chance], [0.0, 1.0]])
    half = np.full((1, 2, 2), 0.5)
    pomdp = TabularPOMDP(
        initial=half[0, 0],
        transition=half,
        reward=np.ones((1, 2)),
        observation=observation,
        discount=0.9,
        horizon=10,
    )
    check_pomdp(pomdp)


class Thermometer(POMDP):
    """Finitely many states seen through a continuous observation."""

    num_states: int = eqx.field(static=True, default=3)
    num_actions: int = eqx.field(static=True, default=1)
    observation_size: int = eqx.field(static=True, default=1)
    discount: float = eqx.field(static=True, default=0.9)
    horizon: int = eqx.field(static=True, default=8)

    def sample_initial(self, key):
        return jax.random.randint(key, (), 0, 3)

    def sample_transition(self, key, state, action):
        return jax.random.randint(key, (), 0, 3)

    def sample_observation(self, key, state, action=None):
        return state + 0.5 * jax.random.normal(key, (1,))

    def reward(self, state, action, next_state, observation=None):
        return 1.0 * next_state

    def is_terminal(self, state):
        return jnp.asarray(False)

    def initial_distribution(self):
        return jnp.full(3, 1 / 3)

    def predict(self, belief, action):
        return jnp.full(3, 1.0000001 / 3)

    def likelihood(self, observation, action=None):
        return jnp.exp(-2 * (observation[0] - jnp.arange(3)) ** 2)

    def terminal_states(self):
        return jnp.zeros(3, bool)


@pytest.mark.slow
def test_finite_states_may_be_seen_through_continuous_observations():
    check_pomdp(Thermometer())


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_in_one_sentence(defect):
    with pytest.raises(ValueError, match=DEFECTS[defect]) as error:
        check_pomdp(Walk(defect=defect, horizon=0 if defect == "horizon" else 12))
    assert "\n" not in str(error.value)


class BrokenMaze(POMDP):
    """A T-Maze seen through a façade that breaks one of the capabilities of a finite POMDP."""

    maze: TMaze = TMaze(5, 0.3)
    defect: str = eqx.field(static=True, default="")
    num_actions: int = eqx.field(static=True, default=4)
    observation_size: int = eqx.field(static=True, default=4)
    discount: float = eqx.field(static=True, default=0.98)
    horizon: int = eqx.field(static=True, default=15)

    @property
    def num_states(self):
        return self.maze.num_states

    def sample_initial(self, key):
        return self.maze.sample_initial(key) * (self.defect != "start")

    def sample_transition(self, key, state, action):
        other = TMaze(5, 0.4).sample_transition(key, state, action)
        return other if self.defect == "sampler" else self.maze.sample_transition(key, state, action)

    def sample_observation(self, key, state, action=None):
        return self.maze.sample_observation(key, state, action)

    def reward(self, state, action, next_state, observation=None):
        return self.maze.reward(state, action, next_state)

    def is_terminal(self, state):
        return self.maze.is_terminal(state)

    def encode_observation(self, observation):
        return self.maze.encode_observation(observation)

    def initial_distribution(self):
        return self.maze.initial_distribution()

    def predict(self, belief, action):
        return self.maze.predict(belief, action) * (0.9 if self.defect == "sum" else 1)

    def likelihood(self, observation, action=None):
        return self.maze.likelihood(3 - observation if self.defect == "likelihood" else observation)

    def terminal_states(self):
        return self.maze.terminal_states() & (self.defect != "terminal")


@pytest.mark.parametrize(
    ("defect", "sentence"),
    [
        ("start", "sample_initial returns . with frequency .* where initial_distribution says 0.5"),
        ("sampler", "sample_transition returns .* with frequency .* where predict says"),
        ("sum", "predict does not give probabilities that sum to 1 but to 0.9"),
        ("likelihood", "likelihood is not finite at an observation that was just sampled"),
        ("terminal", "terminal_states and is_terminal disagree"),
    ],
)
def test_disagreement_of_sampler_and_probabilities_is_named(defect, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_pomdp(BrokenMaze(defect=defect))


@pytest.mark.parametrize("name", ["varying mountain hike", "irrelevant t-maze"])
def test_the_library_passes_its_own_check(name):
    """The slow tests check all of it."""
    check_pomdp(POMDPS[name])
