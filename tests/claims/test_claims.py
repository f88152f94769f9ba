"""Every claim on made-up tables: where it must hold, where it must fail, and where there is not enough to say."""

import math

import numpy as np
import pytest
from claims.tables import (
    BEST,
    FULL,
    OPTIMUM,
    QUICK,
    SKILL,
    claim_6,
    curves,
    falling,
    generalising,
    heavy_tailed,
    hike,
    irrelevant,
    maze_with,
    opposed,
    rise,
    rows_of,
    table,
    varying,
    verdict,
    without,
)

from beliefscope import TMaze, maximal_return, read_study
from beliefscope.claims import as_text, ledger
from beliefscope.claims.evidence import Evidence
from beliefscope.claims.several_environments import EPSILONS
from beliefscope.paper import CELLS, ENVIRONMENTS, HIKE, LONG, MAZE, STOCHASTIC
from beliefscope.results.curves import panels
from beliefscope.results.table import make_table

HOLDING = {
    1: lambda **others: curves(ENVIRONMENTS, **others),
    2: lambda **others: curves(ENVIRONMENTS, **others),
    3: lambda **others: curves([MAZE], **others),
    4: lambda **others: maze_with((5.5, 5.2, 4.6), **others),
    5: lambda **others: maze_with((6.5, 7.0), environments=(MAZE, LONG), **others),
    6: lambda **others: claim_6(**others),
    7: lambda **others: curves([STOCHASTIC], **others),
    8: lambda **others: hike(**others),
    9: lambda **others: varying(**others),
    10: lambda **others: irrelevant(**others),
    11: lambda **others: generalising(**others),
}


def changed(base, cell, size, **curve):
    """Alter one environment, cell and d of the tenth claim."""
    return lambda *which: curve if which == (base, cell, size) else {}


FAILING = {
    "1, one cell forgets": (1, "LSTM: ΔI", lambda: [*curves(ENVIRONMENTS[1:]), *falling(MAZE)]),
    "1, one return does not rise": (
        1,
        "GRU: ΔJ",
        lambda: [*without(curves(ENVIRONMENTS), environment=MAZE, cell="GRU"), *rows_of(MAZE, "GRU", 0.2, rise(1, 3))],
    ),
    "2, they are opposed in one environment": (2, "Spearman", lambda: [*curves(ENVIRONMENTS[1:]), *falling(MAZE)]),
    "3, the LSTM is the best": (3, "final J, NBRC − LSTM", lambda: curves([MAZE], skill={**SKILL, "LSTM": 1.1})),
    "3, the GRU has less than the LSTM": (
        3,
        "lowest mean final I",
        lambda: curves([MAZE], skill={**SKILL, "GRU": 0.3}),
    ),
    "3, more return with less information": (3, "rank correlation", lambda: opposed(MAZE)),
    "4, four bits are enough": (4, "T-Maze, L = 50", lambda: maze_with((4.0, 5.2, 4.6))),
    "4, four bits are enough at random": (4, "Stochastic", lambda: maze_with((5.5, 5.2, 4.0))),
    "5, too little": (5, "L = 50", lambda: maze_with((6.0, 7.0), environments=(MAZE, LONG))),
    "5, more than there is": (5, "L = 100", lambda: maze_with((6.5, 8.5), environments=(MAZE, LONG))),
    "6, the GRU is the best": (6, "NBRC − GRU", lambda: claim_6(gru=1.1)),
    "6, the MGU stays behind": (6, "I from episode 2000 on", lambda: claim_6(mgu=0.7)),
    "6, more return with less information": (6, "rank correlation", lambda: opposed(LONG)),
    "7, the LSTM is the best": (7, "final I, BRC − LSTM", lambda: curves([STOCHASTIC], skill={**SKILL, "LSTM": 1.1})),
    "8, no gap": (
        8,
        "Ashman",
        lambda: [row for cell in CELLS for row in rows_of(HIKE, cell, heavy_tailed, rise(1, 4, steps=50))],
    ),
    "8, the best are elsewhere": (8, "mean J of the upper", lambda: hike(high=-5.0)),
    "8, less information above": (8, "upper − lower", lambda: hike(rich=1.0)),
    "9, the LSTM is good": (9, "final I, MGU − LSTM", lambda: varying(better=("LSTM", "GRU", "NBRC", "MGU"))),
    "9, no sharp rise": (9, "4.25–4.75", lambda: varying(curve=rise(-20.0, -100.0))),
    "10, relevant information falls": (
        10,
        "GRU: Δrelevant",
        lambda: irrelevant(change=changed(HIKE, "GRU", 1, relevant=rise(3, 2))),
    ),
    "10, irrelevant information rises": (
        10,
        "MGU: Δirrelevant",
        lambda: irrelevant(change=changed(MAZE, "MGU", 1, irrelevant=rise(4, 5))),
    ),
    "10, BRC's relevant information rises": (
        10,
        "BRC: Δrelevant",
        lambda: irrelevant(change=changed(MAZE, "BRC", 4, relevant=rise(1, 3))),
    ),
    "10, BRC's irrelevant information falls": (
        10,
        "BRC: Δirrelevant",
        lambda: irrelevant(change=changed(MAZE, "BRC", 1, irrelevant=rise(4, 3))),
    ),
    "10, the LSTM does not fail": (
        10,
        "0.9 J*",
        lambda: irrelevant(change=changed(MAZE, "LSTM", 4, returns=rise(0, BEST[MAZE]))),
    ),
    "10, the LSTM's information is not the lowest": (
        10,
        "lowest mean",
        lambda: irrelevant(change=changed(MAZE, "LSTM", 4, relevant=rise(1, 2.5))),
    ),
    "10, irrelevant below relevant": (
        10,
        "least irrelevant − relevant",
        lambda: irrelevant(change=changed(MAZE, "GRU", 4, relevant=rise(1, 17))),
    ),
    "10, d = 4 is as fast": (
        10,
        "episode of the optimum",
        lambda: irrelevant(change=changed(HIKE, "MGU", 4, returns=rise(-60, -20, steps=10))),
    ),
    "10, d = 4 has no more irrelevant information": (
        10,
        "final irrelevant I",
        lambda: irrelevant(change=changed(HIKE, "NBRC", 4, irrelevant=rise(4, 3))),
    ),
    "10, after the optimum nothing goes on": (
        10,
        "slope of relevant",
        lambda: irrelevant(change=changed(MAZE, "GRU", 1, relevant=lambda e: np.where(e < 1000, 1.0 + e / 500, 3.0))),
    ),
    "11, information falls": (11, "ε = 1: ΔI", lambda: generalising(end=0.5)),
    "11, more with a higher ε": (11, "Kendall", lambda: generalising(sign=1)),
}


@pytest.mark.parametrize("number", HOLDING)
def test_a_claim_holds_where_all_is_as_it_says(number):
    found, all_claims = verdict(number, HOLDING[number]()), ledger(table(HOLDING[number]()), optimum=OPTIMUM)
    assert [each.number for each in all_claims] == list(range(1, 12))
    assert all_claims[number - 1] == found
    assert found.verdict == "holds", [each for each in found.numbers.items() if "holds" not in str(each[1])]


@pytest.mark.parametrize("name", FAILING)
def test_a_claim_fails_where_one_part_is_otherwise(name):
    number, part, rows = FAILING[name]
    found = verdict(number, rows())
    assert found.verdict == "does not hold"
    assert [key for key, value in found.numbers.items() if part in key and str(value).endswith("does not hold")]


LESS = {
    "three seeds": {"seeds": 3},
    "quick": {"episodes": QUICK, "N": 2000, "seeds": 2},
    "few pairs": {"N": 10_000},
    "every 1000 episodes": {"episodes": FULL[::10]},
    "unfinished": {"episodes": FULL[:-1]},
}


@pytest.mark.parametrize(
    ("number", "less"),
    [(number, less) for number in HOLDING for less in LESS if number in (3, 8) or less in ("three seeds", "quick")],
)
def test_less_than_the_full_scale_gives_numbers_and_no_verdict(number, less):
    found = verdict(number, HOLDING[number](**LESS[less]))
    assert found.verdict == "not enough data"
    assert any(character.isdigit() for value in found.numbers.values() for character in str(value))


def test_an_empty_table_is_not_enough_for_any_claim():
    found = ledger(panels(make_table([])))
    assert len(found) == 11
    assert {each.verdict for each in found} == {"not enough data"}
    assert "not measured" in as_text(found)


@pytest.mark.parametrize("number", [3, 6, 7, 9])
def test_one_missing_cell_leaves_the_verdict_open(number):
    assert verdict(number, without(HOLDING[number](), cell="MGU")).verdict == "not enough data"


def test_a_part_that_fails_is_enough_to_fail_though_others_are_missing():
    rows = falling(MAZE)
    assert verdict(1, rows).verdict == "does not hold"


@pytest.mark.parametrize("nothing", [math.nan, None])
@pytest.mark.parametrize("column", ["bits", "return", "entropy"])
def test_what_is_not_a_number_is_left_out(nothing, column):
    rows = [{**row, column: nothing} for row in HOLDING[1]()]
    assert verdict(1, rows).verdict == ("holds" if column == "entropy" else "not enough data")


def test_a_run_with_a_hole_is_left_out_and_four_others_are_enough():
    rows = curves([MAZE], seeds=5)
    holed = [{**row, "bits": math.nan} if row["seed"] == 4 and row["episode"] == 700 else row for row in rows]
    found = verdict(3, holed)
    assert found.numbers == verdict(3, [row for row in rows if row["seed"] < 4]).numbers
    assert "5 curves lack checkpoints" in found.remark
    without_it = verdict(3, [row for row in holed if row["seed"] > 0])  # no four seeds have episode 700
    assert (without_it.verdict, f"{MAZE}: 50 of 51 checkpoints." in without_it.remark) == ("holds", True)


def test_a_fit_that_failed_at_the_start_leaves_the_episode_of_the_optimum_known():
    failed = {"warnings": "failed fit: 5.00 bits on held-out pairs, -4.00 on fresh ones"}
    first = {"environment": f"{HIKE} + 4 irrelevant", "cell": "GRU", "seed": 2, "episode": 0, "part": "irrelevant"}
    rows = [{**row, **failed} if first.items() <= row.items() else row for row in HOLDING[10]()]
    assert not any("optimum" in name for name in verdict(10, rows).without_failed_fits)


def test_a_fit_that_failed_leaves_every_return_known():
    failed = {"warnings": "failed fit: 5.00 bits on held-out pairs, -4.00 on fresh ones"}
    rows = [{**row, **failed} if row["seed"] == 2 and row["episode"] > 1000 else row for row in HOLDING[10]()]
    without = verdict(10, rows).without_failed_fits
    assert without
    assert not any(name.endswith("optimum") or "final J" in name for name in without if "slope" not in name), [*without]


def test_the_optimum_is_not_later_because_it_was_looked_for_less_often():
    fine, coarse = (irrelevant(episodes=episodes) for episodes in (FULL, FULL[::5]))
    rows = [row for row in fine if "+ 1" in row["environment"]]
    rows += [
        {**row, "return": same["return"]}
        for row, same in zip(
            (row for row in coarse if "+ 4" in row["environment"]),
            (row for row in coarse if "+ 1" in row["environment"]),
            strict=True,
        )
    ]
    found = verdict(10, rows)
    later = {name: value for name, value in found.numbers.items() if "episode of the optimum" in name}
    assert all(str(value).startswith("0 [0, 0]") or "[-" in str(value) for value in later.values()), later
    assert f"{MAZE}, every d: 11 of 51 checkpoints." in found.remark


def test_a_checkpoint_every_500_episodes_is_enough_and_is_said_of_the_claims_on_that_environment():
    found = verdict(3, [*HOLDING[3](episodes=FULL[::5]), *HOLDING[7]()])
    assert found.verdict == "holds"
    assert f"{MAZE}: 11 of 51 checkpoints." in found.remark
    assert "checkpoints" not in verdict(7, [*HOLDING[3](episodes=FULL[::5]), *HOLDING[7]()]).remark


def test_a_part_that_failed_fits_decide_is_shown_with_and_without_them():
    rows = maze_with((5.5, 5.2, 4.6))
    assert verdict(4, rows).verdict == "holds"
    failed = {"bits": -4.0, "warnings": "failed fit: 5.00 bits on held-out pairs, -4.00 on fresh ones"}
    last = {"environment": LONG, "cell": "GRU", "seed": 2, "episode": 5000}
    mixed = [{**row, **failed} if last.items() <= row.items() else row for row in rows]
    found = verdict(4, mixed)
    assert found.verdict == "does not hold"
    assert found.remark.endswith("Without the checkpoints whose fit failed: holds.")
    part = f"{LONG}: least I of optimal points"
    assert "1 of " in str(found.numbers[part])
    assert [*found.without_failed_fits] == [part]  # what failed fits do not decide is shown once
    assert str(found.without_failed_fits[part]).endswith("0 of 519 points under 4.75: holds")
    assert f"   - without failed fits, {part}: " in as_text([found])
    assert not verdict(4, rows).without_failed_fits


def test_an_optimum_that_is_no_return_is_refused():
    with pytest.raises(ValueError, match="finite return"):
        ledger([], optimum={STOCHASTIC: math.nan})


def test_nineteen_optimal_points_are_not_enough():
    rows = maze_with((5.5, 5.2, 4.6))
    few = [
        {**row, "return": 0.0} if row["environment"] == MAZE and row["seed"] + row["episode"] != 5000 else row
        for row in rows
    ]
    assert verdict(4, few).verdict == "not enough data"


def test_estimators_are_not_mixed_and_the_remark_says_so():
    rows = curves([MAZE])
    others = [{**row, "estimator": "mine-authors", "epochs": 100, "bits": 9.0} for row in rows if row["seed"] < 2]
    trusted = [{**row, "estimator": "trusted", "bits": 9.0} for row in 2 * rows]
    alone, mixed = verdict(3, rows), verdict(3, others + trusted + rows)
    assert mixed.numbers == alone.numbers
    assert "several estimators" in mixed.remark
    assert "'mine-authors', 100 epochs" in mixed.remark
    assert "several" not in alone.remark
    assert ledger(table(trusted))[2].verdict == "not enough data"


def test_numbers_of_pairs_and_of_particles_are_not_mixed():
    rows = hike()
    smaller = [{**row, "N": 2000, "bits": 9.0} for row in rows if row["seed"] < 2]
    coarse = [{**row, "M": 64, "bits": 9.0} for row in rows if row["seed"] < 2]
    found = verdict(8, smaller + coarse + rows)
    assert found.numbers == verdict(8, rows).numbers
    assert "N = 2000" in found.remark
    assert "number of particles M" in found.remark


def test_seeds_that_were_measured_under_every_epsilon_are_counted_at_their_checkpoints():
    alone = without(generalising(), environment=MAZE)
    few = [
        {**row, "seed": row["seed"] + 4, "run": f"{row['run']} later"}
        for row in generalising(episodes=FULL[::5])
        if row["environment"] == MAZE
    ]
    whole = rows_of(MAZE, "GRU", rise(0, 1), rise(3.0, 1.0))  # under ε = 0 alone
    found = verdict(11, [*alone, *few, *whole])
    assert (found.verdict, found.numbers) == ("holds", verdict(11, [*alone, *few]).numbers)
    assert f"{MAZE}, every ε: 11 of 51 checkpoints." in found.remark
    assert "does not hold" in str(verdict(11, [*alone, *whole]).numbers[f"{MAZE}, ε = 0: ΔI"])


def test_other_epsilons_enter_only_the_last_claim_and_the_extras_of_the_first():
    rows = curves([MAZE], entropy=5.0)
    more = [{**row, "epsilon": 1.0, "bits": row["bits"] / 2} for row in rows]
    plain, with_more = verdict(1, rows), verdict(1, rows + more)
    added = set(with_more.numbers) - set(plain.numbers)
    assert added == {f"{MAZE}, {cell}: ΔI at ε = 1" for cell in CELLS}
    fraction = float(str(plain.numbers[f"{MAZE}, NBRC: Δ(I/H(b))"]).split(" [")[0])
    assert fraction == pytest.approx((5.5 - 1) / 5, abs=0.01)
    flagged = verdict(1, curves([MAZE], entropy_flagged=True))
    assert f"{MAZE}, NBRC: Δ(I/H(b))" not in flagged.numbers
    assert verdict(3, rows + more).numbers == verdict(3, rows).numbers


def test_the_second_claim_says_whether_the_papers_value_lies_inside():
    numbers = verdict(2, curves(ENVIRONMENTS)).numbers
    assert "(the paper's 0.8233 is outside)" in str(numbers[f"{MAZE}: Pearson"])
    noisy = verdict(2, curves([MAZE], noise=0.5)).numbers
    assert "the paper's 0.8233 is" in str(noisy[f"{MAZE}: Pearson"])
    assert f"{MAZE}: trend-free Pearson" in noisy


def test_the_ninth_claims_last_clause_is_recorded_as_contradicted():
    assert "contradicted by the paper's own table" in verdict(9, varying()).remark


def test_a_maze_that_never_becomes_optimal_has_no_slope():
    change = changed(MAZE, "GRU", 1, returns=rise(0, 0.7))
    found = verdict(10, irrelevant(change=change))
    assert found.numbers[f"{MAZE} + 1 irrelevant, GRU: slope of relevant I after the optimum"] == "not measured"


def test_start_and_final_are_the_first_checkpoint_and_the_mean_of_the_last_ten():
    rows = rows_of(MAZE, "GRU", lambda e: e / 100, lambda e: 5 + e / 1000, noise=0.0)
    series = Evidence(table(rows)).series(MAZE, "GRU")
    assert series.enough
    assert series.starts("return") == [0.0] * 4
    assert series.finals("return") == pytest.approx([45.5] * 4)
    assert series.changes("bits") == pytest.approx([4.55] * 4)


def test_the_optimum_of_the_stochastic_maze_is_that_of_dynamic_programming():
    best = maximal_return(TMaze(50, 0.3))
    assert best is not None
    assert Evidence([]).optimum[STOCHASTIC] == pytest.approx(best.value, rel=1e-6)


def test_the_text_has_every_claim_with_its_rule_verdict_and_numbers():
    text = as_text(ledger(table(curves([MAZE]))))
    assert text.count("Rule: ") == 11
    assert text.count("=> holds.") == 1  # the third
    assert text.count("=> does not hold.") == 1  # the fifth: 5.5 bits at most
    assert text.count("=> not enough data.") == 9
    assert f"- {MAZE}: final J, NBRC − LSTM: " in text
    assert all(len(line) <= 110 or line.startswith("   - ") for line in text.splitlines())


def test_cells_and_environments_are_called_as_the_studies_of_the_paper_call_them():
    """A made-up table cannot tell: a name that no study writes would be missing in every real one."""
    runs = read_study("paper").runs
    assert set(CELLS) == {run.training.learner.cell.__name__ for run in runs}
    sizes = {f"{base} + {size} irrelevant" for base in (MAZE, HIKE) for size in (1, 4)}
    assert {*ENVIRONMENTS, *sizes} == {run.environment for run in runs}
    measured = {each.spec.epsilon for run in runs for each in run.measurements}
    assert measured == set(EPSILONS)
