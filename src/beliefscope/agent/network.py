"""What a recurrent agent is, the recurrent Q-network Q_θ, and how it acts.

`RecurrentAgent` is all that sampling, filtering and measuring ask of an agent, however it learnt. `QNetwork` is one:
S stacked recurrent layers and a linear layer. It reads x_t = (one-hot a_{t-1}, or zeros at t = 0; o_t) and gives one
value for each action. `EpsilonGreedy` acts by these values; Ĵ is the mean return of some greedy episodes.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from beliefscope.agent.cells import Cell
from beliefscope.agent.gated import Memory, uniform
from beliefscope.agent.sequence import Fresh, Steps, run_layer
from beliefscope.pomdp import POMDP, rollout
from beliefscope.pomdp.interface import Observation
from beliefscope.pomdp.rollout import discounted_return


@runtime_checkable
class RecurrentAgent(Protocol):
    """One agent, one step."""

    def init_memory(self) -> PyTree:
        """The memory before the first observation."""
        ...

    def step(
        self, memory: PyTree, previous_action: Int[Array, ""], observation: Float[Array, " observation"]
    ) -> tuple[PyTree, Float[Array, " actions"]]:
        """The memory h_t after o_t (encoded as a vector), and the value of each action; NO_ACTION precedes o_0."""
        ...

    def memory_vector(self, memory: PyTree) -> Float[Array, " memory"]:
        """The memory as one vector: what is compared with the belief."""
        ...


class QNetwork(eqx.Module):
    """Q_θ(η_{0:t}, ·), step by step or over whole sequences."""

    cells: tuple[Cell, ...]  # the first reads x_t, each next one the hidden state of the one before
    weights: Float[Array, "n actions"]
    bias: Float[Array, " actions"]

    def __init__(
        self,
        key: PRNGKeyArray,
        cell: type[Cell],
        *,
        observation_size: int,
        num_actions: int,
        hidden_size: int,
        num_layers: int,
    ):
        key_linear, *keys_cell = jax.random.split(key, num_layers + 1)
        sizes = [num_actions + observation_size] + [hidden_size] * (num_layers - 1)
        self.cells = tuple(cell(k, size, hidden_size) for k, size in zip(keys_cell, sizes, strict=True))
        key_weights, key_bias = jax.random.split(key_linear)
        self.weights = uniform(key_weights, (hidden_size, num_actions), hidden_size**-0.5)
        self.bias = uniform(key_bias, (num_actions,), hidden_size**-0.5)

    def init_memory(self) -> tuple[Memory, ...]:
        return tuple(cell.init_memory() for cell in self.cells)

    def step(
        self, memory: tuple[Memory, ...], previous_action: Int[Array, ""], observation: Float[Array, " observation"]
    ) -> tuple[tuple[Memory, ...], Float[Array, " actions"]]:
        """The memory after (a_{t-1}, o_t), and Q_θ(η_{0:t}, ·)."""
        return self.step_input(memory, network_input(previous_action, observation, len(self.bias)))

    def step_input(
        self, memory: tuple[Memory, ...], inputs: Float[Array, " inputs"]
    ) -> tuple[tuple[Memory, ...], Float[Array, " actions"]]:
        """The same from x_t."""
        after = []
        for cell, before in zip(self.cells, memory, strict=True):
            after.append(cell.step(before, inputs))
            inputs = hidden_state(after[-1])
        return tuple(after), self.read(inputs)

    def read(self, hidden: Float[Array, "*batch n"]) -> Float[Array, "*batch actions"]:
        """The linear layer."""
        return hidden @ self.weights + self.bias

    def memory_vector(self, memory: tuple[Memory, ...], *, whole: bool = False) -> Float[Array, " memory"]:
        """The hidden states of all layers end to end; with `whole` the whole memory: for the LSTM (h, c)."""
        parts = jax.tree.leaves(memory) if whole else [hidden_state(layer) for layer in memory]
        return jnp.concatenate([jnp.ravel(part) for part in parts])

    def run(self, inputs: Float[Array, "time rows inputs"], fresh: Fresh, steps: Steps) -> Float[Array, "time rows n"]:
        """The last layer's hidden states along the first `steps` steps of each row (see sequence.py)."""
        for cell in self.cells:
            inputs = run_layer(cell, inputs, fresh, steps)
        return inputs


class WholeMemory(eqx.Module):
    """The same agent, whose memory vector has the whole memory: (h, c) of an LSTM, h of the other cells."""

    network: QNetwork

    def init_memory(self) -> tuple[Memory, ...]:
        return self.network.init_memory()

    def step(
        self, memory: tuple[Memory, ...], previous_action: Int[Array, ""], observation: Float[Array, " observation"]
    ) -> tuple[tuple[Memory, ...], Float[Array, " actions"]]:
        return self.network.step(memory, previous_action, observation)

    def memory_vector(self, memory: tuple[Memory, ...]) -> Float[Array, " memory"]:
        return self.network.memory_vector(memory, whole=True)


def hidden_state(memory: Memory) -> Float[Array, " n"]:
    """The part of a layer's memory that the next layer reads."""
    return jax.tree.leaves(memory)[0]


def network_input(
    previous_action: Int[Array, "*batch"], observation: Float[Array, "*batch observation"], num_actions: int
) -> Float[Array, "*batch inputs"]:
    """x_t: the one-hot previous action (zeros for NO_ACTION) and the observation."""
    return jnp.concatenate([jax.nn.one_hot(previous_action, num_actions), observation], axis=-1)


class EpsilonGreedy(NamedTuple):
    """A policy for `rollout`: the best action, or with probability ε = `rate` one of the exploration policy.

    With ε = 0 it is the greedy policy.
    """

    agent: RecurrentAgent
    pomdp: POMDP
    rate: float | Float[Array, ""]

    def init_memory(self) -> PyTree:
        return self.agent.init_memory()

    def act(
        self, key: PRNGKeyArray, memory: PyTree, previous_action: Int[Array, ""], observation: Observation
    ) -> tuple[PyTree, Int[Array, ""]]:
        key_coin, key_explore = jax.random.split(key)
        memory, values = self.agent.step(memory, previous_action, self.pomdp.encode_observation(observation))
        explore = jax.random.uniform(key_coin) < self.rate
        return memory, jnp.where(explore, self.pomdp.sample_exploration(key_explore), jnp.argmax(values))


class Evaluation(NamedTuple):
    """Means over the episodes."""

    discounted_return: Float[Array, ""]  # Ĵ
    undiscounted_return: Float[Array, ""]
    length: Float[Array, ""]  # actions taken
    terminated: Float[Array, ""]  # fraction of episodes that ended in a terminal state


def evaluate(key: PRNGKeyArray, pomdp: POMDP, agent: RecurrentAgent, *, num_episodes: int) -> Evaluation:
    """Play greedily."""
    played = rollout(key, pomdp, EpsilonGreedy(agent, pomdp, 0.0), num_episodes=num_episodes).trajectory
    return Evaluation(
        discounted_return=jnp.mean(discounted_return(played.rewards, pomdp.discount)),
        undiscounted_return=jnp.mean(jnp.sum(played.rewards, axis=1)),
        length=jnp.mean(played.lengths.astype(float)),
        terminated=jnp.mean(played.terminated.astype(float)),
    )
