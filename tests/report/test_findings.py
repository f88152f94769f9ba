"""The sentences that open the page: made from the numbers, and no more certain than these."""

import dataclasses

import numpy as np
import pytest
from report.made_up import HIKE, MAZE, as_table, made_up, row

from beliefscope.report.findings import doubts, findings
from beliefscope.report.page import page
from beliefscope.results import Results
from beliefscope.results.curves import bound_panels, panels


def shares(cell, seed, *, before, after, reach=0.02, **last):
    """Sufficiency of one run, untrained and after 100 episodes."""
    about = {"cell": cell, "seed": seed, "run": f"{cell} {seed}", "estimator": "sufficiency", "epochs": None}
    first = row(**about, episode=0, sufficiency_last=before)
    ends = {"sufficiency_last_low": after - reach, "sufficiency_last_high": after + reach}
    return [first, row(**about, episode=100, sufficiency_last=after, **ends, **last)]


def bits(cell, seed, episode, value, **given):
    return row(
        cell=cell, seed=seed, run=f"{cell} {seed}", episode=episode, bits=value, **{"standard_error": 0.1} | given
    )


def results_of(rows, environment=MAZE, cells=("GRU",)) -> Results:
    table = as_table([each | {"environment": environment} for each in rows])
    of_shares, of_bits = panels(table, of_shares=True), panels(table)
    some = made_up((environment,), cells=cells, seeds=1, checkpoints=2)
    return dataclasses.replace(
        some, table=table, shares=of_shares, panels=(*bound_panels(of_shares, of_bits), *of_bits)
    )


def said(results):
    (found,) = findings(results)
    return found.sentences


def test_one_cell_is_named_with_its_interval_and_the_untrained_one():
    (sentence,) = said(results_of(shares("GRU", 0, before=0.41, after=0.93)))
    assert sentence == (
        "Given the time, the memory of the GRU holds 93 % [91, 95] of what the belief knows about the state; "
        "untrained it holds 41 %."
    )


def test_several_cells_stand_side_by_side():
    rows = [*shares("GRU", 0, before=0.41, after=0.93), *shares("NBRC", 0, before=0.98, after=0.97)]
    (sentence,) = said(results_of(rows, cells=("GRU", "NBRC")))
    assert sentence.endswith(": GRU 93 % [91, 95] (untrained 41 %), nBRC 97 % [95, 99] (untrained 98 %).")


def test_two_runs_have_the_interval_of_both_and_three_that_of_their_spread():
    def share(values):
        rows = [each for seed, value in enumerate(values) for each in shares("GRU", seed, before=0.1, after=value)]
        return said(results_of(rows))[0]

    assert "holds 80 % [68, 92] of" in share([0.7, 0.9])
    # Student's t of two degrees of freedom: 4.303 · 0.1 / √3 = 0.248; a share stays between 0 and 1.
    assert "holds 80 % [55, 100] of" in share([0.7, 0.8, 0.9])
    assert "holds 80 % [78, 82] of" in share([0.8, 0.8, 0.8])  # not narrower than the runs' own


def test_the_untrained_share_is_taken_from_the_control_where_checkpoint_0_was_not_measured():
    rows = shares("GRU", 0, before=0.41, after=0.93, sufficiency_untrained=0.35)[1:]
    assert said(results_of(rows))[0].endswith("untrained it holds 35 %.")
    assert said(results_of(shares("GRU", 0, before=None, after=0.93)))[0].endswith("about the state.")


def test_bits_stand_between_what_is_proven_and_the_entropy():
    known = {"entropy": 4.46, "entropy_flagged": False}
    measured = shares("GRU", 0, before=0.4, after=0.9, atoms_bits=4.4, atoms_standard_error=0.01, **known)
    sentence = said(results_of([*measured, bits("GRU", 0, 100, 3.5, **known)]))[1]
    assert sentence == (
        "After training the belief has H(b) = 4.46 bits. Memories share at least 4.40 bits with it (atoms bound). "
        "MINE reads 3.50 bits [3.30, 3.70], fewer than are there."
    )
    sentence = said(results_of([*measured, bits("GRU", 0, 100, 4.4, **known)]))[1]
    assert sentence.endswith("MINE reads 4.40 bits [4.20, 4.60].")
    assert said(results_of([bits("GRU", 0, 100, 2.0)], HIKE)) == ("MINE reads 2.00 bits [1.80, 2.20].",)


def correlated_runs(number, *, noise, entropy=None, sign=1):
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(number):
        for episode in range(0, 600, 100):
            known = {} if entropy is None else {"entropy": 1 + episode / 100, "entropy_flagged": False}
            found = {"return": sign * episode / 100 + noise * rng.normal(), **known}
            rows.append(bits("GRU", seed, episode, 1 + episode / 100 + noise * rng.normal(), **found))
    return said(results_of(rows))[-1]


def test_whether_return_and_information_rise_together_is_said_as_far_as_it_is_known():
    assert correlated_runs(4, noise=0.3).startswith("Return and information rise together: their correlation is 0.9")
    assert correlated_runs(4, noise=0.3, sign=-1).startswith("Information falls where the return rises: ")
    assert correlated_runs(4, noise=30.0).startswith("Whether return and information rise together stays open: ")
    lone = correlated_runs(2, noise=0.3)
    assert lone.startswith("Return and information correlate with 0.9")
    assert lone.endswith("; an interval needs three runs.")


def test_what_is_left_given_the_entropy_stands_beside_it():
    sentence = correlated_runs(4, noise=0.3, entropy=True)
    assert " Given H(b) it is " in sentence
    assert sentence.endswith(": the rise of H(b) alone may explain it.")


def test_two_points_have_no_correlation():
    rows = [bits("GRU", 0, episode, 1.0 + episode, **{"return": float(episode)}) for episode in (0, 100)]
    results = results_of(rows)
    assert said(results) == ("MINE reads 101.00 bits [100.80, 101.20].",)
    assert "Pearson 1" not in page(results, traces=(), figures=[])


def test_warnings_are_counted_beside_the_environment_that_has_them():
    below = "below a decoder's bound: at least 4.00 bits are there"
    rows = [bits("GRU", 0, 0, 1.0, warnings=f"not converged: x; {below}"), bits("GRU", 0, 100, 1.0, warnings=below)]
    rare = "18% of the rows are rare atoms, counted as one: the bound may be far below the information"
    results = results_of([*rows, bits("GRU", 0, 200, 1.0, warnings=rare)])
    said = "Warnings, among 3 measurements: the fit had not converged (1); less than a decoder proves (2); "
    said += "an atoms bound that may be far below, for want of pairs (1)."
    assert doubts(results, MAZE) == findings(results)[0].doubts == said
    assert doubts(results, HIKE) == ""


def test_nothing_measured_says_nothing():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=2)
    nothing = dataclasses.replace(results, panels=(), shares=())
    assert findings(nothing) == []
    assert 'id="findings"' not in page(nothing, traces=(), figures=[])


@pytest.mark.parametrize("full", [True, False])
def test_claims_stand_where_they_can_be_judged_and_else_in_one_line(full):
    results = made_up((MAZE,), seeds=4, checkpoints=51 if full else 3)
    text = page(results, traces=(), figures=[])
    assert text.index('id="findings"') < text.index('id="runs"')
    assert ('id="claims"' in text) == full
    assert text.count("These results do not judge") == 1
    assert ("the paper&#39;s 11 claims" in text) == (not full)
    assert 'class="verdict not-enough-data"' not in text
