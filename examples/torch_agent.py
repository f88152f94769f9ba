"""How much of the belief is in the memory of a PyTorch agent? Here a GRU that learns a T-Maze by imitation.

    python examples/torch_agent.py

Nothing below `GRUAgent` asks how the agent is built or trained: to measure your own, give it `start` and `step`.
"""

import jax
import torch
from torch.nn import functional

from beliefscope import ExactFilter, TMaze, mutual_information
from beliefscope.information import discrete_entropy
from beliefscope.measurement import pairs_from_trajectories, play
from beliefscope.pomdp import NO_ACTION
from beliefscope.pomdp.t_maze import DOWN, RIGHT, SEES_CORRIDOR, SEES_DOWN, SEES_JUNCTION, SEES_UP, UP


class GRUAgent(torch.nn.Module):
    """Reads its previous action and the observation, remembers 32 numbers, draws its actions from a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(4 + 4, 32)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, memory, previous_actions, observations):
        # Five classes less the first: no action, which is -1, becomes four zeros.
        before = functional.one_hot(previous_actions - NO_ACTION, 5)[:, 1:]
        memory = self.cell(torch.hstack([before, observations]), memory)
        return memory, self.head(memory)

    def start(self, num_episodes: int) -> None:
        self.memory = torch.zeros(num_episodes, 32)

    @torch.no_grad()  # tensors that carry gradients cannot be read from outside PyTorch
    def step(self, previous_actions, observations):
        inputs = torch.from_numpy(previous_actions), torch.from_numpy(observations)
        self.memory, logits = self(self.memory, *inputs)
        return torch.multinomial(logits.softmax(dim=1), 1)[:, 0], self.memory


def imitate(agent: GRUAgent, length: int) -> None:
    """Teach it the best policy: right along the corridor, then up or down as the first observation said."""
    # There are but two such walks, one for each place where the treasure may lie.
    seen = torch.tensor([[first, *[SEES_CORRIDOR] * (length - 1), SEES_JUNCTION] for first in (SEES_UP, SEES_DOWN)])
    done = torch.tensor([[*[RIGHT] * length, turn] for turn in (UP, DOWN)])
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.01)
    for _ in range(300):
        memory, previous, loss = torch.zeros(2, 32), torch.tensor([NO_ACTION, NO_ACTION]), torch.zeros(())
        for time in range(length + 1):
            memory, logits = agent(memory, previous, torch.eye(4)[seen[:, time]])
            previous = done[:, time]
            loss = loss + functional.cross_entropy(logits, previous)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def measure(name: str, agent: GRUAgent, maze: TMaze) -> None:
    """Play, pair each memory with the belief at the same step, and count the bits that they share."""
    played = play(jax.random.key(0), agent, maze, num_episodes=5000)
    pairs = pairs_from_trajectories(
        jax.random.key(1),
        maze,
        ExactFilter(maze),
        memory=played.memory,
        actions=played.actions,
        observations=played.observations,
        lengths=played.lengths,
    )
    shared = mutual_information(pairs.memory, pairs.belief)
    print(f"\n{name} GRU: mean return {played.returns.mean():.2f}")
    # No memory can share more with the belief than the belief holds. The agents differ here too: each is measured
    # along its own episodes, and who wanders about at the entrance has less to keep in mind than who walks the maze.
    print(f"  in the belief           {discrete_entropy(pairs.belief).bits:.2f} bits")
    # Beside it stands the control: memories dealt to the wrong beliefs share nothing, and what the estimator says of
    # them is its own error.
    print(f"  of these in the memory  {shared}")


def main() -> None:
    torch.manual_seed(0)
    maze, agent = TMaze(length=10), GRUAgent()
    print(f"T-Maze, L = 10: the best possible return is {4 * maze.discount**maze.length:.2f}")
    measure("Untrained", agent, maze)
    imitate(agent, maze.length)
    measure("Trained", agent, maze)


if __name__ == "__main__":
    main()
