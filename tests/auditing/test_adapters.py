"""Adapters against the real libraries: the same actions and the same memories as when the library steps its agent."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import beliefscope as bs
from beliefscope.auditing import EquinoxAgent, as_agent, settable
from beliefscope.auditing.adapters import chosen_actions
from beliefscope.auditing.audit import told_of_actions
from beliefscope.auditing.histories import episodes_at_once, play_episodes, step_agent
from beliefscope.auditing.settable import with_vector
from beliefscope.auditing.torch_agents import CleanRLAgent, RecurrentPPOAgent, TorchAgent

MAZE = bs.TMaze(3, horizon=12)
STEPS, N = 5, 6


def histories(seed=0):
    """Random observations and actions: [steps, N, 4] and [steps, N]."""
    draw = np.random.default_rng(seed)
    observations = np.eye(4, dtype=np.float32)[draw.integers(4, size=(STEPS, N))]
    return observations, draw.integers(4, size=(STEPS, N))


def stepped(agent):
    """Actions and parts at each step of one history."""
    observations, actions = histories()
    agent.start(N)
    previous, found = np.full(N, -1), []
    for seen, done in zip(observations, actions, strict=True):
        found.append(step_agent(agent, previous, seen, 4))
        previous = done
    return found


def shown(observations, actions):
    """(one-hot a_{t-1}; o_t) of every step, by hand."""
    before = np.concatenate([np.zeros((1, N, 4)), np.eye(4)[actions[:-1]]])
    return np.concatenate([before, observations], axis=2).astype(np.float32)


class CleanRL(torch.nn.Module):
    """The agent of CleanRL's ppo_atari_lstm.py, with a linear layer in place of its convolutions."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.lstm = torch.nn.LSTM(8, 7)
        self.actor = torch.nn.Linear(7, 4)
        self.critic = torch.nn.Linear(7, 1)

    def get_states(self, x, lstm_state, done):
        hidden = self.network(x)
        batch_size = lstm_state[0].shape[1]
        hidden = hidden.reshape((-1, batch_size, self.lstm.input_size))
        done = done.reshape((-1, batch_size))
        new_hidden = []
        for h, d in zip(hidden, done, strict=True):
            h, lstm_state = self.lstm(
                h.unsqueeze(0),
                ((1.0 - d).view(1, -1, 1) * lstm_state[0], (1.0 - d).view(1, -1, 1) * lstm_state[1]),
            )
            new_hidden += [h]
        return torch.flatten(torch.cat(new_hidden), 0, 1), lstm_state

    def get_action_and_value(self, x, lstm_state, done, action=None):
        hidden, lstm_state = self.get_states(x, lstm_state, done)
        probs = torch.distributions.Categorical(logits=self.actor(hidden))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(hidden), lstm_state


class Sequences(torch.nn.Module):
    """A module that reads sequences [N, T, inputs] with two layers of an LSTM and a cell behind them."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 5, num_layers=2, batch_first=True)
        self.cell = torch.nn.GRUCell(5, 3)
        self.head = torch.nn.Linear(3, 4)

    def forward(self, inputs, state):
        layers, last = (None, None) if state is None else state
        hidden, layers = self.lstm(inputs[:, None], layers)
        last = self.cell(hidden[:, -1], last)
        return self.head(last), (layers, last)


class Plain(eqx.Module):
    """A GRU cell of Equinox with a linear layer."""

    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(4, 6, key=first)
        self.head = eqx.nn.Linear(6, 4, key=second)

    def __call__(self, inputs, memory):
        memory = self.cell(inputs, memory)
        return memory, self.head(memory)


def test_cleanrl_modules_have_the_memories_of_one_long_sequence():
    torch.manual_seed(0)
    module = CleanRL()
    agent = as_agent(module, MAZE)
    assert isinstance(agent, CleanRLAgent)
    found = stepped(agent)
    observations, _ = histories()
    empty = torch.zeros(1, N, 7)
    starts = torch.zeros(STEPS, N)
    starts[0] = 1
    with torch.no_grad():
        states, _ = module.get_states(torch.from_numpy(observations).reshape(-1, 4), (empty, empty), starts.reshape(-1))
    ours = np.stack([parts["h"] for _, parts in found])
    assert np.allclose(ours, states.reshape(STEPS, N, 7), atol=1e-6)
    assert found[0][1]["c"].shape == (N, 7)
    assert told_of_actions(agent, MAZE) is False


def test_hooks_read_every_recurrent_part_by_name():
    torch.manual_seed(0)
    module = Sequences()
    agent = as_agent(module, MAZE, sees_actions=True)
    assert isinstance(agent, TorchAgent)
    found = stepped(agent)
    with torch.no_grad():
        inputs = torch.from_numpy(shown(*histories())).swapaxes(0, 1)
        _, (h, c) = module.lstm(inputs)
    parts = found[-1][1]
    assert sorted(parts) == ["cell", "lstm.c", "lstm.h"]
    assert np.allclose(parts["lstm.h"], h.swapaxes(0, 1).flatten(1), atol=1e-6)
    assert np.allclose(parts["lstm.c"], c.swapaxes(0, 1).flatten(1), atol=1e-6)
    assert not module.lstm._forward_hooks
    with torch.no_grad():
        logits = module.head(torch.from_numpy(parts["cell"]))
    assert np.array_equal(found[-1][0], logits.argmax(dim=1))
    assert told_of_actions(agent, MAZE) is True


def test_a_module_is_called_where_its_parameters_are():
    places = []

    def call(module, inputs, state):
        places.append(inputs.device.type)
        return torch.zeros(len(inputs), 4), torch.zeros(len(inputs), 3)

    agent = TorchAgent(torch.nn.Sequential(torch.nn.GRUCell(4, 3, device="meta")), num_actions=4, call=call)
    agent.start(N)
    agent.step(np.full(N, -1), np.zeros((N, 4), np.float32))
    assert agent.get_memory().shape == (N, 3)
    assert places == ["meta"] * 3


def test_numbers_of_actions_that_cannot_be_compared_are_refused():
    masked = np.array([[0.5, -np.inf], [-np.inf, 0.0]], np.float32)
    assert chosen_actions(masked, 2, 2).tolist() == [0, 1]
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"logits or values is finite, but got \[(nan|inf), 0"):
            chosen_actions(np.array([[0.5, 0.1], [number, 0.0]]), 2, 2)


class Undecided:
    """Its values are no numbers."""

    def start(self, num_episodes):
        pass

    def step(self, previous_actions, observations):
        return np.full((len(observations), 4), np.nan), observations[:, :2]


def test_what_an_agent_would_do_does_not_matter_where_it_only_reads():
    assert told_of_actions(Undecided(), MAZE) is False
    with pytest.raises(ValueError, match="the greatest of an agent's logits or values is finite"):
        play_episodes(jax.random.key(0), Undecided(), MAZE, num_episodes=2)


class Normalising(Undecided):
    """Its memory is the mean of what it has seen, as shares: what is no observation gives no numbers."""

    def __init__(self, gap=np.nan):
        self.memory, self.gap = None, gap

    def start(self, num_episodes):
        self.memory = np.zeros((num_episodes, 4), np.float32)

    def step(self, previous_actions, observations):
        with np.errstate(invalid="ignore"):
            self.memory = (self.memory + observations / observations.sum(axis=1, keepdims=True)).astype(np.float32)
        return np.where((previous_actions == 3)[:, None], self.gap, self.memory), self.memory

    def get_memory(self):
        return self.memory

    def set_memory(self, memory):
        self.memory = memory


def test_what_an_agent_would_do_after_what_is_no_observation_does_not_matter():
    assert episodes_at_once(Normalising(gap=0.0), MAZE, 100) == 100
    assert settable(Normalising(gap=0.0), MAZE).parts() == {"memory": slice(0, 4)}


def test_an_agent_without_values_on_some_histories_cannot_be_set_and_the_sentence_says_why():
    assert "logits or values is finite, but got [nan" in str(with_vector(Normalising(), MAZE))


def test_equinox_modules_are_called_episode_by_episode():
    module = Plain(jax.random.key(0))
    agent = as_agent(module, MAZE, initial=jnp.zeros(6))
    assert isinstance(agent, EquinoxAgent)
    found = stepped(agent)
    observations, _ = histories()
    for episode in range(N):
        memory = jnp.zeros(6)
        for time in range(STEPS):
            memory, logits = module(observations[time, episode], memory)
            assert np.allclose(found[time][1]["memory"][episode], memory, atol=1e-5)
            assert found[time][0][episode] == int(jnp.argmax(logits))
    with pytest.raises(ValueError, match="pass initial"):
        as_agent(module, MAZE)


def test_networks_of_ours_and_functions_are_agents_too():
    network = bs.QNetwork(jax.random.key(0), bs.GRU, observation_size=4, num_actions=4, hidden_size=5, num_layers=1)
    ours = stepped(as_agent(network, MAZE))

    def function(memory, inputs):
        """The same network by hand, on batches."""
        memory = jax.vmap(lambda _: network.init_memory())(inputs) if memory is None else memory
        memory, values = jax.vmap(network.step_input)(memory, inputs)
        return memory, values

    theirs = stepped(as_agent(function, MAZE, sees_actions=True))
    for (actions, parts), (others, other_parts) in zip(ours, theirs, strict=True):
        assert np.array_equal(actions, others)
        assert np.allclose(parts["memory"], np.concatenate(list(other_parts.values()), axis=1), atol=1e-5)


def test_modules_without_memory_and_wrong_modules_get_one_sentence():
    with pytest.raises(ValueError, match="has a recurrent submodule"):
        as_agent(torch.nn.Linear(4, 4), MAZE)
    with pytest.raises(ValueError, match="returns its actions or logits, and its state"):
        stepped(TorchAgent(torch.nn.Sequential(torch.nn.GRUCell(4, 3)), num_actions=4, call=lambda m, x, s: m(x)))
    with pytest.raises(ValueError, match="LSTM called 'lstm'"):
        CleanRLAgent(torch.nn.Linear(1, 1), num_actions=4)


@pytest.fixture(scope="module")
def model():
    from sb3_contrib import RecurrentPPO

    env = bs.gymnasium.make(MAZE, last_action=True)
    return RecurrentPPO("MlpLstmPolicy", env, n_steps=16, batch_size=16, seed=0, policy_kwargs={"lstm_hidden_size": 9})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_recurrent_ppo_acts_and_remembers_as_predict_does(model):
    agent = as_agent(model, MAZE)
    assert isinstance(agent, RecurrentPPOAgent)
    found = stepped(agent)
    inputs, state, start = shown(*histories()), None, np.ones(N, bool)
    for time in range(STEPS):
        actions, state = model.predict(inputs[time], state=state, episode_start=start, deterministic=True)
        start = np.zeros(N, bool)
        assert np.array_equal(found[time][0], actions)
        assert np.allclose(found[time][1]["actor.h"], state[0][0], atol=1e-6)
        assert np.allclose(found[time][1]["actor.c"], state[1][0], atol=1e-6)
    features = torch.from_numpy(inputs)
    with torch.no_grad():
        _, (h, c) = model.policy.lstm_critic(features)
    assert np.allclose(found[-1][1]["critic.h"], h[0], atol=1e-6)
    assert np.allclose(found[-1][1]["critic.c"], c[0], atol=1e-6)
    assert told_of_actions(agent, MAZE) is True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_actors_memory_of_recurrent_ppo_can_be_set_and_its_scores_are_its_logits(model):
    vector = settable(model, MAZE)  # refused if it acted otherwise with its memory set
    assert vector.parts() == {"actor.c": slice(0, 9), "actor.h": slice(9, 18)}
    agent = as_agent(model, MAZE)
    observations, actions = histories()
    agent.start(N)
    previous, memory = np.full(N, -1), None
    for seen, done in zip(observations, actions, strict=True):
        chosen, parts = step_agent(agent, previous, seen, 4)
        memory, best, _ = vector.step_all(memory, previous, seen)
        assert np.array_equal(best, chosen)
        assert np.allclose(memory, np.concatenate([parts["actor.c"], parts["actor.h"]], axis=1), atol=1e-6)
        previous = done


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_recurrent_ppo_learns_on_our_environment_and_is_audited(model, tmp_path):
    from sb3_contrib import RecurrentPPO

    model.save(tmp_path / "init")
    trained = RecurrentPPO.load(tmp_path / "init", env=bs.gymnasium.make(MAZE, last_action=True)).learn(64)
    audit = bs.audit(trained, MAZE, untrained=model, num_samples=500, bits=False)
    assert audit.memory == ("actor.h", "actor.c")
    assert sorted(audit.parts) == ["actor.c", "actor.h", "critic.c", "critic.h"]
    assert audit.sees_actions is True
    assert "untrained" in audit.controls
    assert (
        play_episodes(jax.random.key(0), as_agent(trained, MAZE), MAZE, num_episodes=3).memory["critic.h"].shape[2] == 9
    )
    with pytest.raises(ValueError, match="reads vectors of 2 numbers, or of 5 with the last action"):
        bs.audit(trained, bs.classic("tiger"))
