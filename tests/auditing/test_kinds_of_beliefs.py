"""Audits where the belief is no single row of exact probabilities: irrelevant variables, particles, `.pomdp` files."""

from typing import Any

import jax
import numpy as np
import pytest

import beliefscope as bs
from beliefscope.auditing import Audit

MAZE = bs.TMaze(3)
BOTH = bs.Irrelevant(MAZE, 1)


class Walker:
    """Walks right and turns as the first observation says. `remember` says what it keeps of what it sees."""

    def __init__(self, remember: str):
        self.remember = remember

    def start(self, num_episodes):
        self.side = np.zeros((num_episodes, 2))
        self.time = 0
        self.mean, self.variance = np.zeros((num_episodes, 1)), 1.0

    def step(self, previous_actions, observations):
        self.side += observations[:, :2]
        self.time += 1
        # The Kalman filter of a random walk with unit variances, by hand.
        gain = self.variance / (self.variance + 1)
        self.mean = self.mean + gain * (observations[:, 4:] - self.mean)
        self.variance = (1 - gain) * self.variance + 1
        turn = np.where(self.side[:, 0] > 0, 1, 3)
        kept = {"side": self.side, "walk": self.mean}[self.remember]
        clock = np.full((len(observations), 1), float(self.time))
        return np.where(observations[:, 3] > 0, turn, 0), np.concatenate([kept, clock], axis=1)


@pytest.fixture(scope="module")
def audits() -> Any:
    return {kept: bs.audit(Walker(kept), BOTH, num_samples=600, bits=False) for kept in ("side", "walk")}


@pytest.mark.slow
def test_each_part_of_the_belief_is_read_where_it_is_kept_and_nowhere_else(audits):
    assert audits["side"].sufficiency.value.value > 0.97
    assert audits["side"].irrelevant.sufficiency.value.value < 0.1
    assert audits["walk"].sufficiency.value.value < 0.1
    assert audits["walk"].irrelevant.sufficiency.value.value > 0.9
    for audit in audits.values():
        assert audit.irrelevant.controls["shuffled"].value.value < 0.1
        assert audit.irrelevant.controls.keys() == audit.controls.keys()
        assert audit.impossible == 0
        assert audit.environment == "T-Maze, L = 3 + 1 irrelevant"


@pytest.mark.slow
def test_both_parts_are_printed_tabulated_stored_and_on_the_page(audits, tmp_path):
    audit = audits["walk"]
    for text in (str(audit), audit._repr_html_(), audit.report(tmp_path).read_text("utf-8")):
        assert text.index("of the relevant belief") < text.index("of the irrelevant belief")
        assert str(audit.irrelevant.sufficiency.value) in text
    table = audit.table()
    assert set(table["part"].drop_nulls()) == {"relevant", "irrelevant"}
    whole = table.filter(quantity="sufficiency given time", of="memory")
    assert whole["value"].to_list() == [audit.sufficiency.value.value, audit.irrelevant.sufficiency.value.value]
    again = Audit.load(tmp_path)
    assert str(again) == str(audit)
    assert again.table().equals(table)
    assert 'id="belief-viewer"' in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_an_audit_without_irrelevant_variables_has_one_part():
    audit = bs.audit(Walker("side"), MAZE, num_samples=600, bits=False)
    assert audit.irrelevant is None
    assert set(audit.table()["part"].drop_nulls()) == {"belief"}
    assert "relevant" not in str(audit)


def test_a_filter_of_another_pomdp_is_refused():
    with pytest.raises(ValueError, match="a POMDP with irrelevant variables, and no other, has a ProductFilter"):
        bs.audit(Walker("side"), BOTH, filter=bs.filter_of_paper(MAZE))


@pytest.mark.parametrize("agents", [{}, {"last": Walker("side")}])
def test_checkpoints_have_numbers(agents):
    with pytest.raises(ValueError, match="several checkpoints are a mapping from numbers"):
        bs.audit(agents, MAZE)


class Listens:
    """Listens, and counts on which side it heard the tiger: that is all that the belief of the tiger depends on."""

    def start(self, num_episodes):
        self.heard = np.zeros((num_episodes, 1))

    def step(self, previous_actions, observations):
        self.heard += observations[:, :1] - observations[:, 1:]
        return np.zeros(len(observations), int), self.heard


@pytest.mark.slow
def test_the_tiger_by_name_is_audited_and_its_count_is_its_belief():
    tiger = bs.gymnasium.named_pomdp("tiger", horizon=6)
    audit: Any = bs.audit(Listens(), tiger, num_samples=600, bits=False)
    # The belief that it lies left is 0.85^k / (0.85^k + 0.15^k), with k the difference of what was heard.
    assert audit.sufficiency.plain.best.value > 0.95
    assert audit.controls["observation"].plain.best.value < 0.9
    assert audit.sees_actions is False
    assert audit.traces


class Drifts:
    """Goes one way on the mountain, and adds up what it sees of the altitude, or nothing."""

    def __init__(self, remembers: bool):
        self.remembers = remembers

    def start(self, num_episodes):
        self.seen = np.zeros((num_episodes, 4))

    def step(self, previous_actions, observations):
        self.seen = np.concatenate([observations[:, :1], self.seen[:, :-1]], axis=1) * self.remembers
        return np.zeros(len(observations), int), self.seen


@pytest.mark.slow
def test_particles_of_a_mountain_hike_are_audited(tmp_path):
    hike = bs.MountainHike(horizon=12)
    filter = bs.filter_of_paper(hike, num_particles=100)
    audits: Any = {
        keeps: bs.audit(Drifts(keeps), hike, filter=filter, num_samples=1000, bits=False) for keeps in (True, False)
    }
    assert audits[True].sufficiency.value.value > 0.6
    assert audits[False].sufficiency.value.value < 0.05
    assert audits[True].controls["shuffled"].value.value < 0.05
    assert audits[True].entropy is None
    assert 'id="belief-viewer"' in audits[True].report(tmp_path).read_text("utf-8")
    assert str(Audit.load(tmp_path)) == str(audits[True])


@pytest.mark.slow
def test_logs_of_a_classic_are_audited_on_the_command_line(tmp_path, capsys):
    from beliefscope.cli import main

    tiger = bs.classic("tiger", horizon=6)
    played = bs.play(jax.random.key(0), Listens(), tiger, num_episodes=800)
    np.savez(
        tmp_path / "log.npz",
        observations=np.asarray(played.observations),
        actions=played.actions,
        memory=played.memory,
        lengths=played.lengths,
    )
    command = f"audit {tmp_path}/log.npz --pomdp tiger --horizon 6 --out {tmp_path}/audit --no-bits"
    assert main(command.split()) == 0
    assert "log.npz in TabularPOMDP, N = 720" in capsys.readouterr().out


class Sums:
    """Keeps a fading sum of the altitudes that it saw, and goes one of two ways whatever it saw."""

    def start(self, num_episodes):
        self.sums = np.zeros((num_episodes, 2))

    def step(self, previous_actions, observations):
        self.sums = 0.8 * self.sums
        self.sums[:, 0] += observations[:, 0]
        self.sums[:, 1] += previous_actions == 0
        return np.where(np.arange(len(observations)) % 2, 0, 3), self.sums


@pytest.mark.slow
def test_bits_with_particles_have_an_interval_and_a_control_and_are_read_again(tmp_path):
    hike = bs.MountainHike()
    particles = bs.ParticleFilter(hike, num_particles=100)
    audit: Any = bs.audit(Sums(), hike, filter=particles, num_samples=2000, calibrated=False)
    low, high = audit.bits.interval
    assert 1 < low <= audit.bits.bits <= high
    assert audit.bits.num_particles == 100
    assert audit.bits.shuffled.bits < 0.1
    audit.save(tmp_path)
    assert str(Audit.load(tmp_path)) == str(audit)
