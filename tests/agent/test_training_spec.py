"""A run's identity: what enters, what does not."""

import dataclasses
import json
import re

import equinox as eqx
import jax
import numpy as np
import pytest

from beliefscope.agent import DRQN, LSTM, MGU, Cell, TrainingSpec
from beliefscope.pomdp import Irrelevant, MountainHike, TMaze, classic

SPEC = TrainingSpec(pomdp=TMaze(50), seed=3)


class Copy(Cell):
    """A cell of a user's own."""

    size: int = eqx.field(static=True)

    def __init__(self, key, input_size, hidden_size):
        self.size = hidden_size

    def init_memory(self):
        return jax.numpy.zeros(self.size)

    def step(self, memory, inputs):
        return memory


def test_the_id_is_the_first_16_digits_of_the_sha_256_of_the_canonical_json_and_never_changes():
    assert re.fullmatch("[0-9a-f]{16}", SPEC.id)
    assert SPEC.id == TrainingSpec(pomdp=TMaze(50), seed=3).id == "6b949893404c9f8b"


@pytest.mark.parametrize("zero", [0, -0.0, np.float64(0), np.int32(0)])
def test_equal_numbers_of_any_type_give_one_id(zero, types_unchecked):
    def spec(two, none, half):
        learner = DRQN(hidden_size=two, exploration_rate=none, learning_rate=half)
        return TrainingSpec(pomdp=Irrelevant(TMaze(3), two), learner=learner, seed=two)

    assert spec(np.int64(2), zero, np.float32(0.5)).canonical_json() == spec(2, 0.0, 0.5).canonical_json()


def test_the_paper_is_the_default():
    learner = DRQN()
    assert (learner.num_layers, learner.hidden_size, learner.buffer_capacity) == (2, 32, 8192)
    assert (learner.target_period, learner.gradient_steps, learner.batch_size) == (10, 10, 32)
    assert (learner.exploration_rate, learner.learning_rate, learner.num_episodes) == (0.2, 1e-3, 5000)
    assert (learner.evaluation_period, learner.evaluation_episodes, learner.checkpoint_period) == (10, 50, 100)


def test_every_setting_enters_the_identity():
    other = {"cell": LSTM, "variant": "code", "exploration_rate": 0.3, "learning_rate": 1e-4}
    specs = [SPEC, dataclasses.replace(SPEC, seed=4)]
    for field in dataclasses.fields(DRQN):
        value = other.get(field.name) or 2 * getattr(SPEC.learner, field.name)
        periods = {"checkpoint_period": 200} if field.name == "evaluation_period" else {}
        learner = dataclasses.replace(SPEC.learner, **{field.name: value, **periods})
        specs.append(dataclasses.replace(SPEC, learner=learner))
    mazes = [TMaze(51), TMaze(50, 0.3), TMaze(50, horizon=99), TMaze(50, discount=0.9)]
    mazes += [MountainHike(), MountainHike(varying=True), Irrelevant(TMaze(50), 1), Irrelevant(TMaze(50), 4)]
    specs += [dataclasses.replace(SPEC, pomdp=pomdp) for pomdp in [*mazes, classic("tiger"), classic("crying-baby")]]
    assert len({spec.id for spec in specs}) == len(specs)


def test_arrays_enter_by_their_digests_and_classes_by_their_names():
    tiger = json.loads(TrainingSpec(pomdp=classic("tiger"), learner=DRQN(cell=MGU)).canonical_json())
    assert tiger["learner"]["cell"] == "MGU"
    assert tiger["pomdp"]["class"] == "TabularPOMDP"
    assert re.fullmatch("[0-9a-f]{64}", tiger["pomdp"]["initial"]["sha256"])
    own = json.loads(TrainingSpec(pomdp=TMaze(3), learner=DRQN(cell=Copy)).canonical_json())
    assert own["learner"]["cell"].endswith("test_training_spec.Copy")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: TrainingSpec(pomdp=TMaze(3), seed=-1), "a seed is a whole number from 0 to 4294967295, but got -1"),
        (lambda: TrainingSpec(pomdp=TMaze(3), seed=2**32), "a seed is a whole number"),
        (lambda: DRQN(num_layers=0), "num_layers is a whole number of at least 1, but got 0; the paper's is 2"),
        (
            lambda: DRQN(exploration_rate=1.5),
            "exploration_rate is a finite number of at least 0 and at most 1, but got 1.5; the paper's is 0.2",
        ),
        (lambda: DRQN(learning_rate=float("nan")), "learning_rate is a finite number of at least 0, but got nan"),
        (lambda: DRQN(checkpoint_period=15), "checkpoint_period is a multiple of evaluation_period, here 10"),
        (lambda: DRQN(num_episodes=5), "num_episodes is a multiple of evaluation_period, here 10, but got 5"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(build, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        build()
