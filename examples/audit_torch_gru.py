"""Audit of a PyTorch GRU that learns a T-Maze by imitation of the best policy: does it hold the belief, and use it?

python examples/audit_torch_gru.py
"""

import torch
from torch.nn import functional

import beliefscope as bs
from beliefscope.pomdp.t_maze import DOWN, RIGHT, SEES_CORRIDOR, SEES_DOWN, SEES_JUNCTION, SEES_UP, UP

LENGTH = 10


class Policy(torch.nn.Module):
    """Reads (one-hot last action; observation), remembers 24 numbers. Nothing in it knows of beliefscope."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRUCell(8, 24)
        self.head = torch.nn.Linear(24, 4)

    def forward(self, inputs, state):
        state = self.gru(inputs, state)
        return self.head(state), state


def imitate(policy: Policy) -> None:
    """Right along the corridor, then up or down as the first observation said: there are but two such walks."""
    seen = torch.tensor([[first, *[SEES_CORRIDOR] * (LENGTH - 1), SEES_JUNCTION] for first in (SEES_UP, SEES_DOWN)])
    done = torch.tensor([[*[RIGHT] * LENGTH, turn] for turn in (UP, DOWN)])
    before = functional.pad(functional.one_hot(done[:, :-1], 4), (0, 0, 1, 0))  # no action precedes the first step
    inputs = torch.cat([before, functional.one_hot(seen, 4)], dim=2).float()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(300):
        state, loss = None, torch.zeros(())
        for time in range(LENGTH + 1):
            logits, state = policy(inputs[:, time], state)
            loss = loss + functional.cross_entropy(logits, done[:, time])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    untrained, trained = Policy(), Policy()
    trained.load_state_dict(untrained.state_dict())
    imitate(trained)
    # The hook finds the GRU by itself; the module is called as module(inputs, state).
    # Interventions swap its memory between episodes, and see whether it then turns as the other episode would.
    options = {"sees_actions": True, "num_samples": 600, "bits": False, "interventions": True, "name": "GRU"}
    audit = bs.audit(trained, bs.TMaze(LENGTH), untrained=untrained, **options)
    print(audit)
    print(audit.use)
    print(audit.report("runs/audit-gru"))


if __name__ == "__main__":
    main()
