"""The page as a document: names stay names, nothing is loaded, what is missing is said, and it stays small.

At the end the page of an audit, as text and in a real browser with the network off.
"""

import csv
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from interventions.test_in_studies import made_record
from report.made_up import HIKE, MAZE, diverge, fail, finish, made_arrays, made_traces, made_up, stored_study, train
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from beliefscope.paper import ENVIRONMENTS
from beliefscope.report import write_report
from beliefscope.report.page import audit_page, page, what_is_missing
from beliefscope.report.viewer import StoredTrace
from beliefscope.results import read_results
from beliefscope.results.curves import Calibrated

ATTACKS = ("<script>alert(1)</script>", "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>')
LOADS = {"src", "href", "srcset", "data", "action", "poster", "background"}


class Parsed(HTMLParser):
    """Tags with their attributes, the text that is shown, and the content of scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown, self.raw = "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_data(self, data):
        if self.cdata_elem:
            self.raw[-1] += data
        else:
            self.shown += data


def parsed(results, traces=(), figures=()):
    return Parsed(page(results, traces=traces, figures=list(figures)))


def words(document):
    return " ".join(document.shown.split())


def test_a_page_stands_by_itself():
    results = made_up((MAZE, HIKE), cells=("GRU",), seeds=2, checkpoints=3)
    document = parsed(results, made_traces(results), ["learning"])
    loaded = [(tag, value) for tag, given in document.tags for name, value in given.items() if name in LOADS]
    assert loaded
    assert all(tag == "a" and value is not None and value.startswith("#") for tag, value in loaded)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in document.tags}
    style, data, *_ = document.raw
    assert not re.search(r"url\(|@import", style)
    assert set(json.loads(data)) == {"charts", "viewer"}
    (policy,) = [given["content"] for _, given in document.tags if given.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_every_link_within_the_page_leads_somewhere():
    results = made_up((MAZE, HIKE), cells=("GRU",), seeds=1, checkpoints=2)
    tags = parsed(results, made_traces(results)).tags
    ids = [given["id"] for _, given in tags if "id" in given]
    assert len(ids) == len(set(ids))
    assert {given["href"] for tag, given in tags if tag == "a"} <= {f"#{name}" for name in ids}


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_and_sentences_with_html_are_text(attack):
    results = made_up((attack,), cells=(attack,), seeds=1, checkpoints=2)
    call = {"started": attack, "revision": attack, "python": attack, "device": attack, "versions": {attack: attack}}
    hostile = dataclasses.replace(
        results,
        name=attack,
        description=attack,
        settings={attack: attack},
        calls=[call],
        failures=[(attack, attack)],
        states=dict.fromkeys(results.states, "failed"),
    )
    plain = parsed(dataclasses.replace(made_up(("x",), cells=("y",), seeds=1, checkpoints=2), calls=[call]))
    trace = StoredTrace(attack, attack, 0, 0, *_table_trace(attack))
    text = page(hostile, traces=[trace], figures=[attack])
    document = Parsed(text)
    assert attack not in text
    count = {tag: sum(name == tag for name, _ in document.tags) for tag in ("script", "img")}
    assert count == {"script": sum(tag == "script" for tag, _ in plain.tags), "img": 0}
    assert not [name for _, given in document.tags for name in given if name.startswith("on")]
    assert document.shown.count(attack) >= 12
    data = json.loads(document.raw[1])
    assert data["viewer"]["environments"][0]["world"]["states"] == [attack] * 12


def _table_trace(name):
    """A trace of a POMDP with names of its own."""
    arrays = made_arrays(np.random.default_rng(0), {"class": "TMaze", "length": 3}, steps=4)
    names = {"state_names": [name] * 12, "action_names": [name] * 4, "observation_names": [name] * 4}
    return {"class": "TabularPOMDP", **names}, arrays


def test_a_study_of_which_nothing_is_done_says_so(tmp_path):
    stored = stored_study(tmp_path)
    results = read_results([stored.path])
    number = len(stored.pieces)
    assert what_is_missing(results) == [
        f"This study is not finished: {number} of its {number} pieces are missing. "
        "Run it again to go on, then make the report again.",
        "T-Maze, L = 3: nothing has been measured yet.",
    ]
    document = parsed(results)
    for line in (*what_is_missing(results), "Nothing has been measured yet.", f"pieces {number} missing"):
        assert line in words(document)
    assert "chart" not in {given.get("class") for _, given in document.tags}
    assert "belief-viewer" not in {given.get("id") for _, given in document.tags}


def test_a_study_in_which_things_failed_names_them_and_shows_the_rest(tmp_path):
    stored = stored_study(tmp_path)
    first, second, third, fourth = stored.runs
    finish(stored, first)
    finish(stored, second)
    train(stored, third)
    fail(stored, third.pieces[1], "the memory was full")
    diverge(stored, fourth, "the loss is not finite")
    text = write_report(stored.path).read_text()
    document = Parsed(text)
    shown = words(document)
    left = sum(piece.kind != "train" for piece in third.pieces) - 1
    assert f"{left} of its {len(stored.pieces)} pieces are missing" in shown
    assert "2 pieces have failed and are left out of every number: see Runs." in shown
    assert f"{third.pieces[1].title}: the memory was full" in shown
    assert f"{fourth.pieces[0].label}: the loss is not finite" in shown
    assert {"state failed", "state diverged", "state done"} <= {given.get("class") for _, given in document.tags}
    assert [given["id"] for _, given in document.tags if given.get("class") == "chart"]
    assert "belief-viewer" in {given.get("id") for _, given in document.tags}


def test_a_finished_study_misses_nothing(tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    results = read_results([stored.path])
    assert what_is_missing(results) == []
    classes = [given.get("class") for _, given in parsed(results).tags]
    assert "notice" not in classes


def test_one_failure_is_one_piece():
    results = dataclasses.replace(made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=2), failures=[("a", "b")])
    assert what_is_missing(results) == ["1 piece has failed and is left out of every number: see Runs."]


def test_an_estimate_that_cannot_be_is_counted():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=3)
    (curve,) = results.panels[0].curves["GRU"]
    curve.values["bits"][1] = -0.4
    assert what_is_missing(results) == []
    curve.values["control_time"][1] = -32.3
    (line,) = what_is_missing(results)
    assert line.startswith("1 estimate is below −0.5 bits, controls included.")


def test_the_report_lies_in_the_studys_folder_beside_its_figures(tmp_path):
    stored = stored_study(tmp_path)
    finish(stored, stored.runs[0])
    path = write_report(stored.path)
    assert path == stored.path / "report.html"
    names = [file.stem for file in (stored.path / "figures").glob("*.svg")]
    assert names
    assert all(name in words(Parsed(path.read_text())) for name in names)
    first = path.read_bytes()
    assert write_report(str(stored.path)).read_bytes() == first


def test_the_correlations_lie_there_as_csv_with_the_papers(tmp_path):
    stored = stored_study(tmp_path)
    for run in stored.runs:
        finish(stored, run)
    write_report(stored.path)
    rows = list(csv.DictReader((stored.path / "correlations.csv").read_text().splitlines()))
    assert [row["cell"] for row in rows] == ["all cells", "GRU", "BRC"]
    (found,) = (row for row in read_results([stored.path]).correlations if row.cell == "all cells")
    assert float(rows[0]["pearson"]) == pytest.approx(found.pearson.value, abs=1e-4)
    assert float(rows[0]["spearman_high"]) == pytest.approx(found.spearman.high, abs=1e-4)
    assert rows[1]["pearson_low"] == rows[0]["pearson_printed"] == ""  # two runs give no interval; not in the paper


def test_the_scatter_says_both_coefficients():
    results = made_up((MAZE,), cells=("GRU", "LSTM"), seeds=3, checkpoints=5)
    bits, returns = (
        np.concatenate([curve.values[name] for curves in results.panels[0].curves.values() for curve in curves])
        for name in ("bits", "return")
    )
    assert f"Pearson {np.corrcoef(bits, returns)[0, 1]:.2f} [" in words(parsed(results))


def test_the_instrument_stands_in_the_correlations_where_an_environment_has_two():
    results = made_up((MAZE, HIKE), cells=("GRU",), seeds=1, checkpoints=3)
    maze, hike = results.panels
    assert "N = 20,000)" not in words(parsed(results))
    other = maze._replace(instrument=maze.instrument._replace(N=500))
    shown = words(parsed(dataclasses.replace(results, panels=(maze, hike, other))))
    assert f"{MAZE} (MINE, 200 epochs, N = 20,000) all cells" in shown
    assert f"{MAZE} (MINE, 200 epochs, N = 500) all cells" in shown
    assert f"{HIKE} all cells" in shown


@pytest.mark.slow
def test_a_hundred_runs_of_the_paper_stay_below_15_megabytes():
    results = made_up(ENVIRONMENTS)
    traces = made_traces(results)
    assert (len(results.runs), len(traces)) == (100, 75)
    assert {len(each.values) for curves in results.returns.values() for each in curves} == {501}
    assert {len(curve.episode) for panel in results.panels for each in panel.curves.values() for curve in each} == {51}
    assert len(page(results, traces=traces, figures=[]).encode()) < 15e6


def test_what_is_read_of_known_information_stands_beside_an_environments_charts():
    results = made_up([MAZE], seeds=1, checkpoints=3)
    panel = results.panels[0]
    known = Calibrated(panel.environment, panel.part, panel.instrument, 12, False, ((1.0, 0.9), (3.5, 2.75)))
    document = parsed(dataclasses.replace(results, calibrations=(known,)))
    text = words(document)
    assert f"What {panel.instrument} reads of known information with the beliefs" in text
    assert "12 of them" in text
    assert re.search("true bits ?1.003.50", text)
    assert re.search("reads ?0.902.75", text)


def test_the_plotting_script_is_the_published_one():
    """Nobody has edited it: its checksum is that of the package it came from."""
    script = files("beliefscope.report") / "assets" / "plotly-basic.min.js"
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    assert digest == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert "MIT License" in (files("beliefscope.report") / "assets" / "plotly-LICENSE.txt").read_text()


ATTACK = "<script>alert(1)</script>"
POMDP = {"class": "TMaze", "length": 5, "stochasticity": 0.0, "horizon": 15, "discount": 0.98}


def made_audit_page():
    """An agent without values and its twin; an unfinished curve."""
    arrays = made_arrays(np.random.default_rng(0), POMDP, steps=12, memory=8)
    traces = {name: {**arrays, "values": np.full_like(arrays["values"], np.nan)} for name in (ATTACK, "untrained twin")}
    record = {
        "title": f"{ATTACK} in a maze",
        "num_samples": 1000,
        "environment": f"maze {ATTACK}",
        "rows": [("sufficiency, given the time", f"98% [97, 99] {ATTACK}")],
        "warnings": [ATTACK],
        "by_step": [(0, (1.0, 0.9, 1.0), 1.0, 400), (1, None, 0.0, 400), (2, (0.5, 0.4, 0.6), 1.0, 400)],
        "checkpoints": [(0.0, -1.0, None, (0.1, 0.0, 0.2)), (10.0, 3.0, (0.9, 0.8, 1.0), (0.9, 0.8, 1.0))],
        "calibration": [(1.0, 0.9), (2.0, 1.8)],
        "use": [("agent", [f"Verdict: {ATTACK}."], made_record("", 20)), ("before training", [], made_record("", 0))],
    }
    return audit_page(record, pomdp=POMDP, traces=traces)


def test_names_in_an_audit_are_text_and_nothing_is_loaded():
    text = made_audit_page()
    assert "<script>alert" not in text
    assert "default-src 'none'" in text
    assert text.count("98% [97, 99]") == 1
    assert "<h2>Is it used?</h2>" in text


def test_the_viewer_opens_and_leaves_out_values_that_are_not_known(driver, tmp_path):
    (tmp_path / "report.html").write_text(made_audit_page(), encoding="utf-8")
    driver.get((tmp_path / "report.html").as_uri())
    WebDriverWait(driver, 60).until(lambda found: found.find_element(By.CSS_SELECTOR, ".viewer-says").text != "")
    assert not driver.find_element(By.CSS_SELECTOR, ".viewer-values").is_displayed()
    assert driver.find_element(By.CSS_SELECTOR, ".viewer-memory").is_displayed()
    choices = [option.text for option in driver.find_elements(By.CSS_SELECTOR, ".viewer option")]
    assert {ATTACK, "untrained twin", "as audited"} <= set(choices)
    for name in ("use-0", "use-1", "by-step"):
        chart = driver.find_element(By.ID, name)
        driver.execute_script("arguments[0].scrollIntoView()", chart)
        WebDriverWait(driver, 60).until(lambda _, chart=chart: chart.get_attribute("data-drawn") == "true")
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
