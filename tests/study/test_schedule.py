"""Which piece is next: trainings first, a worker's own kind of work before others."""

import dataclasses
import itertools

import pytest

from beliefscope import DRQN, GRU, LSTM, Measurement, MeasurementSpec, RunSpec, Study, TMaze, TrainingSpec
from beliefscope.study.schedule import Schedule, refinement


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
    second = schedule.take(None, [schedule.programs(first[0])])
    assert labels(second) == ["train LSTM, seed 0"]
    assert labels(schedule.take(schedule.programs(second[0]), [schedule.programs(first[0])])) == ["train LSTM, seed 1"]


def test_nothing_of_a_run_is_measured_before_its_training_is_over(study):
    schedule = schedule_of(study)
    taken = [piece for _ in range(4) for piece in schedule.take(None, [])]
    assert [piece.kind for piece in taken] == ["train"] * 4
    assert schedule.take(None, []) == []
    assert schedule
    schedule.training_ended(taken[2].run, failed=False)
    assert labels(schedule.take(None, [])) == ["measure LSTM, seed 0"]


def test_a_failed_training_takes_its_measurements_with_it(study):
    schedule = schedule_of(study)
    (training,) = schedule.take(None, [])
    assert labels(schedule.training_ended(training.run, failed=True)) == ["measure GRU, seed 0"]


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
                schedule.training_ended(piece.run, failed=False)
    assert sorted(piece.name for piece in taken) == sorted(piece.name for piece in study.pieces())


def test_a_checkpoint_that_only_measure_has_asked_for_comes_last(study):
    own = [piece for piece in study.pieces() if piece.kind == "measure"]
    added = dataclasses.replace(own[0], episode=0)
    schedule = Schedule([added, *own], {run.id: run for run in study.runs}, in_batches=False)
    taken = [piece for _ in range(5) for piece in schedule.take(None, [])]
    assert [piece.episode for piece in taken] == [10, 10, 10, 10, 0]


def test_points_are_taken_from_coarse_to_fine():
    assert refinement(9) == [0, 2, 1, 2, 0, 2, 1, 2, 0]
    assert [refinement(count) for count in range(4)] == [[], [0], [0, 0], [0, 0, 0]]
    for count in range(3, 60):
        rounds = refinement(count)
        assert rounds[0] == rounds[-1] == rounds[count // 2] == 0
        for last in range(max(rounds) + 1):  # whenever it stops, gaps differ by a factor of two and one point at most
            taken = [place for place, number in enumerate(rounds) if number <= last]
            gaps = [high - low for low, high in itertools.pairwise(taken)]
            assert max(gaps) <= 2 * min(gaps) + 1


def test_ends_and_middles_of_all_runs_are_measured_before_what_lies_between(study):
    measurement = Measurement(spec=MeasurementSpec(num_samples=2000), episodes=tuple(range(0, 11, 2)))
    learner = DRQN(cell=GRU, num_episodes=10, checkpoint_period=2, evaluation_period=2, hidden_size=4)
    runs = {
        run.id: run
        for seed in (0, 1)
        for run in [
            RunSpec(
                training=TrainingSpec(pomdp=TMaze(3), learner=learner, seed=seed),
                environment="T-Maze, L = 3",
                measurements=(measurement,),
            )
        ]
    }
    pieces = [piece for piece in Study(name="two", runs=tuple(runs.values())).pieces() if piece.kind == "measure"]
    for done in ((), (0, 6)):  # also where it is taken up again
        schedule = Schedule([piece for piece in pieces if piece.episode not in done], runs, in_batches=False)
        taken = [schedule.take(None, [])[0].episode for _ in range(2 * (6 - len(done)))]
        assert [episode for episode in taken if episode in (0, 6, 10)] == taken[: 2 * (3 - len(done))]


def test_what_is_put_back_is_taken_again_and_a_training_that_is_put_back_holds_its_measurements(study):
    schedule = schedule_of(study)
    trainings = [piece for _ in range(4) for piece in schedule.take(None, [])]
    assert schedule.ready() == []
    schedule.put_back(trainings[:1])
    assert schedule.ready() == trainings[:1]
    assert schedule.take(None, []) == trainings[:1]
    schedule.training_ended(trainings[0].run, failed=False)
    assert labels(schedule.ready()) == ["measure GRU, seed 0"]


@pytest.fixture
def measuring():
    """One trained agent, whose 12 checkpoints are measured by two estimators."""
    episodes = tuple(range(0, 120, 10))
    specs = [MeasurementSpec(estimator=name, num_samples=2000) for name in ("mine", "sufficiency")]
    learner = DRQN(cell=GRU, num_episodes=110, checkpoint_period=10, hidden_size=4)
    training = TrainingSpec(pomdp=TMaze(3), learner=learner, seed=0)
    measurements = tuple(Measurement(spec=spec, episodes=episodes) for spec in specs)
    schedule = schedule_of(
        Study(name="one", runs=(RunSpec(training=training, environment="A", measurements=measurements),))
    )
    (training,) = schedule.take(None, [])
    schedule.training_ended(training.run, failed=False)
    return schedule


def taken_by(schedule, estimator, number):
    """So many of its pieces; what else is taken meanwhile is put back."""
    taken, others = [], []
    while len(taken) < number:
        (piece,) = schedule.take(None, [])
        (taken if piece.measurement.estimator == estimator else others).append(piece)
    schedule.put_back(others)
    return taken


def test_what_has_failed_ten_times_alike_is_not_tried_again(measuring):
    tried = taken_by(measuring, "mine", 10)
    assert [measuring.failed_alike(piece, "no memory") for piece in tried[:9]] == [[]] * 9
    left_out = measuring.failed_alike(tried[9], "no memory")
    assert [piece.measurement.estimator for piece in left_out] == ["mine"] * 2
    assert [piece.measurement.estimator for piece in measuring.ready()] == ["sufficiency"] * 12


@pytest.mark.parametrize("but", ["one was done", "another error"])
def test_failures_that_are_not_alike_leave_out_nothing(measuring, but):
    tried = taken_by(measuring, "mine", 11)
    if but == "one was done":
        measuring.done(tried[0])
    errors = ["NaN" if but == "another error" and place == 5 else "no memory" for place in range(10)]
    assert [measuring.failed_alike(piece, error) for piece, error in zip(tried[1:], errors, strict=True)] == [[]] * 10
