"""Measuring a stored run: what is written, that it is written once, and that it is right where the truth is known."""

import json

import jax
import numpy as np
import pytest

from beliefscope import DRQN, GRU, Irrelevant, MeasurementSpec, TMaze, TrainingSpec, measure, train
from beliefscope.measurement import checkpoints, measure_checkpoint
from beliefscope.store import Damaged, read_record

SMALL = MeasurementSpec(num_samples=2000)
SPEC = MeasurementSpec(estimator="sufficiency", num_samples=2000)


def trained(folder, pomdp, seeds=(0,)):
    learner = DRQN(cell=GRU, num_episodes=40, checkpoint_period=10, evaluation_episodes=2, hidden_size=8)
    return train([TrainingSpec(pomdp=pomdp, learner=learner, seed=seed) for seed in seeds], folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("study"), TMaze(3), seeds=(0, 1))


@pytest.fixture(scope="module")
def run(runs):
    return runs[0]


def test_each_run_has_its_own_random_numbers(runs, monkeypatch):
    """Else the errors of all runs at a checkpoint go together, and an interval over seeds is too narrow."""
    keys = []

    def sampled(key, *_):
        keys.append(key)
        raise InterruptedError

    monkeypatch.setattr(checkpoints, "_sample", sampled)
    for run in runs:
        for episode in (10, 10, 20, 20):
            with pytest.raises(InterruptedError):
                measure_checkpoint(run, SMALL, episode, with_controls=False)
    numbers = [tuple(jax.random.key_data(key).tolist()) for key in keys]
    assert numbers[::2] == numbers[1::2]
    assert len(set(numbers)) == 4


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


@pytest.mark.slow
def test_a_network_that_is_not_stored_cannot_be_measured(run):
    with pytest.raises(ValueError, match="choose among those"):
        measure(run, SMALL, episodes=[15])


@pytest.mark.slow
def test_first_middle_and_last_have_controls_and_a_product_belief_is_measured_by_part(tmp_path):
    (run,) = trained(tmp_path, Irrelevant.of_paper(TMaze(3), 1))
    (record,) = measure(run, SMALL, episodes=[20])
    for part in ("relevant", "irrelevant"):
        found = record[part]
        assert set(found["controls"]) == {"shuffled", "untrained", "time", "observation", "recent", "memory and time"}
        assert abs(found["controls"]["shuffled"]["bits"]) < 0.1
        assert found["given time"] == found["controls"]["memory and time"]["bits"] - found["controls"]["time"]["bits"]
    assert record["irrelevant"]["decoded"] is None
    assert record["relevant"]["decoded"]["linear"]["kl"] <= record["relevant"]["decoded"]["linear"]["baseline_kl"]
    assert "exact" not in record


# A measurement of sufficiency: two sets of histories, the atoms bound, the controls.
@pytest.fixture(scope="module")
def product_run(tmp_path_factory):
    learner = DRQN(cell=GRU, num_episodes=20, checkpoint_period=10, hidden_size=8, evaluation_episodes=5)
    pomdp = Irrelevant.of_paper(TMaze(3), 1)
    return train([TrainingSpec(pomdp=pomdp, learner=learner, seed=0)], tmp_path_factory.mktemp("runs"))[0]


@pytest.mark.slow
def test_a_record_has_both_histories_both_parts_the_bound_and_the_controls(product_run):
    first = measure_checkpoint(product_run, SPEC, 0, with_controls=False)
    last = measure_checkpoint(product_run, SPEC, 20, with_controls=True)
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
