"""The page in a real browser, opened from disk with the network off, on a phone and on a desk, by day and by night."""

import dataclasses

import numpy as np
import pytest
from report.made_up import HIKE, MAZE, made_arrays, made_traces, made_up
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from beliefscope.paper import ENVIRONMENTS
from beliefscope.report.page import page
from beliefscope.report.viewer import StoredTrace

ATTACK = '<script>alert(1)</script><img src=x onerror=alert(1)>"><b>bold</b>'
PHONE, DESK = 375, 1440
TEXTS = (
    "body",
    ".lead",
    ".brand",
    ".facts span",
    "nav a",
    "nav button",
    ".verdict.holds",
    ".verdict.does-not-hold",
    ".verdict.not-enough-data",
    ".finding p",
    "p.doubts",
    ".notice p",
    "figcaption",
    ".layers label",
    ".layers legend",
    ".sortable thead button",
    "td.number small",
    ".state.done",
    ".state.failed",
    ".state.missing",
    ".failures li",
    "footer p",
    "footer cite",
    "code",
    ".viewer-choice > span",
    ".viewer select",
    ".viewer-readout dt",
    ".viewer-readout dd",
    ".viewer-about",
    ".viewer-says",
    ".viewer-value",
    ".viewer-scale span",
    ".viewer-legend",
)
CONTRAST = """
const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
const rgba = (css) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  return Array.from(pen.getImageData(0, 0, 1, 1).data);
};
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = rgba(getComputedStyle(each).backgroundColor);
    if (found[3] === 255) return found;
  }
  return [255, 255, 255, 255];
};
return arguments[0].map((selector) => {
  const element = document.querySelector(selector);
  return element && [rgba(getComputedStyle(element).color).slice(0, 3), behind(element).slice(0, 3)];
});
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two environments, one of them with particles; a failure, a run without numbers, and several coefficients."""
    results = made_up((MAZE, HIKE), cells=("LSTM", "GRU", "NBRC"), seeds=3, checkpoints=6, epsilons=(0.0, 0.5))
    lost = results.runs[1]
    returns = {which: tuple(e for e in each if e.run != lost.id) for which, each in results.returns.items()}
    states = results.states | {piece.name: "missing" for piece in lost.pieces}
    results = dataclasses.replace(
        results, description="A made-up study", settings={"scale": "full"}, returns=returns, states=states
    )
    results = dataclasses.replace(results, failures=[("a piece", "a reason")])
    return written(tmp_path_factory.mktemp("report"), results, made_traces(results))


def written(folder, results, traces):
    path = folder / "report.html"
    path.write_text(page(results, traces=traces, figures=["learning"]), encoding="utf-8")
    return path


def opened(driver, path, *, width=DESK, dark=False):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get_log("browser")
    driver.get(path.as_uri())
    return driver


def until(driver, condition):
    return WebDriverWait(driver, 60, poll_frequency=0.05).until(condition)


def all_of(driver, selector):
    return driver.find_elements(By.CSS_SELECTOR, selector)


def one(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def severe(driver):
    return [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def scrolled_through(driver):
    """Until every chart has been drawn."""
    for chart in all_of(driver, ".chart"):
        driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", chart)
        until(driver, lambda _, chart=chart: chart.get_attribute("data-drawn") == "true")


def overflows(driver):
    """Is the document wider than what is seen of it?"""
    return driver.execute_script("const e = document.documentElement; return e.scrollWidth > e.clientWidth")


def click(driver, element):
    driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", element)
    element.click()


def luminance(colour):
    """As WCAG has it."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one_colour, other):
    low, high = sorted([luminance(one_colour), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_all_charts_are_drawn_and_nothing_overflows(driver, report, width):
    opened(driver, report, width=width)
    assert driver.current_url.startswith("file://")
    scrolled_through(driver)
    charts = all_of(driver, ".chart")
    assert len(charts) == 16
    empty = "return [...document.querySelectorAll('.chart')].filter((e) => !e.querySelector('svg path')).length"
    assert driver.execute_script(empty) == 0
    for details in all_of(driver, "details:not([open])"):
        driver.execute_script("arguments[0].open = true", details)
    assert driver.execute_script("return window.innerWidth") == width
    assert not overflows(driver)
    assert severe(driver) == []


@pytest.mark.slow
def test_a_box_shows_and_hides_its_layer_in_its_section_only(driver, report):
    opened(driver, report)
    scrolled_through(driver)
    shown = """
        return [...document.querySelectorAll(".chart")].map((chart) => [chart.closest("section").id,
          ...["seed", "entropy", "mean"].map((kind) =>
            chart.data.filter((trace) => trace.meta.kind === kind && trace.visible).length)])
    """

    def count(section):
        """How many traces of each kind are visible there."""
        return [
            sum(each) for each in zip(*(c[1:] for c in driver.execute_script(shown) if c[0] == section), strict=True)
        ]

    assert count("environment-0") == [0, 4, 6]  # the legend has an entry for H(b)
    click(driver, one(driver, "#environment-0 input[data-kind=seed]"))
    until(driver, lambda _: count("environment-0") == [2 * 9 - 1, 4, 6])
    assert count("environment-1") == [0, 0, 6]
    click(driver, one(driver, "#environment-0 input[data-kind=entropy]"))
    until(driver, lambda _: count("environment-0") == [2 * 9 - 1, 0, 6])
    assert severe(driver) == []


@pytest.mark.slow
def test_printing_draws_every_chart_first(driver, report):
    opened(driver, report)
    drawn = "return [...document.querySelectorAll('.chart')].filter((e) => e.querySelector('svg path')).length"
    assert driver.execute_script(drawn) < 16
    pdf = driver.print_page()
    assert driver.execute_script(drawn) == 16
    assert len(pdf) > 1e5
    assert all_of(driver, "details:not([open])") == []
    assert severe(driver) == []


@pytest.mark.slow
def test_states_of_one_number_are_drawn_as_one(driver, tmp_path):
    results = made_up(("Line",), cells=("GRU",), seeds=1, checkpoints=3)
    arrays = made_arrays(np.random.default_rng(0), {"class": "MountainHike", "varying": False}, steps=4)
    arrays |= {name: arrays[name][..., :1] for name in ("belief", "decoded_cells", "states")}
    trace = StoredTrace("Line", "GRU", 0, 0, {"class": "mine.Line"}, arrays)
    opened(driver, written(tmp_path, results, [trace]))
    until(driver, lambda _: one(driver, ".viewer-says").text)
    words = one(driver, ".viewer-says").text
    assert words.startswith("The state: around ")
    assert "(" not in words
    assert severe(driver) == []


@pytest.mark.slow
def test_the_viewer_steps_plays_and_changes_what_it_shows(driver, report):
    opened(driver, report)
    viewer = one(driver, "#belief-viewer")

    def step():
        return int(viewer.get_attribute("data-step"))

    def says():
        return one(driver, ".viewer-says").text

    until(driver, lambda _: says())
    assert (step(), viewer.get_attribute("data-playing")) == (0, "false")
    first = says()
    click(driver, one(driver, ".viewer-button[aria-label='Step forward']"))
    assert step() == 1
    assert says() != first
    driver.execute_script("arguments[0].focus()", viewer)
    viewer.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert step() == 3
    viewer.send_keys(Keys.ARROW_LEFT)
    assert step() == 2
    viewer.send_keys(Keys.END)
    assert step() == 79
    viewer.send_keys(Keys.HOME)
    assert step() == 0
    viewer.send_keys(" ")
    assert viewer.get_attribute("data-playing") == "true"
    until(driver, lambda _: step() > 1)
    click(driver, one(driver, ".viewer-play"))
    assert viewer.get_attribute("data-playing") == "false"
    for place, number in ((1, 3), (2, 3), (3, 2)):
        select = Select(all_of(driver, ".viewer-choices select")[place])
        assert len(select.options) == number
        before = says()
        select.select_by_index(1)
        until(driver, lambda _, before=before: says() != before)
    Select(all_of(driver, ".viewer-choices select")[0]).select_by_visible_text(HIKE)
    until(driver, lambda _: says().startswith("The hiker stands at"))
    assert severe(driver) == []


@pytest.mark.slow
@pytest.mark.parametrize("by", ["click", "keyboard"])
def test_tables_sort_by_click_and_by_keyboard_missing_values_last(driver, report, by):
    opened(driver, report)
    table = "#runs table.sortable"
    column = 6  # the last return
    button = one(driver, f"{table} thead th:nth-child({column}) button")
    read = f"return [...document.querySelectorAll('{table} tbody tr')].map((r) => r.cells[{column - 1}].dataset.value)"

    def press():
        if by == "click":
            click(driver, button)
        else:
            button.send_keys(Keys.ENTER)
        head = one(driver, f"{table} thead th:nth-child({column})")
        return head.get_attribute("aria-sort"), driver.execute_script(read)

    unsorted = driver.execute_script(read)
    known = sorted(float(value) for value in unsorted if value)
    assert unsorted.count("") == 1
    for direction, expected in (("ascending", known), ("descending", known[::-1])):
        said, values = press()
        assert said == direction
        assert values[-1] == ""
        assert [float(value) for value in values[:-1]] == expected
    assert len(all_of(driver, f"{table} th[aria-sort]")) == 1


@pytest.mark.slow
def test_the_theme_button_switches_the_colours_of_page_and_charts(driver, report):
    opened(driver, report)
    scrolled_through(driver)
    look = """
        const tick = document.querySelector(".chart .xtick text");
        return [getComputedStyle(document.body).backgroundColor, getComputedStyle(tick).fill]
    """
    light = driver.execute_script(look)
    seen = []
    for theme in ("dark", "light"):
        click(driver, one(driver, "#theme"))
        assert one(driver, "html").get_attribute("data-theme") == theme
        before = seen[-1][1] if seen else light[1]
        until(driver, lambda _, before=before: driver.execute_script(look)[1] != before)
        seen.append(driver.execute_script(look))
    dark, again = seen
    assert again == light
    assert dark[0] != light[0]


@pytest.mark.slow
def test_everything_interactive_is_reached_by_tab_and_shows_its_focus(driver, report):
    opened(driver, report)
    until(driver, lambda _: one(driver, ".viewer-says").text)
    wanted = """
        const all = document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']");
        return [...all].filter((e) => e.checkVisibility() && !e.disabled).length
    """
    number = driver.execute_script(wanted)
    assert number > 40
    reached, outlined = set(), []
    look = "const e = document.activeElement; return [e, getComputedStyle(e).outlineStyle, e.tagName]"
    for _ in range(number):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        element, outline, tag = driver.execute_script(look)
        reached.add(element.id)
        outlined.append((outline, tag))
    assert len(reached) == number
    assert {outline for outline, _ in outlined} == {"solid"}
    assert {"A", "BUTTON", "SELECT", "INPUT", "SUMMARY", "DIV"} <= {tag for _, tag in outlined}


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_what_is_behind_them(driver, report, dark):
    opened(driver, report, dark=dark)
    until(driver, lambda _: one(driver, ".viewer-says").text)
    for name in TEXTS:  # verdicts and states that this study does not have
        if name.startswith((".verdict", ".state", "p.doubts")):
            chip = f"<p class='{name.replace('.', ' ')}'>x</p>"
            driver.execute_script("document.querySelector('#runs').insertAdjacentHTML('beforeend', arguments[0])", chip)
    found = dict(zip(TEXTS, driver.execute_script(CONTRAST, list(TEXTS)), strict=True))
    assert [name for name, colours in found.items() if colours is None] == []
    background = luminance(found["body"][1])
    assert background < 0.05 if dark else background > 0.8
    assert {name: round(value, 2) for name, of in found.items() if (value := contrast(*of)) < 4.5} == {}


def test_the_measure_of_contrast_is_the_standards():
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21)
    assert contrast([119, 119, 119], [255, 255, 255]) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_html_in_names_is_shown_as_text_and_never_run(driver, tmp_path, width):
    results = made_up((ATTACK,), cells=(ATTACK, "GRU"), seeds=1, checkpoints=3, epsilons=(0.0, 0.5))
    hostile = dataclasses.replace(
        results, name=ATTACK, description=ATTACK, failures=[(ATTACK, ATTACK)], settings={ATTACK: ATTACK}
    )
    arrays = made_arrays(np.random.default_rng(0), {"class": "TMaze", "length": 3}, steps=4)
    names = {"state_names": [ATTACK] * 12, "action_names": [ATTACK] * 4, "observation_names": [ATTACK] * 4}
    trace = StoredTrace(ATTACK, ATTACK, 0, 0, {"class": "TabularPOMDP", **names}, arrays)
    opened(driver, written(tmp_path, hostile, [trace]), width=width)
    scrolled_through(driver)  # an alert would end this with an error
    assert driver.title.startswith(ATTACK)
    assert one(driver, "h1").text == ATTACK
    assert all_of(driver, "img, b b, script[src]") == []
    written_there = "return [...document.querySelectorAll('.chart .legendtext')].map((each) => each.textContent)"
    assert {"GRU", ATTACK} <= set(driver.execute_script(written_there))
    assert not overflows(driver)
    assert severe(driver) == []


@pytest.mark.slow
def test_a_page_of_a_hundred_runs_opens(driver, tmp_path):
    results = made_up(ENVIRONMENTS)
    opened(driver, written(tmp_path, results, made_traces(results)))
    assert driver.execute_script("return document.readyState") == "complete"
    scrolled_through(driver)
    assert len(all_of(driver, "#runs table.sortable tbody tr")) == 100
    assert severe(driver) == []
