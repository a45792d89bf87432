"""A real browser, headless."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service


@pytest.fixture
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = next(
        filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), ""
    )
    # A container has no sandbox, and less shared memory than Chromium wants.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1400,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # No connections to other machines, neither the browser's own nor those of the page.
    options.add_argument("--disable-background-networking")
    options.add_argument("--disable-component-update")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()
