"""MINE in PyTorch, as research code writes it: what benchmarks/information.py compares with.

Algorithm 3 of the paper with the authors' choice of the best epoch: the same batches, critic, optimiser and evaluation
as beliefscope's, on the same arrays.
"""

import copy
import math

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]


class Critic(nn.Module):
    def __init__(self, x_size: int, y_size: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(x_size + y_size, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, x, y):
        return self.layers(torch.cat([x, y], 1)).squeeze(1)


def log_mean_exp(scores):
    return torch.logsumexp(scores, 0) - math.log(len(scores))


@torch.no_grad()
def bits(critic, x, y, order) -> float:
    """The Donsker–Varadhan bound of these pairs."""
    return float(critic(x, y).mean() - log_mean_exp(critic(x, y[order]))) / math.log(2)


def mine(x, y, *, epochs: int, batch_size: int = 1024, rate: float = 0.01) -> float:
    """Bits between x [2N, dx] and y [2N, dy]: 4N/5 rows train, N/5 choose the epoch, N are judged."""
    half = len(x) // 2
    number = half - half // 5
    held_out, judged = (x[number:half], y[number:half]), (x[half:], y[half:])
    held_out_order = torch.randperm(half - number)
    critic = Critic(x.shape[1], y.shape[1])
    optimiser = torch.optim.Adam(critic.parameters(), lr=1e-3)
    average, best, best_bits = None, critic.state_dict(), -math.inf
    for _ in range(epochs):
        joint, first, second = (torch.randperm(number) for _ in range(3))
        for start in range(0, number - batch_size + 1, batch_size):
            rows = slice(start, start + batch_size)
            pairs = critic(x[joint[rows]], y[joint[rows]])
            shuffled = critic(x[first[rows]], y[second[rows]])
            batch = log_mean_exp(shuffled)  # in logarithms: e^T overflows
            now = batch.detach()
            average = now if average is None else torch.logaddexp(average + math.log1p(-rate), now + math.log(rate))
            # Its gradient is that of the bound with the moving average in place of the batch's mean of e^T.
            loss = torch.exp(batch - average) - pairs.mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        held_out_bits = bits(critic, *held_out, held_out_order)
        if held_out_bits > best_bits:
            best, best_bits = copy.deepcopy(critic.state_dict()), held_out_bits
    critic.load_state_dict(best)
    return bits(critic, *judged, torch.randperm(half))
