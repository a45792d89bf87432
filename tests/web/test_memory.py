"""Memory with `adk web`, in a real browser.

The pages of google-adk 2.13 and 1.39 have no button for the server's `PATCH …/memory`. The test
sends it from the page, as such a button would.
"""

from pathlib import Path

import pytest

from cosmos_emulator import Emulator
from tests.adk.servers import AdkServer
from tests.memory.raw import memories_of
from tests.web.test_adk_web import say, visible

ROOT = Path(__file__).parents[2]
AGENT = f"""
import sys

sys.path.insert(0, {str(ROOT / "examples")!r})

from google.adk.agents import LlmAgent
from google.adk.tools import preload_memory
from remembering_agent import TravelModel

root_agent = LlmAgent(name="guide", model=TravelModel(), tools=[preload_memory])
"""
ADD = """
const [path, done] = arguments;
const body = JSON.stringify({session_id: "first"});
const headers = {"Content-Type": "application/json"};
fetch(path, {method: "PATCH", headers, body}).then(answer => done(answer.status));
"""
URI = "cosmosdb://embedded/agent.db"


@pytest.fixture
def agents(tmp_path):
    folder = tmp_path / "agents"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "__init__.py").touch()
    (folder / "guide" / "agent.py").write_text(AGENT)
    (folder / "services.py").write_text("import cosmosservice.adk\n")
    return folder


@pytest.mark.timeout(300)
def test_what_was_said_is_known_in_another_session_after_a_restart(
    agents, tmp_path, browser, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    page = "/dev-ui/?app=guide&userId=user&session="
    with AdkServer("web", URI, agents, f"--memory_service_uri={URI}") as server:
        server.post("/apps/guide/users/user/sessions/first", {})
        browser.get(f"{server.url}{page}first")
        say(browser, "I would like to travel again.")
        visible(browser, "Have you ever been to Lisbon?")
        say(browser, "Yes, last May!")
        visible(browser, "I will keep that in mind.")
        path = "/apps/guide/users/user/memory"
        assert browser.execute_async_script(ADD, path) == 200

    browser.get("about:blank")
    with Emulator(str(tmp_path / "agent.db")) as emulator:
        assert memories_of(emulator) == [
            "I would like to travel again.",
            "Gladly. Have you ever been to Lisbon?",
            "Yes, last May!",
            "I will keep that in mind.",
        ]
    with AdkServer("web", URI, agents, f"--memory_service_uri={URI}") as server:
        server.post("/apps/guide/users/user/sessions/second", {})
        browser.get(f"{server.url}{page}second")
        say(browser, "When was I in Lisbon?")
        visible(browser, "You told me: “Yes, last May!”")
