"""How large the page of 100 runs is, and how soon a browser has opened it. Prints numbers; asserts nothing.

python benchmarks/report.py    needs chromium and chromium-driver; the bars: 15 MB, 3 s
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from beliefscope.paper import ENVIRONMENTS
from beliefscope.report.page import page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))
from made_up import made_traces, made_up  # pyright: ignore[reportMissingImports]

TIMES = 5


def browser() -> webdriver.Chrome:
    chromium, service = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or service is None:
        sys.exit("install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,900"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(service))


def seconds_to_open(driver: webdriver.Chrome, file: Path) -> tuple[float, float]:
    """Until the page is complete, and until it has drawn a chart, for which it is scrolled to the first one."""
    start = time.perf_counter()
    driver.get(file.as_uri())
    complete = time.perf_counter() - start
    chart = driver.find_element(By.CSS_SELECTOR, ".chart")
    driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", chart)
    WebDriverWait(driver, 60, poll_frequency=0.01).until(lambda _: chart.get_attribute("data-drawn") == "true")
    return complete, time.perf_counter() - start


def main() -> None:
    results = made_up(ENVIRONMENTS)
    traces = made_traces(results)
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        file = Path(folder, "report.html")
        start = time.perf_counter()
        file.write_text(page(results, traces=traces, figures=[]), encoding="utf-8")
        print(f"{len(results.runs)} runs, {len(traces)} traces: made in {time.perf_counter() - start:.1f} s")
        print(f"size    {file.stat().st_size / 1e6:.1f} MB (bar: 15)")
        driver.get("about:blank")
        for _ in range(TIMES):
            complete, drawn = seconds_to_open(driver, file)
            print(f"opened  {complete:.2f} s, first chart after {drawn:.2f} s (bar: 3)")


if __name__ == "__main__":
    main()
