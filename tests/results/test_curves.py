"""A study's folder as curves: what may share an axis, bands by hand, and folders in every state."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from report.made_up import MAZE, as_table, diverge, fail, finish, row, stored_study, train

from beliefscope.results import read_results, read_table
from beliefscope.results.curves import (
    FULL_EPISODES,
    FULL_PAIRS,
    Curve,
    Instrument,
    Panel,
    Returns,
    band,
    counted,
    counted_episodes,
    panels,
    return_band,
)
from beliefscope.store import Damaged

ENVIRONMENT = "T-Maze, L = 3"


def only(table_rows) -> Panel:
    (panel,) = panels(as_table(table_rows))
    return panel


def curve(episodes, bits, seed=0):
    return Curve("run", seed, np.array(episodes), {"bits": np.array(bits, float)}, {})


def as_lists(found):
    return [list(part) for part in found]


@pytest.mark.parametrize(
    ("episodes", "final"),
    [(range(0, 5001, 100), 4550), (range(0, 5001, 500), 4750), ((0, 10, 20), 20), ((0, 7), 7), ((0,), math.nan)],
)
def test_the_final_value_is_the_mean_of_the_last_fifth_of_training(episodes, final):
    found = curve([*episodes], [*episodes])
    assert found.final("bits") == pytest.approx(final, nan_ok=True)
    assert found.change("bits") == pytest.approx(final, nan_ok=True)


def test_panels_never_mix_environments_parts_epsilons_memories_or_instruments():
    choices = {
        "environment": ("here", "there"),
        "part": ("relevant", "irrelevant"),
        "epsilon": (0.0, 0.2),
        "memory": ("hidden", "whole"),
        "estimator": ("mine", "trusted"),
        "epochs": (50, 200),
        "N": (2000, 10_000),
        "M": (None, 64),
    }
    every = [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]
    rows = [row(**about, bits=float(number)) for number, about in enumerate(every)]
    found = panels(as_table(rows))
    assert len(found) == 2**8
    for panel in found:
        about = every[int(panel.curves["GRU"][0].values["bits"][0])]
        named = panel.instrument._asdict() | panel._asdict()
        assert {name: named[name] for name in choices} == about
        assert [len(curves[0].episode) for curves in panel.curves.values()] == [1]


def test_cells_stand_in_the_papers_order_and_seeds_in_theirs():
    rows = [row(cell=cell, seed=seed, run=f"{cell}{seed}") for cell in ("Mine", "MGU", "LSTM") for seed in (10, 2)]
    curves = only(rows).curves
    assert list(curves) == ["LSTM", "MGU", "Mine"]
    assert [[each.run for each in curves[cell]] for cell in curves] == [
        ["LSTM2", "LSTM10"],
        ["MGU2", "MGU10"],
        ["Mine2", "Mine10"],
    ]


def test_a_curve_runs_through_training_whatever_the_order_of_the_table():
    (found,) = only([row(episode=episode, bits=episode / 100) for episode in (200, 0, 100)]).curves["GRU"]
    assert list(found.episode) == [0, 100, 200]
    assert list(found.values["bits"]) == [0, 1, 2]
    assert np.isnan(found.values["control_time"]).all()


def test_a_checkpoint_measured_with_controls_and_without_is_one_point():
    rows = [row(bits=1.0), row(bits=1.25, control_time=0.5)]
    (found,) = only(rows).curves["GRU"]
    assert [found.values[name].tolist() for name in ("bits", "control_time")] == [[1.0], [0.5]]


def test_entropy_that_is_flagged_or_unknown_is_no_number():
    rows = [
        row(episode=0, entropy=2.0, entropy_flagged=False),
        row(episode=1, entropy=9.0, entropy_flagged=True),
        row(episode=2),
    ]
    (found,) = only(rows).curves["GRU"]
    np.testing.assert_array_equal(found.values["entropy"], [2.0, math.nan, math.nan])


def test_a_band_is_mean_least_and_largest_at_the_episodes_that_all_seeds_have():
    found = band([curve([0, 100, 200, 300], [1, 2, 3, 4]), curve([100, 200, 400], [4, 8, 16])], "bits")
    assert as_lists(found) == [[100, 200], [3.0, 5.5], [2.0, 3.0], [4.0, 8.0]]


def test_a_band_leaves_out_what_is_not_finite_and_seeds_that_have_nothing():
    nan, infinite = math.nan, math.inf
    curves = [curve([0, 1, 2], [1, nan, 3]), curve([0, 1, 2], [3, 5, 5]), curve([0, 1], [nan, infinite])]
    assert as_lists(band(curves, "bits")) == [[0, 2], [2, 4], [1, 3], [3, 5]]


@pytest.mark.parametrize("curves", [[], [curve([0], [math.nan])], [curve([0], [1]), curve([1], [1])]])
def test_a_band_of_nothing_in_common_is_empty(curves):
    assert as_lists(band(curves, "bits")) == [[], [], [], []]


def measured(**by_cell: list[set[int]]) -> Panel:
    """The curves of a study at full scale with a seed for each set of checkpoints, in hundreds of episodes."""
    curves = {
        cell: tuple(
            Curve(f"{cell}{seed}", seed, 100 * np.array(sorted(each)), {"return": np.zeros(n), "bits": np.ones(n)}, {})
            for seed, (each, n) in enumerate((each, len(each)) for each in seeds)
        )
        for cell, seeds in by_cell.items()
    }
    return Panel("T-Maze", "belief", 0.0, "hidden", Instrument("mine", 200, FULL_PAIRS, None), curves)


EVERY, FIFTH = set(range(51)), set(range(0, 51, 5))


@pytest.mark.parametrize(
    ("cells", "episodes", "seeds"),
    [
        ({"GRU": 4 * [EVERY]}, EVERY, {"GRU": 4}),
        ({"GRU": 4 * [FIFTH]}, FIFTH, {"GRU": 4}),
        ({"GRU": [*4 * [EVERY], FIFTH, EVERY - {7}]}, EVERY, {"GRU": 4}),  # those that have fewer are left out
        ({"GRU": 4 * [EVERY], "BRC": 4 * [EVERY - {7}]}, EVERY - {7}, {"GRU": 4, "BRC": 4}),
        ({"GRU": [EVERY - {n} for n in range(1, 5)]}, EVERY - {1, 2, 3, 4}, {"GRU": 4}),
        ({"GRU": [EVERY - {1, 5}, *(EVERY - {n} for n in range(2, 5))]}, set(), {}),  # the first step would be too wide
        ({"GRU": [EVERY - {n} for n in range(1, 6)]}, EVERY - {2, 3, 4, 5}, {"GRU": 4}),  # but not without one of five
        ({"GRU": [*(EVERY - {n} for n in (3, 8, 13, 18)), FIFTH]}, EVERY - {3, 8, 13, 18}, {"GRU": 4}),
        ({"GRU": [*(EVERY - {n} for n in (3, 8)), *4 * [FIFTH | {3}], *2 * [EVERY]]}, EVERY - {3, 8}, {"GRU": 4}),
        (
            {"GRU": [*4 * [EVERY - {7}], {0, 3, 8, 13, 18, *range(23, 51, 5), 50}], "BRC": 5 * [EVERY - {9}]},
            EVERY - {7, 9},
            {"GRU": 4, "BRC": 5},
        ),
        ({"GRU": 4 * [EVERY], "BRC": 3 * [FIFTH]}, EVERY, {"GRU": 4}),  # what has no four seeds is not waited for
        ({"GRU": 3 * [EVERY]}, set(), {}),
        ({"GRU": 4 * [EVERY - {50}]}, set(), {}),
        ({"GRU": 4 * [EVERY - {0}]}, set(), {}),
        ({"GRU": 4 * [{0, 50}]}, set(), {}),
        ({"GRU": 4 * [set()]}, set(), {}),
    ],
)
def test_all_cells_of_a_panel_are_counted_at_the_most_checkpoints_that_four_seeds_of_each_have(cells, episodes, seeds):
    panel = measured(**cells)
    assert counted_episodes(panel) == tuple(100 * each for each in sorted(episodes))
    for cell, curves in cells.items():
        found, enough = counted(panel, cell)
        assert (enough, len(found)) == (cell in seeds, seeds.get(cell, len(curves)))
        if enough:
            assert all(tuple(each.episode) == counted_episodes(panel) for each in found)
            assert all(len(each.values["bits"]) == len(episodes) for each in found)


def test_at_fewer_pairs_than_the_full_scale_no_number_of_checkpoints_suffices():
    panel = measured(GRU=4 * [EVERY])
    assert counted(panel, "GRU")[1]
    assert not counted(panel._replace(instrument=panel.instrument._replace(N=FULL_PAIRS // 2)), "GRU")[1]
    assert FULL_EPISODES[-1] == 100 * max(EVERY)


def test_the_band_of_returns_is_over_seeds_too():
    seeds = [Returns(str(seed), seed, np.array([0, 10]), np.array([seed, 3.0 * seed])) for seed in (1, 2, 3)]
    assert as_lists(return_band(seeds)) == [[0, 10], [2, 6], [1, 3], [3, 9]]


def test_an_instrument_says_how_bits_were_measured():
    assert str(Instrument("mine", 200, 10_000, None)) == "MINE, 200 epochs, N = 10,000"
    assert str(Instrument("trusted", None, 4000, 1000)) == "trusted, N = 4,000, M = 1,000"


def test_by_default_the_panels_of_an_environment_are_the_greediest_ones_of_the_belief(tmp_path):
    rows = [row(epsilon=epsilon, part=part) for epsilon in (0.2, 0.5) for part in ("relevant", "irrelevant")]
    rows += [row(environment="other"), row(memory="whole", part="relevant", epsilon=0.2)]
    results = dataclasses.replace(read_results([stored_study(tmp_path).path]), panels=panels(as_table(rows)))
    (found,) = results.panels_of(MAZE)
    assert (found.part, found.epsilon, found.memory) == ("relevant", 0.2, "hidden")
    assert [panel.part for panel in results.panels_of(MAZE, part="irrelevant", epsilon=0.5)] == ["irrelevant"]
    assert [panel.memory for panel in results.panels_of(MAZE, memory="whole")] == ["whole"]
    assert results.panels_of(MAZE, epsilon=0.3) == []


def test_a_folder_of_which_nothing_is_done_has_states_and_nothing_else(tmp_path):
    stored = stored_study(tmp_path)
    results = read_results([stored.path])
    assert set(results.states.values()) == {"missing"}
    assert len(results.states) == len(stored.pieces)
    assert (results.panels, results.returns, results.failures, results.calls) == ((), {}, [], [])
    assert results.environments == [ENVIRONMENT]
    assert results.cells_of(ENVIRONMENT) == ["GRU", "BRC"]
    assert results.optimum == {ENVIRONMENT: pytest.approx(4 * 0.98**3)}


def test_a_finished_folder_has_the_curves_of_its_records(tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    results = read_results([stored.path])
    assert set(results.states.values()) == {"done"}
    (panel,) = results.panels
    assert panel[:5] == (ENVIRONMENT, "belief", 0.0, "hidden", Instrument("mine", 2, 4000, None))
    for cell, seed in itertools.product(("GRU", "BRC"), (0, 1)):
        found, evaluations = panel.curves[cell][seed], results.returns[ENVIRONMENT, cell][seed]
        assert (found.seed, evaluations.seed) == (seed, seed)
        assert list(found.episode) == list(evaluations.episode) == [0, 10, 20]
        np.testing.assert_allclose(found.values["bits"], [0.1 * seed, 0.5 + 0.1 * seed, 1 + 0.1 * seed])
        np.testing.assert_allclose(found.values["return"], [seed, 1 + seed, 2 + seed])
        np.testing.assert_array_equal(found.values["return"], evaluations.values)
    assert results.specs[stored.runs[0].id]["learner"]["hidden_size"] == 8


def test_of_a_run_that_is_not_trained_to_its_end_there_is_nothing(tmp_path):
    stored = stored_study(tmp_path)
    first, second, third, _ = stored.runs
    finish(stored, first)
    train(stored, second)
    train(stored, third, finished=False)
    results = read_results([stored.path])
    assert [(cell, each.run) for (_, cell), curves in results.returns.items() for each in curves] == [
        (first.cell, first.id),
        (second.cell, second.id),
    ]
    assert [each.run for curves in results.panels[0].curves.values() for each in curves] == [first.id]
    assert results.states[second.pieces[0].name] == "done"
    assert {results.states[piece.name] for piece in second.pieces[1:] + third.pieces} == {"missing"}


def test_what_failed_or_diverged_is_told_with_its_reason(tmp_path):
    stored = stored_study(tmp_path)
    first, second = stored.runs[:2]
    train(stored, first)
    fail(stored, first.pieces[1], "too few pairs")
    diverge(stored, second, "the loss is not finite")
    results = read_results([stored.path])
    assert results.failures == [
        (first.pieces[1].title, "too few pairs"),
        (second.pieces[0].label, "the loss is not finite"),
    ]
    assert [results.states[piece.name] for piece in (first.pieces[1], *second.pieces[:2])] == [
        "failed",
        "diverged",
        "left out",
    ]


@pytest.mark.parametrize("name", ["metrics.jsonl", "trained.json", "spec.json", "measure/*.json"])
def test_a_record_that_was_altered_is_not_believed(tmp_path, name):
    stored = stored_study(tmp_path)
    finish(stored, stored.runs[0])
    file = next((stored.path / "runs" / stored.runs[0].id).glob(name))
    file.write_bytes(file.read_bytes().replace(b"0", b"7", 1))
    results = read_results([stored.path])
    assert [each.path for each in results.damaged] == [file]
    assert len(results.table) == (0 if name != "measure/*.json" else 2)
    with pytest.raises(Damaged, match=file.name):
        read_table([stored.path])


def test_a_description_that_is_no_json_is_damage_too(tmp_path):
    stored = stored_study(tmp_path)
    file = stored.path / "runs" / stored.runs[0].id / "spec.json"
    file.write_text("{")
    assert [(each.path, each.why) for each in read_results([stored.path]).damaged] == [(file, "it is not JSON")]
