"""The T-Maze (Bakker, 2001; the paper's appendix A): remember the first observation, use it at the junction.

A state is one integer, 2 · cell + layout: the cells 0 … L are the corridor with the junction last, L + 1 and L + 2 are
the arms above and below it, both terminal; the layouts are 0 = Up and 1 = Down, where the treasure lies.
"""

from fractions import Fraction
from math import ceil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from beliefscope.errors import is_real, is_whole, require
from beliefscope.pomdp.interface import POMDP, Action, check_action, checked_discount, checked_horizon, label_of
from beliefscope.pomdp.tabular import RewardFunction, TabularPOMDP

RIGHT, UP, LEFT, DOWN = range(4)
SEES_UP, SEES_DOWN, SEES_CORRIDOR, SEES_JUNCTION = range(4)
TREASURE = 4.0
BOUNCE = -0.1
_LONGEST = 1_000_000  # beliefs have twice as many entries, and an episode three times as many steps


class TMaze(POMDP):
    """T-Maze of corridor length L = `length` whose moves are random with probability λ = `stochasticity`.

    The horizon is the paper's H = ⌈L / ((1 − λ)(r − l))⌉ with r = 1/2 and l = 1/6 unless given; λ = 1 needs it given.
    """

    length: int = eqx.field(static=True)
    stochasticity: float = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)

    def __init__(
        self, length: int, stochasticity: float = 0.0, *, horizon: int | None = None, discount: float = 0.98
    ) -> None:
        require(
            is_whole(length) and 1 <= length <= _LONGEST,
            rule=f"a T-Maze's length is a whole number of at least 1 and at most {_LONGEST}",
            received=length,
            advice="the paper uses 50 and 100",
        )
        require(
            is_real(stochasticity) and 0 <= stochasticity <= 1,
            rule="a T-Maze's stochasticity λ lies in [0, 1]",
            received=stochasticity,
            advice="the paper uses 0 and 0.3",
        )
        require(
            horizon is not None or stochasticity < 1,
            rule="a T-Maze with λ = 1 needs an explicit horizon because its formula divides by 1 − λ",
            received=horizon,
            advice="pass horizon=…",
        )
        self.length = int(length)
        self.stochasticity = float(stochasticity)
        self.horizon = t_maze_horizon(length, self.stochasticity) if horizon is None else checked_horizon(horizon)
        self.discount = checked_discount(discount)

    num_actions = 4
    observation_size = 4

    @property
    def num_states(self) -> int:
        return 2 * (self.length + 3)

    def sample_initial(self, key: PRNGKeyArray) -> Int[Array, ""]:
        return jax.random.bernoulli(key).astype(int)

    def sample_transition(self, key: PRNGKeyArray, state: Int[ArrayLike, ""], action: Action) -> Int[Array, ""]:
        check_action(action, self.num_actions)
        if self.stochasticity > 0:
            key_astray, key_direction = jax.random.split(key)
            astray = jax.random.uniform(key_astray) < self.stochasticity
            action = jnp.where(astray, jax.random.randint(key_direction, (), 0, 4), action)
        return self._move(state, jnp.asarray(action))

    def sample_observation(
        self, key: PRNGKeyArray, state: Int[ArrayLike, ""], action: Action | None = None
    ) -> Int[Array, ""]:
        return self._observe(state)

    def reward(
        self,
        state: Int[ArrayLike, ""],
        action: Action,
        next_state: Int[ArrayLike, ""],
        observation: Int[ArrayLike, ""] | None = None,
    ) -> Float[Array, ""]:
        layout, cell = self._split(next_state)
        found = cell == jnp.where(layout == 0, self.length + 1, self.length + 2)
        arrived = self.is_terminal(next_state)
        gain = jnp.where(arrived, jnp.where(found, TREASURE, BOUNCE), jnp.where(state == next_state, BOUNCE, 0.0))
        return jnp.where(self.is_terminal(state), 0.0, gain)

    def is_terminal(self, state: Int[ArrayLike, "*batch"]) -> Bool[Array, "*batch"]:
        return self._split(state)[1] > self.length

    def sample_exploration(self, key: PRNGKeyArray) -> Int[Array, ""]:
        """E(Right) = 1/2, E(Up) = E(Left) = E(Down) = 1/6."""
        return jnp.maximum(jax.random.randint(key, (), 0, 6) - 2, RIGHT)

    def encode_observation(self, observation: Int[ArrayLike, ""]) -> Float[Array, "4"]:
        return jax.nn.one_hot(observation, self.observation_size)

    def state_features(self, state: Int[ArrayLike, ""]) -> Float[Array, " states"]:
        return jax.nn.one_hot(state, self.num_states)

    def log_observation(
        self, observation: Int[ArrayLike, ""], state: Int[ArrayLike, ""], action: Action | None = None
    ) -> Float[Array, ""]:
        return jnp.where(self._observe(state) == observation, 0.0, -jnp.inf)

    def initial_distribution(self) -> Float[Array, " states"]:
        return jnp.zeros(self.num_states).at[:2].set(0.5)

    def predict(self, belief: Float[Array, " states"], action: Action) -> Float[Array, " states"]:
        """Every cell receives probability from its two neighbours and itself, so the cost is linear in L.

        The pieces are pairs of states, one for each layout: the first cell, the inner corridor, the junction, the arms.
        """
        chance = (1 - self.stochasticity) * jax.nn.one_hot(action, 4, dtype=belief.dtype) + self.stochasticity / 4
        right, up, left, down = chance
        end = 2 * self.length
        junction = belief[end : end + 2]
        start = (up + left + down) * belief[:2] + left * belief[2:4]
        inner = right * belief[: end - 2] + (up + down) * belief[2:end] + left * belief[4 : end + 2]
        crossing = right * (belief[end - 2 : end] + junction)
        above = belief[end + 2 : end + 4] + up * junction
        below = belief[end + 4 :] + down * junction
        return jnp.concatenate([start, inner, crossing, above, below])

    def likelihood(self, observation: Int[ArrayLike, ""], action: Action | None = None) -> Float[Array, " states"]:
        seen = np.full(self.num_states, SEES_CORRIDOR)
        seen[:2] = SEES_UP, SEES_DOWN
        seen[2 * self.length :] = SEES_JUNCTION
        return (jnp.asarray(seen) == observation).astype(float)

    def terminal_states(self) -> Bool[Array, " states"]:
        return jnp.asarray(np.arange(self.num_states) >= 2 * (self.length + 1))

    def tabular(self) -> TabularPOMDP:
        """The same POMDP as arrays p0, T, R, O."""
        states = jnp.arange(self.num_states)
        targets = np.asarray(jax.jit(jax.vmap(jax.vmap(self._move, (0, None)), (None, 0)))(states, jnp.arange(4)))
        # A terminal state stays put under each of the four moves, so that its row sums to 1 for every λ.
        chances = (1 - self.stochasticity) * np.eye(4) + self.stochasticity / 4
        cells, shape = (np.tile(states, 4), targets.ravel()), (self.num_states, self.num_states)
        transition = [
            scipy.sparse.csr_array((np.repeat(chance, self.num_states), cells), shape=shape) for chance in chances
        ]
        seen = np.asarray(jax.jit(self._observe)(states))
        return TabularPOMDP(
            initial=np.asarray(self.initial_distribution()),
            transition=transition,
            reward=RewardFunction(lambda s, a, n, o: np.asarray(jax.jit(jax.vmap(self.reward))(s, a, n))),
            observation=np.eye(4)[seen],
            discount=self.discount,
            horizon=self.horizon,
            state_names=tuple(self.state_name(state) for state in range(self.num_states)),
            action_names=("right", "up", "left", "down"),
            observation_names=("up", "down", "corridor", "junction"),
            exploration=(1 / 2, 1 / 6, 1 / 6, 1 / 6),
        )

    def state_name(self, state: int) -> str:
        """A readable name such as `up-12`, `down-junction` or `up-below`."""
        cell, layout = divmod(int(state), 2)
        places = {self.length: "junction", self.length + 1: "above", self.length + 2: "below"}
        return f"{('up', 'down')[layout]}-{places.get(cell, cell)}"

    def _split(self, state: Int[ArrayLike, "*batch"]) -> tuple[Int[Array, "*batch"], Int[Array, "*batch"]]:
        state = jnp.asarray(state)
        return state & 1, state >> 1

    def _move(self, state: Int[ArrayLike, ""], action: Int[Array, ""]) -> Int[Array, ""]:
        """f(s, a): one step where the maze allows it, else none."""
        layout, cell = self._split(state)
        ahead = jnp.minimum(cell + 1, self.length)
        back = jnp.maximum(cell - 1, 0)
        above = jnp.where(cell == self.length, self.length + 1, cell)
        below = jnp.where(cell == self.length, self.length + 2, cell)
        moved = jnp.stack([ahead, above, back, below])[action]
        return 2 * jnp.where(cell > self.length, cell, moved) + layout

    def _observe(self, state: Int[ArrayLike, "*batch"]) -> Int[Array, "*batch"]:
        layout, cell = self._split(state)
        inside = jnp.where(cell < self.length, SEES_CORRIDOR, SEES_JUNCTION)
        return jnp.where(cell == 0, jnp.where(layout == 0, SEES_UP, SEES_DOWN), inside)


def t_maze_horizon(length: int, stochasticity: float) -> int:
    """H = ⌈L / ((1 − λ)(r − l))⌉, in exact arithmetic on λ as it is written in decimals."""
    return ceil(Fraction(int(length)) / ((1 - Fraction(str(stochasticity))) * (Fraction(1, 2) - Fraction(1, 6))))


@label_of.register
def _(maze: TMaze) -> str:
    name = f"T-Maze, L = {maze.length}"
    return f"Stochastic {name}, λ = {maze.stochasticity:.12g}" if maze.stochasticity else name
