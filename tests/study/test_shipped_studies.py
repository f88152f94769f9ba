"""The shipped studies: the paper's are as the paper has them, at every scale and in both variants."""

import functools
import itertools
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from beliefscope import LSTM, MeasurementSpec, MountainHike, TMaze
from beliefscope.agent.cells import CELLS
from beliefscope.study.definition import read_study, shipped_studies
from beliefscope.study.definition_tables import ScaleName

RESULTS = Path(__file__).parents[2] / "results" / "paper-generalisation"
MEMORIES = ("hidden", "whole")
OF_FIVE_CELLS = {
    "paper/tmaze-50": ["T-Maze, L = 50"],
    "paper/tmaze-100": ["T-Maze, L = 100"],
    "paper/tmaze-50-stochastic": ["Stochastic T-Maze, L = 50, λ = 0.3"],
    "paper/mountain-hike": ["Mountain Hike"],
    "paper/varying-mountain-hike": ["Varying Mountain Hike"],
    "paper/irrelevant-tmaze-50": ["T-Maze, L = 50 + 1 irrelevant", "T-Maze, L = 50 + 4 irrelevant"],
    "paper/irrelevant-mountain-hike": ["Mountain Hike + 1 irrelevant", "Mountain Hike + 4 irrelevant"],
}

read = functools.lru_cache(read_study)


def measured(study):
    return sum(len(each.episodes) for run in study.runs for each in run.measurements)


def environments(study):
    return list(dict.fromkeys(run.environment for run in study.runs))


def test_the_shipped_studies_are_the_papers_a_demo_and_two_beyond_each_with_a_line_of_description():
    found = shipped_studies()
    assert set(found) == {*OF_FIVE_CELLS, "paper/generalisation", "paper", "demo", "beyond/best-bound", "beyond/use"}
    assert all(len(text.splitlines()) == 1 for text in found.values())


@pytest.mark.parametrize("variant", ["text", "code"])
@pytest.mark.parametrize("name", [*OF_FIVE_CELLS, "paper/generalisation"])
def test_every_shipped_study_reads_at_every_scale_in_both_variants(name, variant):
    for scale, (num_episodes, period, seeds, num_samples, num_particles, epochs) in zip(
        get_args(ScaleName),
        [(300, 100, 2, 2000, 64, 400), (2000, 200, 4, 5000, 128, 100), (5000, 100, 4, 10_000, 1000, None)],
        strict=True,
    ):
        study = read_study(name, scale=scale, variant=variant)
        assert (study.name, study.settings) == (name, {"scale": scale, "variant": variant})
        assert {run.training.seed for run in study.runs} == set(range(seeds))
        for run in study.runs:
            learner = run.training.learner
            assert (learner.num_episodes, learner.checkpoint_period, learner.variant) == (num_episodes, period, variant)
            for each in run.measurements:
                of_bits = each.spec.estimator != "sufficiency"
                usual = 6000 if isinstance(run.training.pomdp, TMaze) else num_samples
                expected = MeasurementSpec(
                    estimator=variant if of_bits else "sufficiency",
                    num_samples=num_samples if scale != "quick" else 4000 if of_bits else usual,
                    num_particles=num_particles,
                    epochs=epochs if of_bits else None,
                    epsilon=each.spec.epsilon,
                    memory=each.spec.memory,
                )
                assert each.spec == expected


def test_one_checkpoint_of_each_environment_and_instrument_is_calibrated():
    study = read_study("paper/irrelevant-tmaze-50", scale="full")
    marked = [piece for piece in study.pieces() if piece.calibrate]
    first = {run.environment: run for run in reversed(study.runs)}
    assert [piece.run for piece in marked] == [run.id for run in reversed(first.values())]
    assert all((piece.episode, piece.controls) == (5000, True) for piece in marked)
    assert all(piece.measurement is not None and piece.measurement.estimator == "mine" for piece in marked)
    described = [piece for run in study.describe()["runs"] for piece in run["pieces"]]
    assert sum("calibrate" in piece for piece in described) == len(marked) == 2


@pytest.mark.parametrize(("name", "labels"), OF_FIVE_CELLS.items())
def test_a_study_of_five_cells_has_four_agents_of_each_in_each_environment(name, labels):
    study = read(name, scale="full")
    assert environments(study) == labels
    expected = itertools.product(labels, CELLS, range(4))
    assert [(run.environment, run.training.learner.cell.__name__, run.training.seed) for run in study.runs] == list(
        expected
    )
    hidden, whole = (
        [m for run in study.runs for m in run.measurements if m.spec.memory == memory] for memory in MEMORIES
    )
    # Each by MINE, and its sufficiency.
    assert len(hidden) * 51 == 2 * len(labels) * 20 * 51 == measured(study) - len(whole) * 51
    assert all(each.controls == (0, 2500, 5000) for each in hidden)
    assert not any(each.controls for each in whole)


def test_the_whole_memory_is_measured_where_it_is_more_than_the_hidden_state():
    for name in OF_FIVE_CELLS:
        runs = read(name, scale="full").runs
        cells = [run.training.learner.cell for run in runs for m in run.measurements if m.spec.memory == "whole"]
        assert cells == ([] if "irrelevant" in name else [LSTM] * 8)


def test_traces_are_kept_of_three_checkpoints_of_each_first_seed():
    traces = {run.training.seed: run.traces for run in read("paper/tmaze-50", scale="full").runs}
    assert traces == {0: (0, 2500, 5000), 1: (), 2: (), 3: ()}


def test_the_whole_paper_trains_the_runs_of_generalisation_but_once():
    study, general = read("paper", scale="full"), read("paper/generalisation", scale="full")
    assert len(general.runs) == 5 * 4
    assert {run.id for run in general.runs} < {run.id for run in study.runs}
    assert len({run.id for run in study.runs}) == len(study.runs) == 5 * 5 * 4 + 4 * 5 * 4
    # At ε = 0 the GRU is measured for both, once; five more ε are for generalisation alone.
    # So is the LSTM's whole memory, for the five studies of one environment.
    assert measured(study) == 2 * (180 * 51 + 5 * 4 * 5 * 51 + 5 * 4 * 51)


@pytest.mark.parametrize("variant", ["text", "code"])
@pytest.mark.parametrize("scale", ["quick", "small"])
def test_the_whole_paper_reads_in_both_variants_and_does_nothing_twice(scale, variant):
    study = read_study("paper", scale=scale, variant=variant)
    assert len(study.runs) == 45 * {"quick": 2, "small": 4}[scale]
    runs = {run.id: run for run in study.runs}
    named = {
        (id, each.spec, episode) for id, run in runs.items() for each in run.measurements for episode in each.episodes
    }
    assert len(named) == measured(study)


def test_generalisation_measures_at_zero_what_the_five_studies_measure():
    general = {run.id: run for run in read("paper/generalisation", scale="full").runs}
    alone = [run for run in read("paper/mountain-hike", scale="full").runs if run.id in general]
    assert [run.training.seed for run in alone] == [0, 1, 2, 3]
    for run in alone:
        assert run.measurements[0] == general[run.id].measurements[0]
        assert [each.spec.epsilon for each in general[run.id].measurements] == 2 * [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize("environment", ["tmaze-50", "mountain-hike", "varying-mountain-hike"])
def test_the_single_environments_of_generalisation_are_measured_as_all_of_it(environment):
    alone = read_study(str(RESULTS / f"{environment}.toml"), scale="full")
    whole = read_study("paper/generalisation", scale="full")
    label = alone.runs[0].environment
    by_paper = {measured.spec for run in whole.runs for measured in run.measurements if run.environment == label}
    assert {measured.spec for run in alone.runs for measured in run.measurements} <= by_paper
    episodes = {measured.episodes for run in alone.runs for measured in run.measurements}
    assert all(np.diff((0, *each, 5000)).max() <= 500 for each in episodes)  # enough for a verdict
    assert {run.training.learner for run in alone.runs} <= {run.training.learner for run in whole.runs}


@pytest.mark.parametrize(
    ("name", "estimators"),
    [
        ("demo", {"mine", "sufficiency"}),
        ("paper/mountain-hike", {"mine", "sufficiency"}),
        ("paper/irrelevant-tmaze-50", {"mine", "sufficiency"}),
        ("paper/tmaze-50", {"sufficiency"}),  # where MINE would need more pairs and steps than minutes allow
    ],
)
def test_what_is_quick_has_the_pairs_and_steps_it_needs(name, estimators):
    """MINE takes over a thousand steps, at the first and the last checkpoint; sufficiency is measured at all."""
    for run in read_study(name).runs:
        last = run.training.learner.num_episodes
        assert {each.spec.estimator for each in run.measurements} == estimators
        for each in run.measurements:
            is_mine = each.spec.estimator == "mine"
            assert each.episodes == ((0, last) if is_mine else tuple(range(0, last + 1, 100)))
            assert each.controls == (() if is_mine or each.spec.memory == "whole" else (last,))
            steps = (each.spec.num_epochs or 0) * (each.spec.num_samples * 4 // 5 // 1024)
            assert not is_mine or (steps > 1000 and each.spec.num_samples == 4000)


def test_variants_reach_the_environment():
    text, code = (read("paper/mountain-hike", variant=variant).runs[0].training.pomdp for variant in ("text", "code"))
    assert text == MountainHike.of_paper("text")
    assert code == MountainHike.of_paper("code")
    assert text != code
    assert read("paper/tmaze-50").runs[0].training.pomdp == TMaze(50)
