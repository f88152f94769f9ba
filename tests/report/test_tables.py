"""The tables of a report against scipy and by hand."""

import dataclasses
import math

import numpy as np
import pytest
from report.made_up import HIKE, LEARNER, MAZE, as_table, diverge, fail, finish, made_up, row, stored_study, train
from scipy import stats

from beliefscope.report.page import hyperparameters, inventory
from beliefscope.results import read_results
from beliefscope.results.correlations import points
from beliefscope.results.curves import panels

RNG = np.random.default_rng(0)


def drawn(cells=("GRU", "NBRC"), seeds=3, checkpoints=6):
    """Rows whose returns and bits both depend on the entropy, and arrays of (return, bits, entropy) by cell."""
    rows, known = [], {}
    for cell in cells:
        for seed in range(seeds):
            entropy = RNG.uniform(0, 3, checkpoints)
            returns, bits = (entropy + RNG.normal(size=checkpoints) for _ in range(2))
            known.setdefault(cell, []).append(np.array([returns, bits, entropy]))
            rows += [
                row(cell=cell, seed=seed, run=f"{cell}{seed}", episode=10 * place, bits=float(bits[place]))
                | {"return": float(returns[place]), "entropy": float(entropy[place]), "entropy_flagged": False}
                for place in range(checkpoints)
            ]
    return rows, {cell: np.concatenate(each, axis=1) for cell, each in known.items()}


def results_of(rows):
    return dataclasses.replace(
        made_up((MAZE,), cells=("GRU", "NBRC"), seeds=3, checkpoints=1), panels=panels(as_table(rows))
    )


@pytest.fixture(scope="module")
def known():
    rows, arrays = drawn()
    return results_of(rows).correlations, {"all cells": np.concatenate(list(arrays.values()), axis=1), **arrays}


def test_there_is_a_row_for_all_cells_and_one_for_each(known):
    rows, _ = known
    assert [each.cell for each in rows] == ["all cells", "GRU", "nBRC"]
    assert {(each.environment, each.instrument) for each in rows} == {(MAZE, "MINE, 200 epochs, N = 20,000")}
    assert [(each.pearson.num_runs, each.pearson.num_points) for each in rows] == [(6, 36), (3, 18), (3, 18)]


def test_the_coefficients_are_scipys(known):
    for found, (returns, bits, _) in zip(known[0], known[1].values(), strict=True):
        assert found.pearson.value == pytest.approx(stats.pearsonr(returns, bits).statistic)
        assert found.spearman.value == pytest.approx(stats.spearmanr(returns, bits).statistic)
        assert found.pearson.low < found.pearson.value < found.pearson.high


def test_given_the_entropy_it_is_the_correlation_of_residuals(known):
    for found, (returns, bits, entropy) in zip(known[0], known[1].values(), strict=True):
        r, s = (values - np.polyval(np.polyfit(entropy, values, 1), entropy) for values in (returns, bits))
        assert found.partial.value == pytest.approx(stats.pearsonr(r, s).statistic)
        a, b, c = np.corrcoef([returns, bits, entropy])[[0, 0, 1], [1, 2, 2]]
        assert found.partial.value == pytest.approx((a - b * c) / math.sqrt((1 - b**2) * (1 - c**2)))


def test_the_papers_numbers_stand_beside(known):
    assert [each.pearson_printed for each in known[0]] == [0.8233, 0.8500, 0.9314]
    assert [each.spearman_printed for each in known[0]] == [0.6419, 0.5963, 0.4009]


def test_what_the_paper_does_not_have_has_no_printed_number():
    rows, _ = drawn(cells=("GRU",))
    results = made_up(("elsewhere",), cells=("GRU",), seeds=3, checkpoints=1)
    elsewhere = panels(as_table([each | {"environment": "elsewhere"} for each in rows]))
    assert {each.pearson_printed for each in dataclasses.replace(results, panels=elsewhere).correlations} == {None}
    odd = panels(as_table([each | {"cell": "Mine"} for each in rows]))
    found = dataclasses.replace(made_up((MAZE,), cells=("Mine",), checkpoints=1), panels=odd).correlations
    assert [each.spearman_printed for each in found] == [0.6419, None]


def test_an_entropy_that_is_unknown_at_one_point_leaves_the_partial_correlation_out():
    rows, _ = drawn(cells=("GRU",))
    rows[3] |= {"entropy": None, "entropy_flagged": None}
    found = results_of(rows).correlations[0]
    assert math.isnan(found.partial.value)
    assert math.isfinite(found.pearson.value)


def test_points_without_return_or_bits_are_left_out():
    rows, arrays = drawn(cells=("GRU",), seeds=1)
    rows[0]["bits"] = None
    rows[4]["return"] = math.nan
    found, entropy = points(panels(as_table(rows))[0].curves["GRU"])
    kept = arrays["GRU"][:, [1, 2, 3, 5]]
    np.testing.assert_array_equal([found.returns, found.bits, entropy], kept)
    assert list(found.checkpoint) == [10, 20, 30, 50]


def test_two_runs_have_a_coefficient_but_no_interval_and_one_point_has_neither():
    rows, _ = drawn(cells=("GRU",), seeds=2)
    found = results_of(rows).correlations[0].pearson
    assert math.isfinite(found.value)
    assert math.isnan(found.low)
    assert math.isnan(results_of(rows[:1]).correlations[0].pearson.value)


def test_another_instrument_has_rows_of_its_own():
    rows, _ = drawn(cells=("GRU",))
    others = [each | {"estimator": "trusted", "epochs": None, "bits": -each["bits"]} for each in rows]
    mine, trusted = results_of(rows + others).correlations[::2]
    assert trusted.instrument == "trusted, N = 20,000"
    assert trusted.pearson.value == pytest.approx(-mine.pearson.value)


def test_histories_of_random_policies_have_no_rows():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=4, epsilons=(0.0, 0.5))
    assert [each.pearson.num_points for each in results.correlations] == [4, 4]


def test_nothing_measured_has_no_rows():
    assert dataclasses.replace(made_up((MAZE,), checkpoints=1), panels=()).correlations == []


def test_the_papers_hyperparameters_do_not_differ_from_its_own():
    found = hyperparameters(made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=1))
    assert not any(each.differs for each in found)
    assert {each.symbol: each.values for each in found}["α"] == "0.001"


def test_hyperparameters_that_differ_show_all_their_values():
    results = made_up((MAZE, HIKE), cells=("GRU",), seeds=1, checkpoints=1)
    one, other = results.specs
    changes = {one: {"batch_size": 8}, other: {"hidden_size": 8}}
    specs = {run: spec | {"learner": LEARNER | changes[run]} for run, spec in results.specs.items()}
    found = {each.meaning: each for each in hyperparameters(dataclasses.replace(results, specs=specs))}
    for meaning in ("batch size", "size of the hidden state"):
        it = found[meaning]
        assert (it.of, it.values, it.printed, it.differs) == ("DRQN", "8, 32", "32", True)
    assert [each.meaning for each in found.values() if each.differs] == ["size of the hidden state", "batch size"]
    assert hyperparameters(dataclasses.replace(results, specs={}, panels=())) == []


def test_the_papers_estimator_and_the_hikes_noise_stand_beside_the_learner():
    rows = [row(environment=HIKE, N=2000, epochs=50), row(environment=HIKE, estimator="trusted", epochs=None, N=4000)]
    results = dataclasses.replace(
        made_up((HIKE,), cells=("GRU",), seeds=1, checkpoints=1), panels=panels(as_table(rows))
    )
    noise = {"observation_std": 0.1, "transition_std": 0.2}
    specs = {run: spec | {"pomdp": spec["pomdp"] | noise} for run, spec in results.specs.items()}
    found = hyperparameters(dataclasses.replace(results, specs=specs))
    assert [(each.of, each.symbol, each.values, each.differs) for each in found if each.of != "DRQN"] == [
        ("MINE", "2N", "2000", True),
        ("MINE", "E", "50", True),
        ("Mountain Hike", "σ_O", "0.1", False),
        ("Mountain Hike", "σ_T", "0.2", True),
    ]


def test_the_inventory_says_how_each_run_stands(tmp_path):
    stored = stored_study(tmp_path)
    first, second, third, fourth = stored.runs
    finish(stored, first)
    train(stored, second)
    fail(stored, second.pieces[1], "no memory left")
    diverge(stored, third, "not finite")
    rows = inventory(read_results([stored.path]))
    assert [each.run for each in rows] == [run.id for run in stored.runs]
    assert [each.state for each in rows] == ["done", "failed", "diverged", "missing"]
    number = len(first.pieces)
    assert [(each.done, each.pieces) for each in rows] == [
        (number, number),
        (1, len(second.pieces)),
        (0, len(third.pieces)),
        (0, len(fourth.pieces)),
    ]
    assert [each.final_return for each in rows] == [2.0, pytest.approx(2.0 + second.seed), None, None]
    assert [each.final_bits for each in rows] == [pytest.approx(1.0), None, None, None]


def test_the_inventory_has_the_bits_of_an_instrument_that_gave_a_number():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=1)
    about = {"run": results.runs[0].id, "episode": 0}
    rows = [row(**about, estimator="atoms", epochs=None, bits=math.nan), row(**about, bits=3.2)]
    (found,) = inventory(dataclasses.replace(results, panels=panels(as_table(rows))))
    assert found.final_bits == pytest.approx(3.2)


def test_a_run_of_which_nothing_is_asked_is_missing():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=1)
    (found,) = inventory(dataclasses.replace(results, runs=[results.runs[0]._replace(pieces=[])]))
    assert (found.state, found.done, found.pieces) == ("missing", 0, 0)
