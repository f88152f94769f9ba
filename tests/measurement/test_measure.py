"""Measuring a stored run: what is written, that it is written once, and that it is right where the truth is known."""

import numpy as np
import pytest

from beliefscope import DRQN, GRU, Irrelevant, MeasurementSpec, TMaze, TrainingSpec, measure, train
from beliefscope.measurement import measure_checkpoint
from beliefscope.storage import Damaged, read_record

SMALL = MeasurementSpec(num_samples=2000)


def trained(folder, pomdp):
    learner = DRQN(cell=GRU, num_episodes=40, checkpoint_period=10, evaluation_episodes=2, hidden_size=8)
    return train([TrainingSpec(pomdp=pomdp, learner=learner)], folder)[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("study"), TMaze(3))


@pytest.mark.slow
def test_a_checkpoint_is_measured_once_and_what_is_shared_is_no_more_than_there_is(run):
    (record,) = measure(run, SMALL, episodes=[10])
    (file,) = (run.path / "measure").glob("*.json")
    assert read_record(file) == record
    assert (record["episode"], record["estimator"], record["num_samples"]) == (10, "text", 2000)
    assert record["belief"]["N"] == 2000
    assert record["belief"]["M"] is None
    assert record["belief"]["health"]["impossible"] == 0
    exact, counted = record["exact"]["entropy"], record["belief"]["entropy"]
    assert not counted["flagged"]
    np.testing.assert_allclose(counted["bits"], exact, atol=0.05)
    assert record["belief"]["bits"] < exact + 0.2
    assert record["exact"]["σ = 0.1"] <= record["exact"]["σ = 0.01"] + 0.01 <= record["exact"]["σ = 0.001"] + 0.02
    assert record["exact"]["σ = 0.001"] <= exact + 1e-6
    assert "controls" not in record["belief"]
    written = file.stat().st_mtime_ns
    assert measure(run, SMALL, episodes=[10]) == [record]
    assert file.stat().st_mtime_ns == written


def test_a_damaged_record_is_told_of_and_not_trusted(run):
    file = run.path / "measure" / f"{SMALL.id(30, with_controls=False)}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    with pytest.raises(Damaged, match="delete it and repeat"):
        measure(run, SMALL, episodes=[30])
    file.unlink()


def test_what_is_measured_is_part_of_the_name():
    specs = [SMALL, MeasurementSpec(), MeasurementSpec(epsilon=0.2), MeasurementSpec(estimator="trusted")]
    names = {spec.id(episode, with_controls=full) for spec in specs for episode in (0, 10) for full in (True, False)}
    names |= {spec.id(10, with_controls=True, with_calibration=True) for spec in specs}
    assert len(names) == 20
    assert SMALL.id(0, with_controls=True, with_calibration=False) == SMALL.id(0, with_controls=True)


@pytest.mark.slow
def test_a_calibration_stands_beside_the_same_numbers(run):
    spec = MeasurementSpec(num_samples=2000, epochs=2)
    alone = measure_checkpoint(run, spec, 40, with_controls=True)
    found = measure_checkpoint(run, spec, 40, with_controls=True, with_calibration=True)
    known = found["belief"].pop("calibration")
    assert found == alone
    truths = [point["truth"] for point in known["points"]]
    assert truths == sorted(truths)
    assert truths[-1] == pytest.approx(found["belief"]["entropy"]["bits"], abs=0.02)
    assert not known["in_cells"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_samples": 100}, "at least 2000, but got 100"),
        ({"num_particles": 0}, "at least 1, but got 0"),
        ({"epsilon": 1.5}, "epsilon lies in"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        MeasurementSpec(**settings)


@pytest.mark.slow
def test_a_network_that_is_not_stored_cannot_be_measured(run):
    with pytest.raises(ValueError, match="choose among those"):
        measure(run, SMALL, episodes=[15])


@pytest.mark.slow
def test_first_middle_and_last_have_controls_and_a_product_belief_is_measured_by_part(tmp_path):
    run = trained(tmp_path, Irrelevant.of_paper(TMaze(3), 1))
    (record,) = measure(run, SMALL, episodes=[20])
    for part in ("relevant", "irrelevant"):
        found = record[part]
        assert set(found["controls"]) == {"shuffled", "untrained", "time", "observation", "recent", "memory and time"}
        assert abs(found["controls"]["shuffled"]["bits"]) < 0.1
        assert found["given time"] == found["controls"]["memory and time"]["bits"] - found["controls"]["time"]["bits"]
    assert record["irrelevant"]["decoded"] is None
    assert record["relevant"]["decoded"]["linear"]["kl"] <= record["relevant"]["decoded"]["linear"]["baseline_kl"]
    assert "exact" not in record
