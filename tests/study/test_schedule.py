"""Which piece is next: trainings first, a worker's own kind of work before others."""

import pytest

from beliefscope import DRQN, GRU, LSTM, Measurement, MeasurementSpec, RunSpec, Study, TMaze, TrainingSpec
from beliefscope.study.schedule import Schedule


@pytest.fixture(scope="module")
def study():
    """Two cells, two seeds, one measured checkpoint each."""
    measurement = Measurement(spec=MeasurementSpec(num_samples=2000), episodes=(10,))
    learners = [DRQN(cell=cell, num_episodes=10, checkpoint_period=10, hidden_size=4) for cell in (GRU, LSTM)]
    trainings = [TrainingSpec(pomdp=TMaze(3), learner=learner, seed=seed) for learner in learners for seed in (0, 1)]
    runs = tuple(
        RunSpec(training=training, environment="T-Maze, L = 3", measurements=(measurement,)) for training in trainings
    )
    return Study(name="four", runs=runs)


def schedule_of(study, *, in_batches=False):
    return Schedule(study.pieces(), {run.id: run for run in study.runs}, in_batches=in_batches)


def labels(pieces):
    return [f"{piece.kind} {piece.label[15:]}" for piece in pieces]


def test_workers_begin_with_trainings_of_different_kinds(study):
    schedule = schedule_of(study)
    first = schedule.take(None, [])
    assert labels(first) == ["train GRU, seed 0"]
    second = schedule.take(None, [schedule.likeness(first[0])])
    assert labels(second) == ["train LSTM, seed 0"]
    assert labels(schedule.take(schedule.likeness(second[0]), [schedule.likeness(first[0])])) == ["train LSTM, seed 1"]


def test_nothing_of_a_run_is_measured_before_its_training_is_over(study):
    schedule = schedule_of(study)
    taken = [piece for _ in range(4) for piece in schedule.take(None, [])]
    assert [piece.kind for piece in taken] == ["train"] * 4
    assert schedule.take(None, []) == []
    assert schedule
    schedule.trained(taken[2].run, failed=False)
    assert labels(schedule.take(None, [])) == ["measure LSTM, seed 0"]


def test_a_failed_training_takes_its_measurements_with_it(study):
    schedule = schedule_of(study)
    (training,) = schedule.take(None, [])
    assert labels(schedule.trained(training.run, failed=True)) == ["measure GRU, seed 0"]


def test_on_a_gpu_agents_that_differ_in_their_seeds_alone_train_together(study):
    schedule = schedule_of(study, in_batches=True)
    assert labels(schedule.take(None, [])) == ["train GRU, seed 0", "train GRU, seed 1"]


def test_all_pieces_are_taken_once(study):
    schedule, taken = schedule_of(study), []
    while schedule:
        pieces = schedule.take(None, [])
        taken += pieces
        for piece in pieces:
            if piece.kind == "train":
                schedule.trained(piece.run, failed=False)
    assert sorted(piece.name for piece in taken) == sorted(piece.name for piece in study.pieces())
