"""A browser without a network, for the tests that look at pages."""

import shutil

import pytest
from selenium import webdriver


@pytest.fixture(scope="module")
def driver():
    chromium, service = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or service is None:
        pytest.skip("needs a browser: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(service)) as found:
        found.execute_cdp_cmd("Network.enable", {})
        off = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        found.execute_cdp_cmd("Network.emulateNetworkConditions", off)
        yield found
