"""The page of an audit, as text and in a real browser with the network off."""

import numpy as np
from interventions.test_in_studies import made_record
from report.made_up import made_arrays
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from beliefscope.report.audit_page import audit_page

ATTACK = "<script>alert(1)</script>"
POMDP = {"class": "TMaze", "length": 5, "stochasticity": 0.0, "horizon": 15, "discount": 0.98}


def page():
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


def test_names_are_text_and_nothing_is_loaded():
    text = page()
    assert "<script>alert" not in text
    assert "default-src 'none'" in text
    assert text.count("98% [97, 99]") == 1
    assert "<h2>Is it used?</h2>" in text


def test_the_viewer_opens_and_leaves_out_values_that_are_not_known(driver, tmp_path):
    (tmp_path / "report.html").write_text(page(), encoding="utf-8")
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
