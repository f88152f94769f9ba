"""How long an audit takes: 20,000 pairs of a PyTorch GRU in a T-Maze of L = 50, played, filtered and measured.

    python benchmarks/audit.py

The bar is 60 s on two cores for playing, filtering and sufficiency, compilation included; bits come on top.
"""

import os
import time

import jax
import torch

import beliefscope as bs
from beliefscope.auditing import as_agent
from beliefscope.auditing.adapters import joined
from beliefscope.auditing.histories import play_histories

NUM_PAIRS, BAR = 20_000, 60.0


class Policy(torch.nn.Module):
    """A GRU of 32 numbers that goes right, so that episodes are as long as those of a good agent."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRUCell(8, 32)

    def forward(self, inputs, state):
        state = self.gru(inputs, state)
        # At the junction it goes up: an episode has 51 steps.
        right, up = 1 - inputs[:, 7], inputs[:, 7]
        return torch.stack([right, up, torch.zeros_like(up), torch.zeros_like(up)], dim=1), state


def main() -> None:
    torch.manual_seed(0)
    maze = bs.TMaze(50)
    load, wall, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    agent = as_agent(Policy(), maze, sees_actions=True)
    histories = play_histories(jax.random.key(0), agent, maze, bs.filter_of_paper(maze), num_samples=NUM_PAIRS)
    played = time.perf_counter() - wall
    found = bs.sufficiency(joined(histories.memory, ("gru",)), histories.beliefs["belief"], histories.time)
    taken, used = time.perf_counter() - wall, time.process_time() - cpu
    print(found)
    print(
        f"{NUM_PAIRS} pairs: {played:.1f} s to play and filter, {taken - played:.1f} s sufficiency, {taken:.1f} s, "
        f"{used:.1f} s of processor time; {os.cpu_count()} cores, load {load:.1f} at the start; the bar is {BAR:.0f} s"
    )


if __name__ == "__main__":
    main()
