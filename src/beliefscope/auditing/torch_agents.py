"""Agents of PyTorch: RecurrentPPO of sb3-contrib, modules in the style of CleanRL, any module with a recurrent part.

None of them is changed: they are called as they are for evaluation, without gradients.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch
from jaxtyping import Float, Int

from beliefscope.auditing.adapters import inputs_of
from beliefscope.errors import require
from beliefscope.pomdp import POMDP


class RecurrentPPOAgent:
    """`RecurrentPPO` of sb3-contrib: what `predict` does, with the critic's memory beside the actor's.

    The parts are `actor.h` and `actor.c`, and `critic.h` and `critic.c` where the critic has an LSTM of its own. It
    acts by its most likely action, or with `deterministic=False` draws one. Whether it is shown its last action follows
    from its observation space.
    """

    def __init__(self, model: Any, pomdp: POMDP, *, deterministic: bool = True) -> None:
        size, shape = pomdp.observation_size, model.observation_space.shape
        require(
            shape in ((size,), (size + pomdp.num_actions,)),
            rule=f"the agent reads vectors of {size} numbers, or of {size + pomdp.num_actions} with the last action",
            received=shape,
            advice="audit it on the POMDP that it was trained on, made by beliefscope.gymnasium.make",
        )
        require(
            bool(getattr(model.action_space, "n", None) == pomdp.num_actions),
            rule=f"the agent chooses among {pomdp.num_actions} actions",
            received=model.action_space,
            advice="audit it on the POMDP that it was trained on",
        )
        self._model, self._deterministic = model, deterministic
        self._num_actions, self._sees_actions = pomdp.num_actions, shape == (size + pomdp.num_actions,)

    @property
    def headline(self) -> tuple[str, ...]:
        """What it acts from: the critic's memory is not part of that."""
        return ("actor.h", "actor.c")

    def start(self, num_episodes: int) -> None:
        policy = self._model.policy
        policy.set_training_mode(False)
        layers, _, size = policy.lstm_hidden_state_shape
        empty = torch.zeros(layers, num_episodes, size, device=policy.device)
        self._states, self._first = ((empty, empty), (empty, empty)), True

    @torch.no_grad()
    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        from sb3_contrib.common.recurrent.type_aliases import RNNStates

        policy = self._model.policy
        seen, starts = self._read(previous_actions, observations)
        actions, _, _, states = policy.forward(
            seen, RNNStates(*self._states), starts, deterministic=self._deterministic
        )
        self._states, self._first = (states.pi, states.vf), False
        named = {"actor": states.pi, **({} if policy.lstm_critic is None else {"critic": states.vf})}
        return actions, {
            f"{who}.{part}": _episodes_first(state)
            for who, pair in named.items()
            for part, state in zip(("h", "c"), pair, strict=True)
        }

    @torch.no_grad()
    def scores(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        """The logits of a step; the critic does not see it."""
        seen, starts = self._read(previous_actions, observations)
        chosen, actor = self._model.policy.get_distribution(seen, self._states[0], starts)
        self._states, self._first = (actor, self._states[1]), False
        return chosen.distribution.logits

    def get_memory(self) -> dict[str, torch.Tensor]:
        """What it acts from: the actor's."""
        return {f"actor.{part}": state.swapaxes(0, 1) for part, state in zip("hc", self._states[0], strict=True)}

    def set_memory(self, memory: dict[str, torch.Tensor]) -> None:
        h, c = (memory[f"actor.{part}"].swapaxes(0, 1).contiguous() for part in "hc")
        self._states, self._first = ((h, c), self._states[1]), False

    def _read(self, previous_actions: Any, observations: Any) -> tuple[Any, torch.Tensor]:
        """What the policy is given, and whether episodes begin."""
        inputs = inputs_of(previous_actions, observations, self._num_actions, self._sees_actions)
        normalised = self._model.get_vec_normalize_env()
        if normalised is not None:
            inputs = normalised.normalize_obs(inputs)
        seen, _ = self._model.policy.obs_to_tensor(inputs)
        return seen, torch.full((len(inputs),), float(self._first), device=self._model.policy.device)


class CleanRLAgent:
    """A module with CleanRL's `get_action_and_value(x, lstm_state, done)` and an `lstm` (or another name).

    Its actions are drawn, as CleanRL draws them. The parts are `h` and `c`.
    """

    def __init__(self, module: Any, *, num_actions: int, sees_actions: bool = False, lstm: str = "lstm") -> None:
        require(
            isinstance(getattr(module, lstm, None), torch.nn.LSTM),
            rule=f"a module in the style of CleanRL has a torch.nn.LSTM called {lstm!r}",
            received=type(module).__name__,
            advice="pass CleanRLAgent(module, num_actions=…, lstm=…), or use TorchAgent",
        )
        self._module, self._lstm = module, getattr(module, lstm)
        self._num_actions, self._sees_actions = num_actions, sees_actions

    def start(self, num_episodes: int) -> None:
        self._module.eval()
        place = next(self._lstm.parameters())
        empty = torch.zeros(self._lstm.num_layers, num_episodes, self._lstm.hidden_size, device=place.device)
        self._state, self._done = (empty, empty), torch.ones(num_episodes, device=place.device)

    @torch.no_grad()
    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        actions, *_, self._state = self._module.get_action_and_value(
            self._read(previous_actions, observations), self._state, self._done
        )
        self._done = torch.zeros_like(self._done)
        return actions, {part: _episodes_first(state) for part, state in zip(("h", "c"), self._state, strict=True)}

    @torch.no_grad()
    def scores(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        """The log-probability of each action at a step."""
        seen, before, found = self._read(previous_actions, observations), self._state, []
        for action in range(self._num_actions):
            chosen = torch.full((len(seen),), action, device=seen.device)
            _, likely, *_, self._state = self._module.get_action_and_value(seen, before, self._done, chosen)
            found.append(likely)
        self._done = torch.zeros_like(self._done)
        return torch.stack(found, dim=1)

    def get_memory(self) -> dict[str, torch.Tensor]:
        return {part: state.swapaxes(0, 1) for part, state in zip("hc", self._state, strict=True)}

    def set_memory(self, memory: dict[str, torch.Tensor]) -> None:
        h, c = (memory[part].swapaxes(0, 1).contiguous() for part in "hc")
        self._state, self._done = (h, c), torch.zeros_like(self._done)

    def _read(self, previous_actions: Any, observations: Any) -> torch.Tensor:
        inputs = inputs_of(previous_actions, observations, self._num_actions, self._sees_actions)
        return torch.from_numpy(inputs).to(self._done.device)


_RECURRENT = (torch.nn.RNNBase, torch.nn.RNNCellBase)


class TorchAgent:
    """Any module with a recurrent part, whose memory a forward hook reads: GRU, LSTM or RNN, layers or cells.

    The module is called as `call(module, inputs, state)`, by default `module(inputs, state)`, with inputs [N, size] and
    None as the first state. It returns actions or logits, and the state for the next step. A part of the memory goes by
    the recurrent submodule's name, an LSTM's as `name.h` and `name.c`.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        num_actions: int,
        sees_actions: bool = False,
        call: Callable[[Any, torch.Tensor, Any], tuple[Any, Any]] | None = None,
    ) -> None:
        self._recurrent = {
            name or "memory": part for name, part in module.named_modules() if isinstance(part, _RECURRENT)
        }
        require(
            bool(self._recurrent),
            rule="a PyTorch module that is audited has a recurrent submodule: an RNN, a GRU, an LSTM, or such a cell",
            received=type(module).__name__,
            advice="give an agent of another kind the methods start and step",
        )
        self._module, self._call = module, call or _call
        self._num_actions, self._sees_actions = num_actions, sees_actions
        self._axes: Any = None

    def start(self, num_episodes: int) -> None:
        self._module.eval()
        self._state = None
        self._device = next((each.device for each in self._module.parameters()), torch.device("cpu"))

    @torch.no_grad()
    def step(self, previous_actions: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n observation"]) -> Any:
        inputs = inputs_of(previous_actions, observations, self._num_actions, self._sees_actions)
        seen: dict[str, Any] = {}

        def hook(name: str) -> Callable:
            return lambda module, given, output: seen.update(_states(name, module, output))

        hooks = [part.register_forward_hook(hook(name)) for name, part in self._recurrent.items()]
        try:
            returned = self._call(self._module, torch.from_numpy(inputs).to(self._device), self._state)
        finally:
            for each in hooks:
                each.remove()
        require(
            isinstance(returned, tuple) and len(returned) == 2,
            rule="an audited PyTorch module returns its actions or logits, and its state for the next step",
            received=type(returned).__name__,
            advice="pass TorchAgent(module, num_actions=…, call=lambda module, inputs, state: …) that returns the two",
        )
        actions, self._state = returned
        self._inputs = inputs.shape[1]
        return actions, seen

    def get_memory(self) -> Any:
        """The state that the module returned, the episodes first."""
        return jax.tree.map(lambda leaf, axis: leaf.movedim(axis, 0), self._state, self._episode_axes())

    def set_memory(self, memory: Any) -> None:
        axes = self._episode_axes()
        self._state = jax.tree.map(lambda leaf, axis: leaf.movedim(0, axis).contiguous(), memory, axes)

    @torch.no_grad()
    def _episode_axes(self) -> Any:
        """Which axis of each array of the state has the episodes: the one that differs for two and for three."""
        if self._axes is None:
            blank = (torch.zeros(number, self._inputs, device=self._device) for number in (2, 3))
            two, three = (self._call(self._module, inputs, None)[1] for inputs in blank)
            self._axes = jax.tree.map(_differing_axis, two, three)
        return self._axes


def _call(module: torch.nn.Module, inputs: torch.Tensor, state: Any) -> Any:
    return module(inputs, state)


def _differing_axis(two: Any, three: Any) -> int:
    shapes = [tuple(getattr(each, "shape", ())) for each in (two, three)]
    differ = [axis for axis, sizes in enumerate(zip(*shapes, strict=False)) if sizes == (2, 3)]
    require(
        len(differ) == 1,
        rule="each array of a module's state has one axis of episodes",
        received=f"{type(two).__name__} of shape {shapes[0]} for two episodes and {shapes[1]} for three",
        advice="let the module return a state for each episode",
    )
    return differ[0]


def _states(name: str, module: torch.nn.Module, output: Any) -> dict[str, torch.Tensor]:
    """What a recurrent submodule carries on, the episodes first."""
    state = output[1] if isinstance(module, torch.nn.RNNBase) else output
    if isinstance(module, torch.nn.RNNBase):
        state = tuple(map(_episodes_first, state)) if isinstance(state, tuple) else _episodes_first(state)
    return {f"{name}.h": state[0], f"{name}.c": state[1]} if isinstance(state, tuple) else {name: state}


def _episodes_first(state: torch.Tensor) -> torch.Tensor:
    """From [layers, N, n] to [N, layers · n]."""
    return state.swapaxes(0, 1).flatten(1)
