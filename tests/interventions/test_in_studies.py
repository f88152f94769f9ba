"""Interventions as pieces of a study: asked for in TOML, stored as sealed records, shown in the report."""

import csv
import json
import math
import re

import pytest
from report.made_up import TOML, stored_study, train
from study.tiny import TOML as TINY
from study.tiny import definition, run

from beliefscope import StudyFolder, read_study
from beliefscope.report import write_report
from beliefscope.report.use import over_seeds, use_charts, use_rows
from beliefscope.results import read_results
from beliefscope.store import Damaged, write_record
from beliefscope.store.study_folder import count_states
from beliefscope.study.cost import cost, show

WITH = TOML + "[interventions]\n"


def swap(kind="whole", rank=None, dose=None, follow=0.75):
    named = {"kind": kind, "rank": rank, "dose": dose, "follow": [follow, follow - 0.1, follow + 0.1]}
    return named | {key: [0.25, 0.2, 0.3] for key in ("keep", "to_donor", "to_own", "loss")}


def made_record(run: str, episode: int) -> dict:
    """Of a trained agent that follows, of an untrained one that has no decision."""
    about = {"run": run, "episode": episode, "available": 1.0, "equal": None}
    if episode == 0:
        return about | {"verdict": "not readable", "readable": None, "swaps": [], "steering": [], "erasures": []}
    swaps = [swap(), swap("belief", 8, follow=0.7), swap("complement", 8, follow=0.1), swap("random", 8, follow=0.02)]
    erasure = {"part": "side", "rank": 1, "width": 8, "returns": 1.0, "sufficiency": [0.9, 0.8, 1.0]}
    erasure |= {"loss": [0.5, 0.4, 0.6], "random_loss": [0.1, 0.0, 0.2]}
    erasure |= {"sufficiency_loss": [0.8, 0.7, 0.9], "random_sufficiency_loss": None}
    equal = {"changed": [0.125, 0.1, 0.2], "values": None, "loss": None}
    found = {"verdict": "readable and used", "readable": [0.9, 0.8, 1.0], "swaps": swaps, "equal": equal}
    steering = [swap("steering", dose=dose, follow=dose / 2) for dose in (0.0, 1.0, 2.0)]
    return about | found | {"steering": steering, "erasures": [erasure]}


@pytest.fixture
def stored(tmp_path) -> StudyFolder:
    study = stored_study(tmp_path, WITH)
    for each in study.runs:
        train(study, each)
        for piece in (piece for piece in each.pieces if piece.kind == "intervene"):
            assert piece.episode is not None
            write_record(piece.result(study.path), made_record(each.id, piece.episode))
    return study


def test_a_study_without_the_table_has_no_interventions_and_the_same_pieces_as_before(tmp_path):
    without, asked = (stored_study(tmp_path / name, text) for name, text in made(tmp_path))
    assert all(piece.kind != "intervene" for piece in without.pieces)
    more = [piece for piece in asked.pieces if piece.kind == "intervene"]
    assert {piece.episode for piece in more} == {0, 20}
    assert [piece.name for piece in asked.pieces if piece not in more] == [piece.name for piece in without.pieces]


def made(folder):
    for name, text in (("without", TOML), ("asked", WITH)):
        (folder / name).mkdir()
        yield name, text


def test_show_counts_what_interventions_cost(tmp_path):
    study = read_study(definition(tmp_path, WITH))
    assert "interventions on 8 checkpoints" in show(study)
    assert cost(study.runs).seconds > cost(read_study(definition(tmp_path, TOML)).runs).seconds
    assert "interventions" not in show(read_study(definition(tmp_path, TOML)))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('[interventions]\nepisodes = "all"', "the keys of [interventions] are checkpoints, but got 'episodes'"),
        ("[interventions]\ncheckpoints = [7]", "only these are measured and traced, but got [7]"),
    ],
)
def test_a_wrong_table_gets_one_sentence(table, sentence, tmp_path):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read_study(definition(tmp_path, TOML + table))


def test_an_environment_with_infinitely_many_states_is_refused(tmp_path):
    text = WITH.replace('pomdp = "t-maze"\nlength = 3', 'pomdp = "mountain-hike"')
    with pytest.raises(ValueError, match="interventions are for environments with finitely many states"):
        read_study(definition(tmp_path, text))


def test_the_shipped_study_shares_its_runs_with_those_of_the_paper():
    use, paper = (read_study(name, scale="full") for name in ("beyond/use", "paper"))
    assert len(use.runs) == 60
    assert {run.id for run in use.runs} <= {run.id for run in paper.runs}
    assert all(run.interventions == (0, 5000) for run in use.runs)


def test_finished_records_are_counted_and_damaged_or_foreign_ones_are_found(stored):
    assert "12 done" in count_states(stored.states())  # four trainings, eight interventions
    pieces = [piece for piece in stored.pieces if piece.kind == "intervene"]
    for piece in pieces:
        stored.check(piece)
    first, second = (piece.result(stored.path) for piece in pieces[:2])
    second.write_bytes(first.read_bytes())
    with pytest.raises(Damaged, match="it is the record of another checkpoint"):
        stored.check(pieces[1])
    first.write_text(first.read_text().replace("not readable", "readable"))
    with pytest.raises(Damaged, match="checksum"):
        stored.check(pieces[0])
    write_record(first, made_record(pieces[0].run, 0) | {"swaps": [{"kind": "whole"}]})
    with pytest.raises(Damaged, match=r"its entry swaps\.0\.rank is of the wrong kind"):
        stored.check(pieces[0])
    assert len(stored.set_aside_damaged()) == 2
    assert "10 done" in count_states(stored.states())


def test_the_report_has_a_section_with_a_picture_for_the_environment_and_its_numbers(stored):
    text = write_report(stored.path).read_text("utf-8")
    assert "<h2>Is it used?</h2>" in text
    for title in ("Follow rate after a swap", "Dose-response of steering"):
        assert f"<h3>{title}</h3>" in text
    assert "readable and used: 2" in text
    rows = list(csv.DictReader((stored.path / "interventions.csv").read_text("utf-8").splitlines()))
    swapped = [row for row in rows if (row["kind"], row["rank"], row["score"]) == ("random", "8", "follow")]
    numbers = [(row["seed"] == "all", row["episode"], row["value"], row["low"], row["high"]) for row in swapped]
    # Of each run, then of each of two cells over two seeds, which are equal.
    assert numbers == [(False, "20", "0.02", "-0.08", "0.12")] * 4 + [(True, "20", "0.02", "0.02", "0.02")] * 2
    (joined,) = {row["verdict"] for row in swapped if row["seed"] == "all"}
    assert joined == "readable and used: 2"
    assert {row["value"] for row in rows if row["kind"] == "erased side" and row["score"] == "random_loss"} == {"0.1"}
    assert (stored.path / "figures" / "use-t-maze-l-3.png").stat().st_size > 10_000
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    drawn = {chart["id"]: chart for chart in json.loads(data)["charts"]}
    belief = next(trace for trace in drawn["use-0"]["traces"] if trace["line"]["dash"] == "solid" and trace["y"])
    assert (belief["x"], belief["y"]) == (["8", "whole"], [0.7, 0.75])
    steered = next(trace for trace in drawn["use-1"]["traces"] if trace["y"])
    assert (steered["x"], steered["y"]) == ([0.0, 1.0, 2.0], [0, 0.5, 1])


def test_intervals_over_seeds_are_those_of_student_and_of_one_seed_its_own():
    seeds = [(value, value - 0.1, value + 0.1) for value in (0.6, 0.7, 0.8)]
    # The 97.5 % quantile of t with two degrees of freedom is 4.3027; the deviation is 0.1.
    reach = 4.3027 * 0.1 / 3**0.5
    assert over_seeds([None, *seeds], is_share=True) == pytest.approx((0.7, 0.7 - reach, 0.7 + reach), abs=1e-5)
    wide = [(0.0, 0.0, 0.1), (1.0, 0.9, 1.0)]
    assert over_seeds(wide, is_share=True) == (0.5, 0, 1)
    assert over_seeds(wide, is_share=False).high == pytest.approx(0.5 + 12.7062 * 0.5, abs=1e-3)
    assert over_seeds([(0.7, 0.65, 0.72)], is_share=True) == (0.7, 0.65, 0.72)
    assert all(map(math.isnan, over_seeds([None], is_share=True)))


def test_charts_and_tables_have_the_interval_over_seeds(stored):
    pieces = [piece for piece in stored.pieces if piece.kind == "intervene" and piece.episode == 20]
    for piece, follow in zip(pieces, (0.6, 0.8, 0.6, 0.8), strict=True):
        record = made_record(piece.run, 20)
        record["swaps"][0] = swap(follow=follow)
        write_record(piece.result(stored.path), record)
    results = read_results([stored.path])
    by_cell = {(row.cell, row.episode): row for row in use_rows(results)}
    assert len(by_cell) == 4
    # Two seeds, 0.6 and 0.8: 12.7062 · 0.1 either way, cut at 0 and 1.
    assert [row.whole for (_, episode), row in by_cell.items() if episode == 20] == [pytest.approx((0.7, 0, 1))] * 2
    (trace,) = [each for each in use_charts(results)[0].traces if each["name"] == "GRU" and each["x"]][:1]
    assert (trace["x"][-1], trace["y"][-1]) == ("whole", 0.7)
    bars = trace["error_y"]
    assert (bars["arrayminus"][-1], bars["array"][-1]) == pytest.approx((0.7, 0.3))
    solid = [each for each in use_charts(results)[0].traces if each["line"]["dash"] == "solid" and each["opacity"] == 1]
    drawn = [each for each in use_charts(results)[0].traces if each["error_y"]["visible"]]
    assert drawn == solid != []


def test_a_report_without_interventions_has_no_such_section_and_leaves_damaged_ones_out(stored, tmp_path):
    (tmp_path / "bare").mkdir()
    bare = stored_study(tmp_path / "bare", TOML)
    train(bare, bare.runs[0])
    assert "Is it used?" not in write_report(bare.path).read_text("utf-8")
    for piece in stored.pieces:
        if piece.kind == "intervene":
            piece.result(stored.path).write_text("{}")
    found = read_results([stored.path])
    assert found.interventions == ()
    assert len(found.damaged) == 8


@pytest.mark.slow
def test_a_study_with_interventions_runs_resumes_and_makes_damaged_records_again(tmp_path):
    text = TINY.replace("seeds = [0, 1]", "seeds = [0]") + "[interventions]\n"
    command = ("run", definition(tmp_path, text), "--out", tmp_path / "out", "--workers", 1)
    status, out, err = run(*command)
    assert status == 0, err
    assert "4 done, of 4 pieces" in out
    study = StudyFolder(tmp_path / "out")
    files = [piece.result(study.path) for piece in study.pieces if piece.kind == "intervene"]
    before = [file.read_bytes() for file in files]
    files[0].unlink()
    files[1].write_bytes(before[1][:-20])
    status, out, err = run(*command)
    assert status == 0, err
    assert f"set aside, to be made again: {files[1]}" in out
    assert [file.read_bytes() for file in files] == before
