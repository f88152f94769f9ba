"""A recurrent cell of one's own: a class with `init_memory` and `step`, trained like any other.

    python examples/own_cell.py

The cell is a leaky integrator: each unit forgets at its own learnt speed. JAX differentiates it; batches, time, storing
and resuming are the library's.
"""

import tempfile

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from beliefscope import DRQN, TMaze, TrainingSpec, train
from beliefscope.agent import Cell


class Leaky(Cell):
    """h' = λ ⊙ h + (1 − λ) ⊙ tanh(W x + U h + b), with λ = σ(speed)."""

    input_weights: Float[Array, "inputs n"]
    recurrent_weights: Float[Array, "n n"]
    bias: Float[Array, " n"]
    speed: Float[Array, " n"]

    def __init__(self, key: PRNGKeyArray, input_size: int, hidden_size: int):
        key_input, key_recurrent = jax.random.split(key)
        self.input_weights = jax.random.normal(key_input, (input_size, hidden_size)) / input_size**0.5
        self.recurrent_weights = jax.random.normal(key_recurrent, (hidden_size, hidden_size)) / hidden_size**0.5
        self.bias = jnp.zeros(hidden_size)
        self.speed = jnp.linspace(-2, 4, hidden_size)

    def init_memory(self) -> Float[Array, " n"]:
        return jnp.zeros_like(self.bias)

    def step(self, memory: Float[Array, " n"], inputs: Float[Array, " inputs"]) -> Float[Array, " n"]:
        keep = jax.nn.sigmoid(self.speed)
        new = jnp.tanh(inputs @ self.input_weights + memory @ self.recurrent_weights + self.bias)
        return keep * memory + (1 - keep) * new


def main() -> None:
    maze, learner = TMaze(length=3), DRQN(cell=Leaky, num_episodes=200)
    specs = [TrainingSpec(pomdp=maze, learner=learner, seed=seed) for seed in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        for run in train(specs, folder):
            returns = [line["return"] for line in run.metrics()]
            print(f"seed {run.spec.seed}: return {returns[0]:.2f} before training, {max(returns):.2f} at its best")
    print(f"no agent can do better than {4 * maze.discount**maze.length:.2f}")


if __name__ == "__main__":
    main()
