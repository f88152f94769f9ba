"""A measurement of sufficiency: two sets of histories, the atoms bound, the controls, and names that hold."""

import dataclasses
import json

import pytest

from beliefscope.agent import DRQN, TrainingSpec, train
from beliefscope.agent.cells import GRU
from beliefscope.measurement import MeasurementSpec, measure_checkpoint
from beliefscope.measurement.doubts import doubts, stored_warnings
from beliefscope.pomdp import Irrelevant, TMaze

SPEC = MeasurementSpec(estimator="sufficiency", num_samples=2000)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    learner = DRQN(cell=GRU, num_episodes=20, checkpoint_period=10, hidden_size=8, evaluation_episodes=5)
    pomdp = Irrelevant.of_paper(TMaze(3), 1)
    return train([TrainingSpec(pomdp=pomdp, learner=learner, seed=0)], tmp_path_factory.mktemp("runs"))[0]


@pytest.mark.slow
def test_a_record_has_both_histories_both_parts_the_bound_and_the_controls(run):
    first = measure_checkpoint(run, SPEC, 0, with_controls=False)
    last = measure_checkpoint(run, SPEC, 20, with_controls=True)
    assert (first["estimator"], first["last_episode"]) == ("sufficiency", 20)
    for part in ("relevant", "irrelevant"):
        assert first[part]["own"] != first[part]["last"]  # an untrained agent goes elsewhere
        assert last[part]["own"] == last[part]["last"]  # the last policy is its own
        assert set(last[part]["controls"]) == {"shuffled", "untrained", "observation", "recent"}
        assert last[part]["own"]["given_time"]["available"] > 0.05
    assert last["relevant"]["atoms"]["bits"] <= last["relevant"]["entropy"]["bits"] + 0.05
    assert last["irrelevant"]["atoms"] is None  # no two beliefs of it are alike
    shuffled = last["relevant"]["controls"]["shuffled"]["given_time"]["best"]
    assert shuffled[0] < 0.05
    json.dumps(last)


def test_names_for_people_do_not_change_what_is_stored():
    for name, stored in (("mine", "text"), ("mine-authors", "code"), ("trusted", "trusted")):
        new, old = (MeasurementSpec(estimator=each) for each in (name, stored))  # pyright: ignore[reportArgumentType]
        assert new == old
        assert new.estimator == name
        assert new.describe()["estimator"] == stored
    # Of a record that was stored before there were other names.
    assert MeasurementSpec().id(100, with_controls=False) == "4650ace7b6371b2f"
    assert MeasurementSpec(**MeasurementSpec().describe()) == MeasurementSpec()


def test_the_number_of_pairs_given_is_one_thing():
    assert MeasurementSpec(num_samples=5000).num_rows == 10_000
    assert MeasurementSpec(estimator="sufficiency", num_samples=5000).num_rows == 5000


def test_epochs_are_of_mine_alone():
    with pytest.raises(ValueError, match="epochs is a whole number of at least 1, for MINE alone"):
        MeasurementSpec(estimator="atoms", epochs=3)


FOUND = {
    "bits": 3.0,
    "standard_error": 0.05,
    "estimator": "MINE, 200 epochs, fresh pairs",
    "ceiling": 13.3,
    "curve": [3.0] * 100,
    "entropy": {"bits": 4.0, "distinct": 16, "flagged": False},
}


def test_the_numbers_of_a_record_are_held_against_each_other():
    assert doubts(FOUND) == ()
    assert "above H(b) = 4.00" in doubts(FOUND | {"bits": 4.5})[0]
    assert doubts(FOUND | {"bits": 4.5, "entropy": FOUND["entropy"] | {"flagged": True}}) == ()
    assert doubts(FOUND, proven=3.5) == ("below a decoder's bound: at least 3.50 bits are there",)
    decoded = {"linear": {"baseline_cross_entropy": 5.0, "cross_entropy": 1.0}}
    assert doubts(FOUND | {"decoded": decoded}) == ("below a decoder's bound: at least 4.00 bits are there",)
    decoded = {"linear": {"baseline_cross_entropy": 5.2, "cross_entropy": 1.0}}  # no more than there is
    assert doubts(FOUND | {"decoded": decoded}) == ("below a decoder's bound: at least 4.00 bits are there",)
    both = {"controls": {"memory and time": {"bits": 4.6, "standard_error": 0.1}}, "given time": -0.5}
    exceeds, negative = doubts(FOUND | both)
    assert "exceeds H(b) = 4.00" in exceeds
    assert "I(h; b | t) = -0.50 bits is negative" in negative


def test_records_from_before_there_were_warnings_get_theirs_when_read():
    failed = FOUND | {"bits": -4.0}
    assert any(each.startswith("failed fit") for each in stored_warnings(failed, None))
    assert stored_warnings(FOUND | {"warnings": ["failed fit: told"]}, None) == ("failed fit: told",)
    assert stored_warnings(FOUND | {"warnings": []}, 3.5) == ("below a decoder's bound: at least 3.50 bits are there",)


def test_a_specification_is_plain_data():
    assert json.loads(json.dumps(dataclasses.asdict(SPEC)))["estimator"] == "sufficiency"
