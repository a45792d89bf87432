"""The page of `adk web`, in a real browser."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.adk.servers import AdkServer, agents_folder

CONVERSATION = [
    "My name is Ada.",
    "remember_name",
    "user:name, introduced",
    "Nice to meet you, Ada.",
]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """ADK stores the answers to the page's dialogs in the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))


def visible(browser, *texts):
    def all_there(driver):
        body = driver.find_element(By.TAG_NAME, "body").text
        return all(text in body for text in texts)

    WebDriverWait(browser, 60, ignored_exceptions=[Exception]).until(
        all_there, f"not seen: {texts}"
    )


def say(browser, text):
    box = WebDriverWait(browser, 60).until(
        lambda driver: driver.find_element(By.CSS_SELECTOR, "textarea"), "no box to write into"
    )
    browser.execute_script(
        "document.querySelectorAll('.cdk-overlay-container').forEach(e => e.remove())"
    )
    box.send_keys(text, Keys.ENTER)


@pytest.mark.timeout(300)
def test_session_and_its_events_are_on_the_page_after_a_restart(tmp_path, browser):
    agents = agents_folder(tmp_path / "agents")
    page = "/dev-ui/?app=greeter&userId=user&session=first"
    with AdkServer("web", "cosmosdb://embedded/sessions.db", agents) as server:
        server.post("/apps/greeter/users/user/sessions/first", {})
        browser.get(server.url + page)
        visible(browser, "greeter", "first")
        say(browser, CONVERSATION[0])
        visible(browser, *CONVERSATION)

    browser.get("about:blank")
    with AdkServer("web", "cosmosdb://embedded/sessions.db", agents) as server:
        browser.get(server.url + page)
        visible(browser, "first", *CONVERSATION)
        say(browser, "Do you know me?")
        visible(browser, *CONVERSATION, "Do you know me?", "Hello, Ada.")
