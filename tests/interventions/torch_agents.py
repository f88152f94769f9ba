"""PyTorch modules whose recurrent weights are set by hand: what they keep and act on is known."""

import torch

from beliefscope.pomdp.t_maze import DOWN, RIGHT, UP

UP_KEPT, DOWN_KEPT, COIN, NO_COIN, CLOCK, WIDTH = 0, 1, 2, 3, 4, 15  # the other ten of its numbers stay 0


class HandSet(torch.nn.Module):
    """An RNN of rectified sums that keeps the side, the coin and the time of a `CoinMaze`; it turns by what it is told.

    Its state is (layers, N, n), the episodes second, as PyTorch has it.
    """

    def __init__(self, *, of_side: float = 0.0, of_coin: float = 0.0):
        super().__init__()
        self.rnn = torch.nn.RNN(6, WIDTH, nonlinearity="relu")
        self.head = torch.nn.Linear(WIDTH + 6, 4)
        weights = dict(self.rnn.named_parameters())
        with torch.no_grad():
            for each in self.parameters():
                each.zero_()
            weights["weight_hh_l0"][range(5), range(5)] = 1.0
            for kept, seen in ((UP_KEPT, (0, 4)), (DOWN_KEPT, (1, 5)), (COIN, (4, 5)), (NO_COIN, (0, 1))):
                weights["weight_ih_l0"][kept, seen] = 1.0
            weights["bias_ih_l0"][CLOCK] = 1.0
            # Right, until the junction (observation 3) is seen; then up or down.
            self.head.bias[:] = -1.0
            self.head.bias[RIGHT] = 1.0
            self.head.weight[RIGHT, WIDTH + 3] = -2.0
            for action, sign in ((UP, 1), (DOWN, -1)):
                self.head.weight[action, WIDTH + 3] = 1.5
                self.head.weight[action, [UP_KEPT, DOWN_KEPT]] = sign * of_side * torch.tensor([0.2, -0.2])
                self.head.weight[action, [COIN, NO_COIN]] = sign * of_coin * torch.tensor([0.2, -0.2])

    def forward(self, inputs, state):
        hidden, state = self.rnn(inputs[None], state)
        return self.head(torch.cat([hidden[0], inputs], dim=1)), state
