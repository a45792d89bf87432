"""The page of `cosmosservice explore`, in a real browser. Its pictures are those of the docs."""

import asyncio
import struct
import threading
import time
import zlib
from pathlib import Path

import pytest
from google.adk.events import Event, EventActions
from google.genai import types
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from cosmosservice import CosmosSessionService
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.server import Explorer

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOSTILE = '<script>document.title="taken"</script><img src=x onerror="document.title=1">\u202egnp'
NOW = time.time()
OPENINGS = [
    "Where is my parcel?",
    "What did I spend in May?",
    "Two tickets to Lisbon, please.",
    "Change my address.",
    "Which teas have no caffeine?",
]


def png(size: int = 48) -> bytes:
    """A picture of a cup of green tea, seen from above."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    def pixel(x: int, y: int) -> bytes:
        distance = (x - size / 2) ** 2 + (y - size / 2) ** 2
        radius = size / 2
        if distance < (radius * 0.7) ** 2:
            return b"\x9c\xb8\x5a"
        return b"\xf4\xf0\xe6" if distance < (radius * 0.9) ** 2 else b"\x6b\x4a\x35"

    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(size)) for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


class Page:
    """The page, on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        meter = Meter()
        self.service = CosmosSessionService.embedded(on_request_charge=meter.charged)
        explorer = Explorer(self.service, meter, write=True)
        self._served = explorer.served()
        self.run(self.service.__aenter__())
        self.address = self.run(self._served.__aenter__())
        self.origin = self.address.partition("/open")[0]

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.run(self._served.__aexit__(None, None, None))
        self.run(self.service.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def page():
    made = Page()
    yield made
    made.close()


def event(author, *parts, turn, at, delta=None, tokens=None):
    used = tokens and types.GenerateContentResponseUsageMetadata(
        prompt_token_count=tokens[0], candidates_token_count=tokens[1]
    )
    return Event(
        author=author,
        invocation_id=turn,
        timestamp=NOW - 3600 + at,
        content=types.Content(role="user" if author == "user" else "model", parts=list(parts)),
        actions=EventActions(state_delta=delta or {}),
        usage_metadata=used,
    )


def text(words, **fields):
    return types.Part(text=words, **fields)


async def tea(service):
    session = await service.create_session(
        app_name="shop", user_id="ada", session_id="tea", state={"cart": []}
    )
    call = types.FunctionCall(name="find_tea", args={"kind": "green", "limit": 3})
    answer = types.FunctionResponse(
        name="find_tea", response={"found": ["Sencha", "Gyokuro", "Matcha"]}
    )
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=png()))
    for each in (
        event("user", text("A pot of green tea, please."), turn="1", at=0),
        event(
            "waiter",
            text("Green tea: look at what there is.", thought=True),
            types.Part(function_call=call),
            turn="1",
            at=1.2,
            tokens=(412, 38),
        ),
        event("waiter", types.Part(function_response=answer), turn="1", at=1.6),
        event(
            "waiter",
            text("There is Sencha today. Shall I bring it?"),
            image,
            turn="1",
            at=2.9,
            tokens=(521, 17),
            delta={"offer": "Sencha"},
        ),
        event("user", text("Yes, two cups."), turn="2", at=40),
        event(
            "waiter",
            text("Two cups of Sencha, at once."),
            turn="2",
            at=41.3,
            tokens=(580, 12),
            delta={"cart": ["Sencha", "Sencha"], "offer": None, "user:likes": "Sencha"},
        ),
    ):
        await service.append_event(session, each)
    await service.flush()
    return session


async def others(service):
    for number, (app, user) in enumerate(
        [("shop", "bob"), ("bank", "eve"), ("shop", "eve"), ("travel", "mallory")] * 4
    ):
        session = await service.create_session(
            app_name=app, user_id=user, session_id=f"{app}-{number:02d}"
        )
        for turn in range(1 + number % 5):
            at = -number * 7200 - 60 + turn
            await service.append_event(
                session,
                event("user", text(OPENINGS[number % len(OPENINGS)]), turn=str(turn), at=at),
            )
            await service.append_event(
                session,
                event("agent", text("Good day"), turn=str(turn), at=at + 0.5, tokens=(90, 12)),
            )
    await service.flush()


def until(browser, holds, what):
    WebDriverWait(browser, 30, 0.1).until(holds, what)


def seen(browser, *texts):
    until(
        browser,
        lambda driver: all(each in driver.find_element(By.TAG_NAME, "body").text for each in texts),
        f"not seen: {texts}",
    )


def dark(browser, wanted):
    value = "dark" if wanted else "light"
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": value}]},
    )


def picture(browser, name):
    IMAGES.mkdir(exist_ok=True)
    browser.save_screenshot(str(IMAGES / f"explore-{name}.png"))


def complaints(browser):
    return [each["message"] for each in browser.get_log("browser")]


def test_sessions_are_found_read_and_followed(page, browser):
    session = page.run(tea(page.service))
    page.run(others(page.service))
    browser.set_window_size(1280, 860)
    dark(browser, False)
    browser.get(page.address)
    seen(browser, "A pot of green tea, please.", "mallory")
    assert browser.current_url == f"{page.origin}/"  # the secret is gone from the address
    picture(browser, "sessions")

    box = browser.find_element(By.NAME, "q")
    box.send_keys("ada", Keys.ENTER)
    until(
        browser,
        lambda driver: len(driver.find_elements(By.CSS_SELECTOR, ".list tbody tr")) == 1,
        "one session of ada",
    )
    browser.find_element(By.ID, "s1").send_keys(Keys.ENTER)
    seen(browser, "A pot of green tea, please.", "Two cups of Sencha", "image/png")
    call = browser.find_element(By.CSS_SELECTOR, "details.call")
    assert "green" not in call.text
    call.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert '"kind": "green"' in call.text
    image = browser.find_element(By.CSS_SELECTOR, "figure img")
    assert browser.execute_script("return arguments[0].naturalWidth", image) == 48

    late = event("waiter", text("Anything else?"), turn="2", at=50)
    page.run(page.service.append_event(session, late))
    seen(browser, "Anything else?")  # without a reload
    assert '"kind": "green"' in browser.find_element(By.CSS_SELECTOR, "details.call").text
    assert complaints(browser) == []


def test_the_slider_shows_the_state_at_an_event_and_forks_from_there(page, browser):
    page.run(tea(page.service))
    browser.set_window_size(1280, 1000)
    dark(browser, False)
    browser.get(page.address)
    seen(browser, "tea")
    browser.get(f"{page.origin}/session?app=shop&user=ada&session=tea")
    slider = browser.find_element(By.ID, "at")
    assert slider.get_attribute("value") == "6"
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    state = browser.find_element(By.ID, "state")
    until(browser, lambda _: state.get_attribute("data-at") == "4", "the state at 4")
    assert "offer new" in " ".join(state.text.split())
    assert "at" in browser.find_element(By.ID, "e4").get_attribute("class").split()
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    until(browser, lambda _: state.get_attribute("data-at") == "6", "the state at 6")
    assert "was []" in state.text
    for summary in browser.find_elements(By.CSS_SELECTOR, "details.call summary"):
        summary.click()
    browser.execute_script("window.scrollTo(0, 0)")
    picture(browser, "session")

    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    until(browser, lambda _: "Fork after event 4" in state.text, "a button to fork")
    state.find_element(By.TAG_NAME, "button").click()
    until(browser, lambda driver: "session=tea" not in driver.current_url, "the new session")
    seen(browser, "There is Sencha today.")
    assert "Two cups" not in browser.find_element(By.TAG_NAME, "body").text
    assert complaints(browser) == []


def test_hostile_content_is_text_in_a_browser_too(page, browser):
    async def make():
        session = await page.service.create_session(
            app_name="shop", user_id=HOSTILE, session_id=HOSTILE, state={HOSTILE: HOSTILE}
        )
        said = event(HOSTILE, text(HOSTILE), turn="1", at=0, delta={"k": HOSTILE})
        await page.service.append_event(session, said)

    page.run(make())
    browser.get(page.address)
    seen(browser, '<script>document.title="taken"</script>')
    browser.find_element(By.ID, "s1").click()
    seen(browser, '<script>document.title="taken"</script>', "\\u202egnp")
    assert browser.title not in ("taken", "1")
    assert complaints(browser) == []


def test_a_script_that_would_get_in_is_not_run(page, browser):
    browser.get(page.address)
    seen(browser, "No sessions.")
    browser.execute_script(
        "const made = document.createElement('script');"
        "made.textContent = 'document.title = \"taken\"';"
        "document.body.append(made)"
    )
    assert browser.title != "taken"
    assert any("Content Security Policy" in each for each in complaints(browser))


@pytest.mark.parametrize("name", ["phone", "activity"])
def test_pages_fit_a_phone_and_have_a_dark_side(page, browser, name):
    page.run(tea(page.service))
    page.run(others(page.service))
    browser.set_window_size(500, 900)
    # The window of a browser without a head is never narrower than 500 pixels.
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    if name == "activity":
        size |= {"width": 760, "height": 900}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.address)
    seen(browser, "tea")
    path = {"phone": "/session?app=shop&user=ada&session=tea", "activity": "/activity"}[name]
    for wanted in (False, True):
        dark(browser, wanted)
        for address in ("/", path):
            browser.get(page.origin + address)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= size["width"], address
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(18, 22, 28)"
    picture(browser, name)
    assert complaints(browser) == []
