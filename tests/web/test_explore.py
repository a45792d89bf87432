"""The page of `cosmosservice explore`, in a real browser. The docs use its screenshots."""

import asyncio
import base64
import threading
import time
from pathlib import Path

import pytest
from google.adk.events import Event, EventActions
from google.genai import types
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.server import Explorer
from tests.explore import demo

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOSTILE = '<script>document.title="taken"</script><img src=x onerror="document.title=1">\u202egnp'
NAMES = {"app_name": "travel", "user_id": "ada.lovelace", "session_id": "lisbon-in-may"}
TRIP = "/session?app=travel&user=ada.lovelace&session=lisbon-in-may"
USER = "/user?app=travel&user=ada.lovelace"
ARTIFACT = TRIP.replace("/session", "/artifact") + "&name=itinerary.md"
OPENING = "I would like to spend four days in Lisbon in the middle of May."
COMPARED = TRIP.replace("/session", "/compare") + "&other=lisbon-in-may"
EDITED = TRIP.replace("/session", "/edit") + "&at=4"
LONG_USER = "8f14e45f-ceea-467f-a8f9-3f1f0b9c2d11%40customers.example-company.com"
ORDERS = f"/session?app=support&user={LONG_USER}&session=order-storage"
EVERYWHERE = [
    *("/", "/?q=none", TRIP, f"{TRIP}&at=6", f"{TRIP}&q=flight", ORDERS, USER, ARTIFACT),
    *(COMPARED, EDITED, "/activity", "/usage", "/usage?app=travel", "/session"),
]


class Page:
    """Serves the page on a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._serve())

    async def _serve(self) -> None:
        meter = Meter()
        self._account = CosmosAccount.embedded(on_request_charge=meter.charged)
        await self._account.__aenter__()
        self.service = CosmosSessionService(account=self._account)
        self.dependants = await Dependants.on(self._account)
        self._served = Explorer(self.service, meter, self.dependants, write=True).served()
        self.address = await self._served.__aenter__()
        self.origin = self.address.partition("/open")[0]

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def fill(self, count=7):
        return self.run(demo.fill(self.service, self.dependants, count=count))

    def say(self, session, text, **fields):
        content = types.Content(role="model", parts=[types.Part(text=text)])
        said = Event(author="planner", content=content, **fields)
        self.run(self.service.append_event(session, said))

    async def _end(self) -> None:
        await self._served.__aexit__(None, None, None)
        await self._account.__aexit__(None, None, None)

    def close(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def page():
    made = Page()
    yield made
    made.close()


def until(browser, holds, what):
    WebDriverWait(browser, 30, 0.1).until(holds, what)


def text_of(browser, selector="body"):
    return browser.find_element(By.CSS_SELECTOR, selector).text


def seen(browser, *texts):
    until(
        browser,
        lambda driver: all(each in text_of(driver) for each in texts),
        f"not seen: {texts}",
    )


def go(page, browser, path):
    browser.get(page.address)
    until(browser, lambda driver: driver.current_url == f"{page.origin}/", "the first page")
    browser.get(page.origin + path)


def dark(browser, wanted):
    value = "dark" if wanted else "light"
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": value}]},
    )


def screen(browser, width, height):
    # The window of a headless browser is never narrower than 500 pixels.
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})


def picture(browser, name):
    """WebP: a third of the size of a PNG."""
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 82})
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / f"explore-{name}.webp").write_bytes(base64.b64decode(taken["data"]))


def complaints(browser):
    return [each["message"] for each in browser.get_log("browser")]


def is_live(browser):
    until(browser, lambda driver: text_of(driver, "#live") == "live", "the feed is watched")


def test_sessions_are_found_and_read(page, browser):
    page.fill(count=34)
    screen(browser, 1200, 760)
    dark(browser, False)
    browser.get(page.address)
    seen(browser, OPENING, "مريم")
    assert browser.current_url == f"{page.origin}/"  # the secret is gone from the address
    is_live(browser)
    picture(browser, "sessions")

    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    box = browser.switch_to.active_element
    assert box.get_attribute("id") == "q"
    box.send_keys("lisbon-in", Keys.ENTER)
    rows = (By.CSS_SELECTOR, ".list tbody tr")
    until(browser, lambda driver: len(driver.find_elements(*rows)) == 1, "one session")
    browser.find_element(By.CSS_SELECTOR, ".list .title").send_keys(Keys.ENTER)
    seen(browser, "There are two flights", "RESOURCE_EXHAUSTED", "find_hotels failed")
    call = browser.find_element(By.CSS_SELECTOR, "details.call")
    assert '"origin": "London"' not in call.text
    call.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert '"origin": "London"' in call.text
    for source in ("data:", "/artifact"):  # in the conversation, and an artifact
        image = browser.find_element(By.CSS_SELECTOR, f"figure img[src^='{source}']")
        browser.execute_script("arguments[0].scrollIntoView()", image)
        until(browser, lambda _, image=image: image.get_property("naturalWidth") == 300, "an image")
    artifact = browser.find_element(By.CSS_SELECTOR, "details.artifact")
    artifact.find_element(By.TAG_NAME, "summary").click()
    until(browser, lambda _: "BA 502, 10:35" in artifact.text, "the itinerary")
    browser.find_element(By.ID, "raw1").click()
    until(browser, lambda driver: '"adk_event"' in text_of(driver, "#e1"), "a document")
    browser.find_element(By.ID, "raw1").click()
    assert '"adk_event"' not in text_of(browser, "#e1")
    assert complaints(browser) == []


def test_an_open_session_is_followed(page, browser):
    session = page.fill()
    go(page, browser, TRIP)
    is_live(browser)
    browser.find_element(By.CSS_SELECTOR, "details.call summary").click()
    page.say(session, "Anything else?", actions=EventActions(state_delta={"asked": True}))
    seen(browser, "Anything else?", "13 events", "asked")  # without a reload
    assert '"origin": "London"' in text_of(browser, "details.call")  # what was open stays open
    slider = browser.find_element(By.ID, "slider")
    assert (slider.get_attribute("value"), slider.get_attribute("max")) == ("13", "13")

    slider.send_keys(Keys.HOME)
    until(browser, lambda driver: "at the beginning" in text_of(driver, "#state"), "the beginning")
    page.say(session, "Hello?")
    seen(browser, "There are newer events.")  # a reader of the past stays there
    assert slider.get_attribute("max") == "14"
    assert "Hello?" not in text_of(browser)
    browser.find_element(By.LINK_TEXT, "Show them").click()
    seen(browser, "Hello?")
    assert complaints(browser) == []


def test_an_open_list_is_followed_also_after_the_network_was_gone(page, browser):
    page.fill()
    browser.get(page.address)
    is_live(browser)
    focused = browser.find_element(By.PARTIAL_LINK_TEXT, OPENING)
    browser.execute_script("arguments[0].focus()", focused)
    here = focused.get_attribute("href")

    async def make(session_id):
        session = await page.service.create_session(
            app_name="new app", user_id="eve", session_id=session_id
        )
        said = types.Content(role="user", parts=[types.Part(text=f"I am {session_id}")])
        await page.service.append_event(session, Event(author="user", content=said))

    page.run(make("the first one"))
    seen(browser, "I am the first one")
    assert browser.switch_to.active_element.get_attribute("href") == here
    condition = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", condition | {"offline": True})
    page.run(make("the second one"))
    until(browser, lambda driver: text_of(driver, "#live") != "live", "the network is gone")
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", condition | {"offline": False})
    seen(browser, "I am the second one")
    page.run(
        page.service.delete_session(app_name="new app", user_id="eve", session_id="the first one")
    )
    until(browser, lambda driver: "I am the first one" not in text_of(driver), "it is deleted")


def test_the_slider_shows_the_state_at_an_event_and_forks_from_there(page, browser):
    page.fill()
    screen(browser, 1200, 900)
    dark(browser, False)
    go(page, browser, TRIP)
    slider = browser.find_element(By.ID, "slider")
    assert slider.get_attribute("value") == "12"
    slider.send_keys(*[Keys.ARROW_LEFT] * 6)
    state = browser.find_element(By.ID, "state")
    until(browser, lambda _: state.get_attribute("data-at") == "6", "the state at 6")
    assert "2 changes by event 6" in state.text
    assert 'offers\nchanged\nnull\nwas ["BA 502", "TP 1351"]' in state.text
    assert "event 6, planner" in slider.get_attribute("aria-valuetext")
    assert "at" in browser.find_element(By.ID, "e6").get_attribute("class").split()
    assert browser.current_url.endswith("&at=6")
    browser.execute_script("window.scrollTo(0, 0); document.activeElement.blur()")
    is_live(browser)
    picture(browser, "session")

    browser.find_element(By.TAG_NAME, "body").send_keys("k")
    until(browser, lambda _: state.get_attribute("data-at") == "5", "the state at 5")
    browser.find_element(By.ID, "back").click()
    until(browser, lambda _: "Fork after event 4" in state.text, "a button to fork")
    browser.find_element(By.CSS_SELECTOR, "#e4 button[form=fork]").click()
    until(browser, lambda driver: "lisbon-in-may" not in driver.current_url, "the new session")
    seen(browser, "There are two flights")
    assert "Are you still there?" not in text_of(browser)
    assert complaints(browser) == []


def test_the_slider_goes_to_events_that_are_not_on_the_page(page, browser):
    async def make():
        session = await page.service.create_session(app_name="a", user_id="u", session_id="s")
        for number in range(1, 131):
            said = types.Content(role="user", parts=[types.Part(text=f"message {number}.")])
            actions = EventActions(state_delta={"n": number})
            event = Event(author="user", content=said, actions=actions)
            await page.service.append_event(session, event)

    page.run(make())
    go(page, browser, "/session?app=a&user=u&session=s")
    assert "message 60." not in text_of(browser)
    box = browser.find_element(By.ID, "at")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("60", Keys.ENTER)
    seen(browser, "message 60.", "1 change by event 60")
    assert "message 130." not in text_of(browser)
    assert complaints(browser) == []


def test_a_user_is_shown_and_erased_by_typing_the_id(page, browser):
    page.fill()
    screen(browser, 1200, 1000)
    dark(browser, False)
    go(page, browser, USER)
    seen(browser, "river views", "itinerary.md", "versions 1 0", "I have put everything")
    box = browser.find_element(By.NAME, "memory")
    box.send_keys("which hotel near the river", Keys.ENTER)
    seen(browser, "the best first", "Is there a hotel near the river")
    browser.execute_script("window.scrollTo(0, 0)")
    picture(browser, "user")
    confirm = browser.find_element(By.NAME, "confirm")
    confirm.send_keys("ada", Keys.ENTER)
    seen(browser, "Nothing was erased.")
    browser.back()
    confirm = browser.find_element(By.NAME, "confirm")
    confirm.clear()
    confirm.send_keys("ada.lovelace", Keys.ENTER)
    seen(browser, "Erased.", "2 sessions, state, memories and artifacts")
    browser.get(page.origin + USER)
    seen(browser, "No sessions.", "None yet.")


def test_hostile_content_is_text_in_a_browser_too(page, browser):
    async def make():
        session = await page.service.create_session(
            app_name="shop", user_id=HOSTILE, session_id=HOSTILE, state={HOSTILE: HOSTILE}
        )
        said = types.Content(
            role="user", parts=[types.Part(text=f"{HOSTILE} \x1b[31mred {'W' * 500}")]
        )
        actions = EventActions(state_delta={"k": HOSTILE, "K" * 300: "v" * 300})
        event = Event(author=HOSTILE, content=said, actions=actions)
        await page.service.append_event(session, event)

    page.run(make())
    browser.get(page.address)
    script = '<script>document.title="taken"</script>'
    seen(browser, script)
    # A list that is followed may be replaced between finding the link and clicking it.
    browser.execute_script("document.querySelector('.list .title').click()")
    seen(browser, script, "\\u202egnp", "\\x1b[31mred")
    browser.find_element(By.ID, "raw1").click()
    until(browser, lambda driver: '"adk_event"' in text_of(driver, "#e1"), "a document")
    browser.find_element(By.LINK_TEXT, "#1").click()
    until(browser, lambda driver: "&at=1" in driver.current_url, "the state at 1")
    assert browser.title not in ("taken", "1")
    screen(browser, 390, 800)
    for path in ("/", browser.current_url.removeprefix(page.origin)):  # nothing is too wide
        browser.get(page.origin + path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert complaints(browser) == []


def test_a_script_that_would_get_in_is_not_run(page, browser):
    browser.get(page.address)
    seen(browser, "No sessions yet.")
    browser.execute_script(
        "const made = document.createElement('script');"
        "made.textContent = 'document.title = \"taken\"';"
        "document.body.append(made)"
    )
    assert browser.title != "taken"
    assert any("Content Security Policy" in each for each in complaints(browser))


AXE = Path(__file__).parents[2] / ".axe" / "node_modules" / "axe-core" / "axe.min.js"
# WCAG 2.2 AA, which includes the levels and versions before it.
VIOLATIONS = """
const done = arguments[0];
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
axe.run({ runOnly: rules, resultTypes: ["violations"] }).then((found) => done(
  found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html}`))));
"""


@pytest.mark.parametrize("width", [360, 1200])
def test_every_page_fits_and_is_accessible_in_light_and_dark(page, browser, width):
    page.fill()
    screen(browser, width, 740 if width == 360 else 800)
    browser.get(page.address)
    seen(browser, OPENING)
    for wanted in (False, True):
        dark(browser, wanted)
        for path in EVERYWHERE:
            browser.get(page.origin + path)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, path
            for element in browser.find_elements(By.CSS_SELECTOR, "details:not([data-load])"):
                browser.execute_script("arguments[0].open = true", element)
            browser.execute_script(AXE.read_text("utf-8"))
            assert browser.execute_async_script(VIOLATIONS) == [], (path, wanted)
            assert len(browser.find_elements(By.TAG_NAME, "h1")) == 1, path


def test_a_long_session_opens_at_its_end_and_new_events_are_in_view(page, browser):
    async def make():
        session = await page.service.create_session(app_name="a", user_id="u", session_id="s")
        for number in range(1, 31):
            said = types.Content(role="user", parts=[types.Part(text=f"message {number}.")])
            await page.service.append_event(session, Event(author="user", content=said))
        return session

    session = page.run(make())
    in_view = (
        "const box = document.getElementById(arguments[0])?.getBoundingClientRect();"
        "return !!box && box.top >= 0 && box.bottom <= innerHeight"
    )
    screen(browser, 1200, 800)
    go(page, browser, "/session?app=a&user=u&session=s")
    is_live(browser)
    until(browser, lambda driver: driver.execute_script(in_view, "e30"), "the last event")
    page.say(session, "Something new.")
    until(browser, lambda driver: driver.execute_script(in_view, "e31"), "the new event")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.HOME)
    until(browser, lambda driver: driver.execute_script("return scrollY") == 0, "the beginning")
    page.say(session, "Something newer.")
    seen(browser, "There are newer events below.")
    assert browser.execute_script("return scrollY") == 0  # a reader of earlier events stays there


def test_texts_are_copied_unfolded_and_searched(page, browser):
    page.fill(count=1)
    go(page, browser, ORDERS)
    browser.execute_script(
        "window.copies = []; navigator.clipboard.writeText = async (text) => copies.push(text)"
    )
    browser.find_element(By.CSS_SELECTOR, "#e4 .md button.copy").click()
    browser.find_element(By.CSS_SELECTOR, "#e1 button.copy").click()
    copies = browser.execute_script("return copies")
    assert copies[0].startswith("def apply(view")
    assert copies[1].startswith("How should we keep")
    long = browser.find_element(By.ID, "e6-1")
    folded = long.size["height"]
    browser.find_element(By.CSS_SELECTOR, "#e6 button.unfold").click()
    assert long.size["height"] > 2 * folded
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    browser.switch_to.active_element.send_keys("truth", Keys.ENTER)
    seen(browser, "1 event found in 6 events.")
    assert text_of(browser, "mark") == "truth"
    assert complaints(browser) == []


def test_keys_are_explained_and_colours_are_kept(page, browser):
    page.fill(count=1)
    dark(browser, False)
    go(page, browser, TRIP)
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("?")
    seen(browser, "next error")
    browser.find_element(By.CSS_SELECTOR, "dialog button").click()
    for number in (8, 9, 8):  # the second one, too, and around
        body.send_keys("e")
        top = f"return document.getElementById('e{number}').getBoundingClientRect().top"
        until(browser, lambda driver, top=top: 0 <= driver.execute_script(top) < 30, top)
    back = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(back)
    body.send_keys("t", "t")
    assert browser.execute_script(back) != light
    browser.refresh()
    assert browser.execute_script(back) != light
    browser.find_element(By.TAG_NAME, "body").send_keys("t")
    assert browser.execute_script(back) == light


def test_an_edited_message_continues_in_a_fork_that_is_compared(page, browser):
    page.fill(count=1)
    go(page, browser, EDITED)
    box = browser.find_element(By.NAME, "message")
    box.clear()
    box.send_keys("There is one flight.")
    browser.find_element(By.CSS_SELECTOR, "form.edit button").click()
    seen(browser, "There is one flight.", "Forked from lisbon-in-may after event 3")
    browser.find_element(By.LINK_TEXT, "Compare them").click()
    seen(browser, "3 events the same", "Two sessions")
    assert complaints(browser) == []


def test_what_has_the_focus_is_seen(page, browser):
    page.fill()
    go(page, browser, TRIP)
    stops = []
    for _ in range(20):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        focused = browser.switch_to.active_element
        stops.append(focused.text or focused.get_attribute("aria-label"))
        ring = browser.execute_script(
            "const s = getComputedStyle(document.activeElement);"
            "return [s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        assert ring[0] != "none", stops
        assert ring[1] >= 2, stops
    assert stops[0] == "Skip to the content"
    assert "Sessions" in stops


def test_pictures_of_a_phone_and_of_the_plots(page, browser):
    page.fill(count=34)
    dark(browser, True)
    screen(browser, 390, 780)
    go(page, browser, f"{TRIP}&at=6")
    is_live(browser)
    assert browser.execute_script("return scrollY") > 0  # at the event
    picture(browser, "phone")
    dark(browser, False)
    screen(browser, 1200, 800)
    browser.get(f"{page.origin}/activity")
    seen(browser, "Turns a day")
    time.sleep(0.3)
    picture(browser, "activity")
    assert complaints(browser) == []
