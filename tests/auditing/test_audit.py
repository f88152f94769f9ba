"""Audits of agents whose memory is known: the belief itself, nothing, a clock, the sign alone."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import beliefscope as bs
from beliefscope.auditing import Audit
from beliefscope.auditing.audit import told_of_actions
from beliefscope.auditing.histories import play_episodes, read_along
from beliefscope.information.best_bound import BestBoundEstimate

MAZE = bs.TMaze(4, 0.2, horizon=20)
N = 800


class Knows:
    """Its memory is the exact belief, tracked by arrays: a filter of its own. It goes right, and guesses at the end."""

    def __init__(self, maze=MAZE):
        table = maze.tabular()
        states = np.arange(table.num_states)
        basis = np.eye(table.num_states)
        predict = jax.jit(jax.vmap(maze.predict, (0, None)))
        self.moves = np.stack([np.asarray(predict(basis, action)) for action in range(4)])  # [A, S, S']
        self.sees = np.stack([np.asarray(maze.likelihood(seen)) for seen in range(4)])
        self.start_belief = np.asarray(maze.initial_distribution())
        self.up = states % 2 == 0

    def start(self, num_episodes):
        self.belief = None

    def step(self, previous_actions, observations):
        seen = self.sees[observations.argmax(axis=1)]
        before = (
            self.start_belief
            if self.belief is None
            else np.einsum("ns,nst->nt", self.belief, self.moves[previous_actions])
        )
        joint = before * seen
        self.belief = joint / joint.sum(axis=1, keepdims=True)
        turn = np.where(self.belief @ self.up > 0.5, 1, 3)
        return np.where(observations[:, 3] > 0, turn, 0), self.belief


class Nothing(Knows):
    def step(self, previous_actions, observations):
        actions, _ = super().step(previous_actions, observations)
        return actions, np.ones((len(observations), 3))


class Clock(Knows):
    def start(self, num_episodes):
        super().start(num_episodes)
        self.time = 0

    def step(self, previous_actions, observations):
        actions, _ = super().step(previous_actions, observations)
        self.time += 1
        return actions, {"clock": np.full((len(observations), 1), self.time), "blank": np.zeros((len(observations), 1))}


@pytest.fixture(scope="module")
def knowing() -> Any:
    return bs.audit(Knows(), MAZE, num_samples=N, untrained=Nothing(), bits=False)


def test_a_memory_that_is_the_belief_has_all_of_it(knowing):
    for reading in (knowing.sufficiency.given_time, knowing.sufficiency.plain):
        assert reading.best.value > 0.93
    assert knowing.controls["shuffled"].value.value < 0.1
    assert knowing.controls["untrained"].value.value < 0.05
    assert knowing.controls["observation"].value.value < 0.9
    assert knowing.parts == {}
    assert knowing.decoders["MLP"].kl < 0.3 * knowing.decoders["MLP"].baseline_kl
    assert knowing.sees_actions is True
    assert knowing.impossible == 0
    # Later steps are rare among the pairs that the decoder is fitted to.
    assert all(step.share.value > 0.95 for step in knowing.by_step[:5])
    assert all(step.share is None or step.share.value < 1.001 for step in knowing.by_step)


def test_returns_stand_beside_the_optimum(knowing):
    most: Any = bs.maximal_return(MAZE)
    assert knowing.returns.maximal == pytest.approx(most.value)
    assert knowing.returns.exact
    assert most.value - 0.5 < knowing.returns.mean <= most.value + 4 * knowing.returns.standard_error


@pytest.mark.slow
def test_a_clock_and_a_constant_have_nothing_beyond_the_time():
    audit: Any = bs.audit(Clock(), MAZE, num_samples=N, bits=False)
    assert audit.sufficiency.given_time.best.value < 0.05
    assert audit.sufficiency.plain.best.value > 0.1
    assert audit.parts["blank"].plain.best.value < 0.03
    assert audit.parts["clock"].plain.best.value > 0.1
    assert audit.sees_actions is False
    assert any("not shown its own actions" in warning for warning in audit.warnings)


def test_an_audit_is_stored_and_read_without_loss(knowing, tmp_path):
    knowing.save(tmp_path)
    again = Audit.load(tmp_path)
    assert str(again) == str(knowing)
    assert again._repr_html_() == knowing._repr_html_()
    assert again.table().equals(knowing.table())
    assert again.traces.keys() == knowing.traces.keys()
    for name, arrays in knowing.traces.items():
        assert all(np.array_equal(array, again.traces[name][key], equal_nan=True) for key, array in arrays.items())


def test_bits_are_read_again_with_their_checks_and_their_control(knowing, tmp_path):
    shuffled = BestBoundEstimate(
        bits=0.01, standard_error=0.02, num_samples=N, num_particles=None, estimator="best bound"
    )
    bits = dataclasses.replace(shuffled, bits=1.5, checks={"KSG": 1.4}, interval=(1.4, np.inf), shuffled=shuffled)
    audit = dataclasses.replace(knowing, bits=bits)
    audit.save(tmp_path)
    assert str(Audit.load(tmp_path)) == str(audit)
    assert "checks: KSG 1.40" in str(audit)


def test_the_page_has_the_viewer_and_all_numbers(knowing, tmp_path):
    text = knowing.report(tmp_path).read_text("utf-8")
    assert 'id="belief-viewer"' in text
    assert "untrained twin" in text
    assert "Sufficiency at each step" in text
    assert str(knowing.sufficiency.value) in text
    assert "http://" not in text.split("<script>")[0]


def test_names_on_the_page_are_text(knowing, tmp_path):
    audit = dataclasses.replace(knowing, agent="<script>alert(1)</script>", warnings=("<b>",))
    assert "<script>alert" not in audit.report(tmp_path).read_text("utf-8")
    assert "<script>alert" not in audit._repr_html_()
    assert "<b>" not in audit._repr_html_()


def test_the_trace_has_the_states_that_were_played(knowing):
    arrays = knowing.traces["Knows"]
    states, beliefs = arrays["states"][..., 0], arrays["belief"]
    for episode, length in enumerate(arrays["lengths"]):
        assert int(states[episode, 0]) == episode  # the treasure up first
        for time in range(length):
            assert beliefs[episode, time, int(states[episode, time])] > 0
    assert np.allclose(arrays["memory"][0, :3].astype(float), beliefs[0, :3].astype(float), atol=2e-3)


@pytest.mark.slow
def test_several_checkpoints_give_curves():
    audit: Any = bs.audit({0: Nothing(), 100: Clock2(), 200: Knows()}, MAZE, num_samples=600, bits=False)
    assert [each.at for each in audit.checkpoints] == [0, 100, 200]
    assert audit.checkpoints[0].last.value < 0.05
    assert audit.checkpoints[2].last.value > 0.9
    assert audit.checkpoints[2].last == audit.checkpoints[2].own
    assert {0.0, 100.0, 200.0} <= set(audit.table().drop_nulls("at")["at"])


class Clock2(Clock):
    """A clock whose memory has the name of the others'."""

    def step(self, previous_actions, observations):
        actions, memory = super().step(previous_actions, observations)
        return actions, memory["clock"]


def test_reading_along_gives_the_memories_of_playing():
    agent, played = Knows(), play_episodes(jax.random.key(0), Knows(), MAZE, num_episodes=50)
    times = np.arange(50) % played.lengths
    read = read_along(agent, played, MAZE, times)["memory"]
    assert np.allclose(read, played.memory["memory"][np.arange(50), times], atol=1e-6)
    everything = read_along(agent, played, MAZE, None)["memory"]
    acted = np.arange(everything.shape[1]) < played.lengths[:, None]
    assert np.allclose(everything[acted], played.memory["memory"][acted], atol=1e-6)


def test_whether_actions_are_told_is_found_out():
    assert told_of_actions(Knows(), MAZE) is True
    assert told_of_actions(Nothing(), MAZE) is False


@pytest.mark.parametrize(
    ("agent", "options", "words"),
    [
        (Knows, {}, "pass an instance and not its class"),
        (3, {}, "an audited agent is a RecurrentPPO"),
        (Knows(), {"num_samples": 10}, "at least 500 pairs, but got 10"),
        (Knows(), {"memory": "cell"}, r"the parts of this memory are \['memory'\]"),
        (lambda memory, seen: (np.zeros((len(seen), 2)), np.zeros(len(seen))), {}, "whole numbers as actions"),
        (lambda memory, seen: (np.zeros(2), np.zeros(len(seen), int)), {}, "a row of numbers for each of the 1 ep"),
        (lambda memory, seen: np.zeros(2), {}, "returns its new memory and its actions"),
    ],
)
def test_wrong_agents_get_one_sentence(agent, options, words):
    with pytest.raises(ValueError, match=words):
        bs.audit(agent, MAZE, **{"num_samples": 500, **options})


@pytest.mark.slow
def test_bits_come_with_interval_calibration_and_shuffled_control():
    maze = bs.TMaze(3)
    audit: Any = bs.audit(Knows(maze), maze, num_samples=1500)
    assert abs(audit.bits.bits - 3) < 0.1  # 8 beliefs, equally likely
    assert audit.bits.interval[0] <= 3 <= audit.bits.interval[1]
    assert abs(audit.bits.shuffled.bits) < 0.1
    assert audit.entropy.bits == pytest.approx(3, abs=0.02)
    assert len(audit.calibration.points) == 4
    assert "calibration in place" in str(audit)


@pytest.mark.slow
@pytest.mark.parametrize("pomdp", [bs.classic("tiger", horizon=6), bs.MountainHike()], ids=["tiger", "particles"])
def test_files_and_particles_are_audited_and_reported(pomdp, tmp_path):
    """Whose memory is all that was seen so far, in sums, and of whom nothing is known of values."""

    def sums(memory, inputs):
        memory = (
            inputs if memory is None else np.concatenate([0.9 * memory[:, :1] + inputs[:, :1], inputs[:, 1:]], axis=1)
        )
        return memory, np.zeros(len(inputs), int)

    audit: Any = bs.audit(sums, pomdp, num_samples=500, bits=False, sees_actions=True)
    assert 0 <= audit.sufficiency.value.value <= 1
    assert 'id="belief-viewer"' in audit.report(tmp_path).read_text("utf-8")
    assert str(bs.Audit.load(tmp_path)) == str(audit)


def test_a_twin_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="all agents of an audit have the parts"):
        bs.audit(Knows(), MAZE, untrained=Clock(), num_samples=500, bits=False)
