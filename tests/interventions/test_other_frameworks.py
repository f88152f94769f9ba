"""Interventions on agents of other frameworks: known circuits in PyTorch, our own networks through the adapter."""

from typing import Any

import jax
import numpy as np
import pytest
import torch
from auditing.test_adapters import CleanRL, Plain, Sequences
from interventions.agents import HandBuilt, coin_maze
from interventions.torch_agents import HandSet

import beliefscope as bs
from beliefscope.agent.network import EpsilonGreedy
from beliefscope.auditing import settable
from beliefscope.auditing.adapters import JAXAgent, as_agent
from beliefscope.auditing.settable import VectorMemory, scored, with_vector
from beliefscope.interventions import erase, intervene
from beliefscope.interventions.stepped import SteppedAgent

L = 5
MAZE: Any = coin_maze(L)
EPISODES: Any = {"num_episodes": 200, "num_swaps": 100}


@pytest.fixture(scope="module")
def uses():
    """Turns by the side that it remembers."""
    return intervene(jax.random.key(0), settable(HandSet(of_side=1.0), MAZE), MAZE, **EPISODES)


@pytest.fixture(scope="module")
def ignores():
    """Remembers the side in plain sight, and turns by a coin that the belief does not know."""
    return intervene(jax.random.key(1), settable(HandSet(of_coin=1.0), MAZE), MAZE, **EPISODES)


@pytest.mark.slow
def test_a_pytorch_agent_that_uses_the_belief_turns_as_the_donor(uses):
    assert uses.verdict == "readable and used"
    assert uses.width == 15
    assert uses.swap("whole").follow.value == 1
    for rank in (1, 2, 4, 8):
        assert uses.swap("belief", rank).follow.value == 1
        assert uses.swap("complement", rank).keep.value == 1
        assert uses.swap("belief", rank).to_donor.value < 0.1 < uses.swap("belief", rank).to_own.value
    assert uses.swap("random", 1).follow.value < 0.05
    # Alone it earns 4 γ^L; with the wrong side −0.1 γ^L.
    assert uses.swap("whole").loss.value == pytest.approx(4.1 * 0.98**L, rel=1e-5)
    assert uses.equal.changed == (0, 0, 0)
    follow = [swap.follow.value for swap in uses.steering]
    assert (follow[0], follow[-1]) == (0, 1)


@pytest.mark.slow
def test_a_pytorch_agent_with_the_belief_in_plain_sight_and_unused_is_not_said_to_use_it(ignores):
    assert ignores.verdict == "readable; not used through this subspace"
    assert ignores.readable.low > 0.95
    assert ignores.swap("whole").follow.value == 1, "the coin comes with the whole memory"
    assert ignores.swap("belief", 1).keep.value == 1
    assert ignores.swap("complement", 1).follow.value == 1
    assert all(swap.keep.value == 1 for swap in ignores.steering)
    assert ignores.equal.changed.low > 0.1, "beyond the belief the memory holds the coin"


@pytest.mark.slow
def test_erasing_the_side_costs_the_pytorch_agent_that_uses_it_alone(uses, ignores):
    lost, kept = ({each.part: each for each in found.erasures}["side"] for found in (uses, ignores))
    # Without a side all turn alike, and half of them wrongly.
    assert lost.loss.value == pytest.approx(4.1 / 2 * 0.98**L, rel=0.25)
    assert lost.loss.low > lost.random_loss.high
    assert kept.loss == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by hand", "LSTM"])
def test_our_own_agents_through_the_adapter_give_the_numbers_of_the_compiled_programs(name):
    """The same episodes and swaps: follow rates are equal, and numbers with decimals equal but for rounding."""
    maze, agent = coin_maze(4), HandBuilt(of_side=1.0)
    if name == "LSTM":
        maze = bs.TMaze(4, 0.3)
        sizes = {"observation_size": 4, "num_actions": 4, "hidden_size": 5, "num_layers": 2}
        # Larger weights than those of a new network: its actions depend on its memory.
        agent = jax.tree.map(lambda each: 4 * each, bs.QNetwork(jax.random.key(4), bs.LSTM, **sizes))
    key, number = jax.random.key(2), dict[str, Any](num_episodes=100, num_swaps=50)
    native, stepped = (intervene(key, each, maze, **number) for each in (agent, settable(agent, maze)))
    assert stepped.verdict == native.verdict
    assert native.swaps[0].num_deciding == 50
    for ours, theirs in zip((*native.swaps, *native.steering), (*stepped.swaps, *stepped.steering), strict=True):
        assert (ours.follow, ours.keep, ours.num_deciding) == (theirs.follow, theirs.keep, theirs.num_deciding)
        for score in ("to_donor", "to_own", "loss"):
            assert getattr(ours, score) == pytest.approx(getattr(theirs, score), abs=1e-4)
    assert native.equal is not None
    assert stepped.equal is not None
    assert native.equal.changed == stepped.equal.changed
    assert native.equal.values == pytest.approx(stepped.equal.values, abs=1e-4)
    for ours, theirs in zip(native.erasures, stepped.erasures, strict=True):
        assert (ours.part, ours.rank, ours.width) == (theirs.part, theirs.rank, theirs.width)
        assert ours.loss == pytest.approx(theirs.loss, abs=0.02)


def test_the_same_key_gives_the_same_episodes_as_the_compiled_program():
    maze, agent = bs.TMaze(3, 0.2), HandBuilt(of_side=1.0)
    ours = SteppedAgent(settable(agent, maze)).play(jax.random.key(5), maze, 20)
    theirs = bs.rollout(jax.random.key(5), maze, EpsilonGreedy(agent, maze, 0.0), num_episodes=20).trajectory
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def agents() -> dict[str, tuple[Any, dict]]:
    torch.manual_seed(0)

    def function(memory, inputs):
        memory = np.zeros((len(inputs), 4)) if memory is None else memory["sum"]
        return {"sum": 0.5 * memory + inputs}, (0.5 * memory + inputs).astype(np.float32)

    module = Plain(jax.random.key(0))
    return {
        "CleanRL": (CleanRL(), {}),
        "layers and cells": (Sequences(), {"sees_actions": True}),
        "Equinox": (module, {"initial": np.zeros(6, np.float32)}),
        "function": (function, {}),
    }


@pytest.mark.parametrize("name", list(agents()))
def test_adapters_set_memories_so_that_rows_may_change_places_and_scores_follow_them(name):
    """A memory that is set continues as the episode that it was taken from."""
    given, options = agents()[name]
    maze = bs.TMaze(3, horizon=12)
    agent, other = (as_agent(given, maze, **options) for _ in range(2))
    vector: Any = with_vector(other, maze)
    assert isinstance(vector, VectorMemory), vector
    draw = np.random.default_rng(0)
    seen, done = np.eye(4, dtype=np.float32)[draw.integers(4, size=(4, 6))], draw.integers(4, size=(4, 6))
    agent.start(6)
    previous, memory, values = np.full(6, -1), None, np.zeros(0)
    for t in range(4):
        _, values = scored(agent, previous, seen[t], 4)
        memory = vector.step_all(memory, previous, seen[t])[0] if t < 3 else memory
        previous = done[t]
    assert memory is not None
    order = np.array([5, 0, 3])
    _, _, again = vector.step_all(memory[order], done[2][order], seen[3][order])
    np.testing.assert_allclose(again, values[order], atol=1e-5)
    assert max(part.stop for part in vector.parts().values()) == memory.shape[1]


class Counts:
    """Acts by a clock that it does not return, so that its memory is not all that it carries."""

    def start(self, num_episodes):
        self.memory, self.time = np.zeros((num_episodes, 2), np.float32), 0

    def step(self, previous_actions, observations):
        self.time += 1
        return np.full(len(observations), self.time % 4), self.memory

    def get_memory(self):
        return self.memory

    def set_memory(self, memory):
        self.memory = memory


class WithoutSetting:
    def start(self, num_episodes):
        pass

    def step(self, previous_actions, observations):
        return np.zeros(len(observations), int), observations


def whole_numbers(memory, inputs):
    return np.zeros((len(inputs), 2), int), np.zeros(len(inputs), int)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (WithoutSetting(), "has the methods get_memory and set_memory, but got WithoutSetting"),
        (Counts(), "acts the same when it is read and set again before each step"),
        (whole_numbers, "arrays of real numbers"),
    ],
)
def test_a_memory_that_cannot_be_set_gets_one_sentence(agent, words):
    with pytest.raises(ValueError, match=words):
        settable(agent, bs.TMaze(3))


@pytest.mark.slow
def test_an_agent_that_returns_actions_alone_has_follow_rates_and_no_distances():
    module = HandSet(of_side=1.0)

    def acts(memory, inputs):
        state = None if memory is None else torch.from_numpy(memory)[None]
        with torch.no_grad():
            logits, state = module(torch.from_numpy(inputs), state)
        return state[0].numpy(), logits.argmax(dim=1).numpy()

    found: Any = intervene(jax.random.key(0), settable(acts, MAZE), MAZE, num_episodes=100, num_swaps=50, erase=False)
    assert found.verdict == "readable and used"
    assert found.swap("whole").follow.value == 1
    assert found.swap("whole").to_donor is None
    assert found.equal.values is None


@pytest.mark.slow
def test_a_part_of_a_foreign_memory_is_erased_by_its_name():
    from interventions.agents import Kept

    twice: Any = settable(HandBuilt(of_side=1.0, of_copy=1.0), bs.TMaze(L))
    assert list(twice.parts()) == list(Kept._fields)
    found: Any = erase(jax.random.key(3), twice, bs.TMaze(L), memory="copy", num_episodes=100)
    assert {each.part: each.loss.value for each in found}["side"] == 0
    assert isinstance(as_agent(HandBuilt(), bs.TMaze(L)), JAXAgent)


@pytest.fixture(scope="module")
def audited() -> Any:
    untrained = HandSet()  # remembers the side, and turns by nothing
    return bs.audit(
        HandSet(of_side=1.0), MAZE, untrained=untrained, num_samples=500, bits=False, interventions=True, name="RNN"
    )


@pytest.mark.slow
def test_an_audit_with_interventions_says_whether_the_belief_is_used(audited):
    assert audited.use.verdict == "readable and used"
    assert audited.use.num_episodes == 500
    assert audited.use_before.verdict == "readable; not used through this subspace"
    text = str(audited)
    assert "is it used? agent                            readable and used" in text
    assert "decides as the donor: whole memory         100% [100, 100]" in text
    rows = audited.table().filter(quantity="use: follow", of="agent, belief")
    assert dict(zip(rows["at"], rows["value"], strict=True)) == {1: 1, 2: 1, 4: 1, 8: 1}


@pytest.mark.slow
def test_the_page_and_the_record_of_an_audit_have_the_interventions(audited, tmp_path):
    page = audited.report(tmp_path).read_text("utf-8")
    assert "<h2>Is it used?</h2>" in page
    for title in ("Follow rate after a swap", "Dose-response of steering"):
        assert f"<h3>{title}</h3>" in page
    assert "<li>Verdict: readable and used.</li>" in page
    again = bs.Audit.load(tmp_path)
    assert again.use == audited.use
    assert again.use_before == audited.use_before
    assert str(again) == str(audited)


@pytest.mark.slow
def test_an_audited_agent_whose_memory_cannot_be_set_gets_one_plain_sentence(tmp_path):
    audit: Any = bs.audit(WithoutSetting(), bs.TMaze(3), num_samples=500, bits=False, interventions=True)
    (sentence,) = [warning for warning in audit.warnings if warning.startswith("no interventions")]
    assert "has the methods get_memory and set_memory, but got WithoutSetting" in sentence
    assert audit.use is None
    assert "Is it used?" not in audit.report(tmp_path).read_text("utf-8")


def test_interventions_on_infinitely_many_states_are_refused_before_anything_is_played():
    with pytest.raises(ValueError, match="interventions are for POMDPs with finitely many states"):
        bs.audit(WithoutSetting(), bs.MountainHike(), interventions=True)
