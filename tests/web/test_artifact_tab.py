"""The artifact tab of `adk web`, in a real browser, on our artifact service."""

import asyncio

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from cosmosservice import CosmosArtifactService
from tests.adk.servers import AdkServer, agents_folder
from tests.web.test_adk_web import home, say, visible  # noqa: F401

PAINTER = '''
"""Saves what it is told as a note, and a picture."""
import struct, zlib

from google.adk.agents import LlmAgent
from google.genai import types


def picture(size):
    def chunk(kind, data):
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    rows = b"".join(b"\\x00" + bytes(range(256)) * (3 * size // 256) for _ in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\\x89PNG\\r\\n\\x1a\\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows, 0))
        + chunk(b"IEND", b"")
    )


async def answer(callback_context):
    said = callback_context.user_content.parts[0].text
    await callback_context.save_artifact("note.txt", types.Part(text=f"You said: {said}"))
    # 768 KB: not in the version's document.
    shown = types.Blob(data=picture(512), mime_type="image/png")
    await callback_context.save_artifact("picture.png", types.Part(inline_data=shown))
    return types.Content(role="model", parts=[types.Part(text="I have kept that.")])


root_agent = LlmAgent(name="painter", model="none", before_agent_callback=answer)
'''
WHO = {"app_name": "painter", "user_id": "user", "session_id": "first"}
PICTURE = "app-artifact-tab img.preview-image"


def open_tab(browser):
    def click(driver):
        tabs = driver.find_elements(By.CSS_SELECTOR, "[role=tab]")
        tab = next(each for each in tabs if "artifact" in each.text.lower())
        driver.execute_script("arguments[0].click()", tab)
        return driver.find_elements(By.CSS_SELECTOR, "app-artifact-tab .artifact-card")

    WebDriverWait(browser, 60, ignored_exceptions=[Exception]).until(click, "no artifact tab")


def width_of_picture(driver):
    script = f"return document.querySelector('{PICTURE}')?.naturalWidth"
    return driver.execute_script(script)


@pytest.mark.timeout(300)
def test_artifacts_are_in_their_tab_and_come_from_our_store(tmp_path, browser):
    agents = agents_folder(tmp_path / "agents")
    painter = agents / "painter"
    painter.mkdir()
    painter.joinpath("__init__.py").write_text("from . import agent\n")
    painter.joinpath("agent.py").write_text(PAINTER)
    uri = f"cosmosdb://embedded/{tmp_path}/agent.db"
    options = ("web", uri, agents, f"--artifact_service_uri={uri}")
    page = "/dev-ui/?app=painter&userId=user&session=first"
    with AdkServer(*options) as server:
        server.post("/apps/painter/users/user/sessions/first", {})
        browser.get(server.url + page)
        visible(browser, "painter", "first")
        say(browser, "blue")
        open_tab(browser)
        visible(browser, "note.txt", "You said: blue", "picture.png")
        message = {"role": "user", "parts": [{"text": "green"}]}
        server.post("/run", WHO | {"new_message": message})

    async def stored():
        async with CosmosArtifactService(uri=uri) as service:
            assert await service.list_versions(**WHO, filename="note.txt") == [0, 1]
            found = await service.load_artifact(**WHO, filename="picture.png")
            return len(found.inline_data.data)

    assert asyncio.run(stored()) > 256 * 1024

    # For an unknown URI, ADK uses memory, and nothing would be stored here.
    browser.get("about:blank")
    with AdkServer(*options) as server:
        browser.get(server.url + page)
        open_tab(browser)
        visible(browser, "note.txt", "You said: green", "picture.png")
        WebDriverWait(browser, 60).until(
            lambda driver: width_of_picture(driver) == 512, "the picture is not shown"
        )
