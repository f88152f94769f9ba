"""The recurrent Q-network in PyTorch, as research code writes it: what benchmarks/training.py compares with.

LSTM and GRU are PyTorch's own layers; BRC, nBRC and MGU, which it has not, are modules stepped through time in Python.
"""

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]


class BRC(nn.Module):
    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.project = nn.Linear(inputs, 3 * size)
        self.w_c, self.w_a = nn.Parameter(torch.ones(size)), nn.Parameter(torch.ones(size))

    def forward(self, x, h):
        c, a, n = self.project(x).chunk(3, -1)
        c, a = torch.sigmoid(c + self.w_c * h), 1 + torch.tanh(a + self.w_a * h)
        return c * h + (1 - c) * torch.tanh(n + a * h)


class NBRC(nn.Module):
    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.project, self.recur = nn.Linear(inputs, 3 * size), nn.Linear(size, 2 * size, bias=False)

    def forward(self, x, h):
        c, a, n = self.project(x).chunk(3, -1)
        h_c, h_a = self.recur(h).chunk(2, -1)
        c, a = torch.sigmoid(c + h_c), 1 + torch.tanh(a + h_a)
        return c * h + (1 - c) * torch.tanh(n + a * h)


class MGU(nn.Module):
    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.project = nn.Linear(inputs, 2 * size)
        self.forget, self.inner = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)

    def forward(self, x, h):
        f, n = self.project(x).chunk(2, -1)
        f = torch.sigmoid(f + self.forget(h))
        return (1 - f) * h + f * torch.tanh(n + self.inner(f * h))


class Stepped(nn.Module):
    """Layers of cells, stepped through time."""

    def __init__(self, cell: type[nn.Module], inputs: int, size: int, layers: int):
        super().__init__()
        self.size = size
        self.cells = nn.ModuleList(cell(inputs if layer == 0 else size, size) for layer in range(layers))

    def forward(self, x):
        memories = [x.new_zeros(len(x), self.size) for _ in self.cells]
        outputs = []
        for t in range(x.shape[1]):
            step = x[:, t]
            for layer, cell in enumerate(self.cells):
                step = memories[layer] = cell(step, memories[layer])
            outputs.append(step)
        return torch.stack(outputs, 1), memories


class QNetwork(nn.Module):
    """Values [batch, time, actions] of sequences [batch, time, inputs]."""

    def __init__(self, cell: str, inputs: int, size: int, layers: int, actions: int):
        super().__init__()
        if cell in ("LSTM", "GRU"):
            self.layers = getattr(nn, cell)(inputs, size, layers, batch_first=True)
        else:
            self.layers = Stepped({"BRC": BRC, "NBRC": NBRC, "MGU": MGU}[cell], inputs, size, layers)
        self.linear = nn.Linear(size, actions)

    def forward(self, x):
        return self.linear(self.layers(x)[0])
