"""What is measured has a name that holds, and wrong settings get one sentence."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from beliefscope.information import MINE
from beliefscope.store import MeasurementSpec

SMALL = MeasurementSpec(num_samples=2000)
SPEC = MeasurementSpec(estimator="sufficiency", num_samples=2000)


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


@pytest.mark.parametrize("zero", [0, -0.0, np.float64(0), np.int32(0)])
def test_equal_numbers_of_any_type_give_one_id(zero, types_unchecked):
    def spec(many, none):
        return MeasurementSpec(num_samples=many, num_particles=many, epochs=many, epsilon=none)

    given, usual = spec(np.int64(3000), zero), spec(3000, 0.0)
    assert given.id(0, with_controls=True) == usual.id(0, with_controls=True)
    assert json.dumps(given.describe()) == json.dumps(usual.describe())


def test_epochs_are_of_mine_alone():
    with pytest.raises(ValueError, match="epochs is a whole number of at least 1, for MINE alone"):
        MeasurementSpec(estimator="atoms", epochs=3)


def test_a_specification_is_plain_data():
    assert json.loads(json.dumps(dataclasses.asdict(SPEC)))["estimator"] == "sufficiency"


def test_what_is_measured_is_part_of_the_name():
    specs = [SMALL, MeasurementSpec(), MeasurementSpec(epsilon=0.2), MeasurementSpec(estimator="trusted")]
    names = {spec.id(episode, with_controls=full) for spec in specs for episode in (0, 10) for full in (True, False)}
    names |= {spec.id(10, with_controls=True, with_calibration=True) for spec in specs}
    assert len(names) == 20
    assert SMALL.id(0, with_controls=True, with_calibration=False) == SMALL.id(0, with_controls=True)


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


def test_the_epochs_are_those_of_the_estimators():
    assert MeasurementSpec().num_epochs == MINE("text").settings.epochs
    assert MeasurementSpec(estimator="mine-authors").num_epochs == MINE("code").settings.epochs
    assert MeasurementSpec(estimator="atoms").num_epochs is None
    assert MeasurementSpec(epochs=7).num_epochs == 7


def test_a_description_needs_no_jax():
    program = "import sys; from beliefscope import MeasurementSpec; MeasurementSpec().id(0, with_controls=True)"
    check = "sys.exit(' '.join({'jax', 'equinox'} & set(sys.modules)) or 0)"
    run = subprocess.run([sys.executable, "-c", f"{program}; {check}"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
