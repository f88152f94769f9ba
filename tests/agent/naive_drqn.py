"""Algorithm 1 of the paper, written from its pseudocode in plain NumPy: the truth that training is compared with.

Histories are stored whole, targets are computed for each sampled transition by a forward pass of the target network,
and the gradient of the two-layer GRU is written out by hand. It takes the episodes and the samples as given and learns
from them.
"""

from collections import deque
from typing import Any, NamedTuple

import numpy as np


class Transition(NamedTuple):
    """(η_{0:t}, a_t, r_t, o_{t+1} terminal?, η_{0:t+1}) as the inputs x_0 … x_{t+1}."""

    inputs: np.ndarray
    action: int
    reward: float
    terminal: bool


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_forward(layer, xs):
    """Hidden states along xs [time, batch, inputs], and what the way back needs."""
    n = layer["U"].shape[0]
    h, trace, outputs = np.zeros((xs.shape[1], n)), [], []
    for x in xs:
        wx, uh = x @ layer["W"] + layer["b"], h @ layer["U"]
        r, z = sigmoid(wx[:, :n] + uh[:, :n]), sigmoid(wx[:, n : 2 * n] + uh[:, n : 2 * n])
        inner = uh[:, 2 * n :] + layer["b'"]
        new = np.tanh(wx[:, 2 * n :] + r * inner)
        trace.append((x, h, r, z, inner, new))
        h = (1 - z) * new + z * h
        outputs.append(h)
    return np.stack(outputs), trace


def gru_backward(layer, trace, d_outputs):
    """Gradients of the layer's parameters and of its inputs."""
    grads = {name: np.zeros_like(value) for name, value in layer.items()}
    d_h, d_xs = np.zeros_like(trace[0][1]), []
    for (x, h, r, z, inner, new), d_output in zip(reversed(trace), reversed(d_outputs), strict=True):
        d_h = d_h + d_output
        d_new = d_h * (1 - z) * (1 - new**2)
        d_r, d_z = d_new * inner * r * (1 - r), d_h * (h - new) * z * (1 - z)
        d_wx = np.concatenate([d_r, d_z, d_new], 1)
        d_uh = np.concatenate([d_r, d_z, d_new * r], 1)
        grads["W"] += x.T @ d_wx
        grads["b"] += d_wx.sum(0)
        grads["U"] += h.T @ d_uh
        grads["b'"] += (d_new * r).sum(0)
        d_xs.append(d_wx @ layer["W"].T)
        d_h = d_h * z + d_uh @ layer["U"].T
    return grads, d_xs[::-1]


def values(parameters, inputs):
    """Q(η, ·) of histories of one length [batch, time, inputs], and the traces."""
    xs, traces = np.swapaxes(inputs, 0, 1), []
    for layer in parameters["layers"]:
        xs, trace = gru_forward(layer, xs)
        traces.append(trace)
    return xs[-1] @ parameters["weights"] + parameters["bias"], xs[-1], traces


def loss_gradient(parameters, batch, targets):
    """The gradient of Σ_b (y_b − Q(η_b, a_b))²; histories of one length are taken together."""
    total = zeros_like(parameters)
    lengths = np.array([len(transition.inputs) - 1 for transition in batch])
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        q, last, traces = values(parameters, np.stack([batch[i].inputs[:-1] for i in chosen]))
        d_q, actions = np.zeros_like(q), [batch[i].action for i in chosen]
        rows = np.arange(len(chosen))
        d_q[rows, actions] = -2 * (targets[chosen] - q[rows, actions])
        total["weights"] += last.T @ d_q
        total["bias"] += d_q.sum(0)
        d_outputs = [np.zeros_like(last) for _ in range(length - 1)] + [d_q @ parameters["weights"].T]
        for number in reversed(range(len(traces))):
            grads, d_outputs = gru_backward(parameters["layers"][number], traces[number], d_outputs)
            for name, grad in grads.items():
                total["layers"][number][name] += grad
    return total


def zeros_like(parameters):
    return map_leaves(np.zeros_like, parameters)


def map_leaves(function, *trees) -> Any:
    """Apply a function to the arrays of nested dictionaries and lists."""
    if isinstance(trees[0], dict):
        return {name: map_leaves(function, *(tree[name] for tree in trees)) for name in trees[0]}
    if isinstance(trees[0], list):
        return [map_leaves(function, *parts) for parts in zip(*trees, strict=True)]
    return function(*trees)


class NaiveDRQN:
    """One agent of Algorithm 1, with Adam (Kingma and Ba, 2015)."""

    def __init__(self, parameters, *, capacity, target_period, discount, learning_rate):
        self.parameters, self.target = parameters, parameters
        self.buffer = deque(maxlen=capacity)
        self.target_period, self.discount, self.learning_rate = target_period, discount, learning_rate
        self.mean, self.square, self.steps = zeros_like(parameters), zeros_like(parameters), 0

    def begin_episode(self, episode):
        if episode % self.target_period == 0:
            self.target = self.parameters

    def store(self, transition):
        self.buffer.append(transition)

    def gradient_step(self, indices):
        batch = [self.buffer[index] for index in indices]
        targets = np.array([self.compute_target(transition) for transition in batch])
        gradient = loss_gradient(self.parameters, batch, targets)
        self.steps += 1
        self.mean = map_leaves(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradient)
        self.square = map_leaves(lambda v, g: 0.999 * v + 0.001 * g**2, self.square, gradient)

        def move(parameter, mean, square):
            mean, square = mean / (1 - 0.9**self.steps), square / (1 - 0.999**self.steps)
            return parameter - self.learning_rate * mean / (np.sqrt(square) + 1e-8)

        self.parameters = map_leaves(move, self.parameters, self.mean, self.square)

    def compute_target(self, transition):
        if transition.terminal:
            return transition.reward
        q, _, _ = values(self.target, transition.inputs[None])
        return transition.reward + self.discount * q[0].max()
