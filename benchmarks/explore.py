"""`make bench-explore`: what the page of `cosmosservice explore` costs with 10,000 sessions, one of
which has 5,000 events: requests, request units, and the time until a browser shows something."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
import time
from typing import Any

from google.adk.events import Event, EventActions
from google.genai import types
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.server import Explorer

SESSIONS = 10_000
EVENTS = 5_000
APPS = ("shop", "bank", "travel", "support")
LONG = "/session?app=shop&user=ada&session=long"
_PAINT = (
    "const found = performance.getEntriesByName('first-contentful-paint');"
    "const loaded = performance.getEntriesByType('navigation')[0];"
    "return [loaded.responseEnd, found.length ? found[0].startTime : null, loaded.transferSize]"
)


def said(text: str, at: float, **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    actions = EventActions(state_delta=delta)
    return Event(author="user", invocation_id=text, timestamp=at, content=content, actions=actions)


async def fill(service: CosmosSessionService) -> None:
    now = time.time()

    async def one(number: int) -> None:
        session = await service.create_session(
            app_name="rare" if number == SESSIONS - 1 else APPS[number % len(APPS)],
            user_id=f"user-{number % 1_000}",
            session_id=f"session-{number:05}",
        )
        await service.append_event(session, said(f"question {number}", now - number * 60))

    for start in range(0, SESSIONS, 200):
        await asyncio.gather(*map(one, range(start, start + 200)))
    long = await service.create_session(
        app_name="shop", user_id="ada", session_id="long", state={"kept": True}
    )
    for number in range(1, EVENTS + 1):
        once = {"once": number} if number == 100 else {}
        await service.append_event(long, said(f"message {number}", now, last=number, **once))
    await service.flush()


class Stand:
    """Serves the page on a thread of its own, like a process with empty caches."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.address = self._run(self._serve())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self) -> str:
        from cosmos_emulator import Emulator

        emulator = Emulator()
        async with CosmosSessionService.embedded(emulator) as writer:
            await fill(writer)
        meter = Meter()
        account = await CosmosAccount.embedded(
            emulator, on_request_charge=meter.charged
        ).__aenter__()
        self._served = Explorer(CosmosSessionService(account=account), meter).served()
        return await self._served.__aenter__()


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    return webdriver.Chrome(options, Service(shutil.which("chromedriver")))


def main() -> None:
    stand, driver = Stand(), browser()
    origin = stand.address.partition("/open")[0]
    driver.get(stand.address)
    time.sleep(1)

    def look(name: str, path: str) -> str:
        driver.get(origin + path if path.startswith("/") else path)
        time.sleep(0.3)
        answered, painted, size = driver.execute_script(_PAINT)
        text = str(driver.find_element("tag name", "footer").text)
        spent = re.search(r"([\d,]+) requests?, ([\d.,]+) request units", text)
        assert spent is not None
        print(
            f"| {name} | {spent[1]} | {spent[2]} | {answered:.0f} | {painted:.0f} |"
            f" {size / 1000:.0f} |",
            flush=True,
        )
        following = driver.find_elements("css selector", "a[rel=next]")
        return str(following[0].get_attribute("href")) if following else ""

    try:
        print("| page | requests | RU | answered, ms | first paint, ms | KB |")
        print("|---|---|---|---|---|---|")
        look("a list, the first one", "/")
        address = look("a list of 50 sessions, page 1", "/")
        for number in range(2, 200):
            if number in (100, 199):
                address = look(f"page {number}", address)
            else:
                driver.get(address)
                (found,) = driver.find_elements("css selector", "a[rel=next]")
                address = str(found.get_attribute("href"))
        look("a list of one app", "/?app=bank")
        look("a list of an app with one session", "/?app=rare")
        look("a list of one user", "/?app=shop&user=user-8")
        look("a search that finds much", "/?q=question")
        further = look("a search that finds one, far back", "/?q=question 9876")
        look("… further back", further)
        look("a search for an id, far back", "/?q=session-09876")
        look("sessions of one day", "/?from=2020-01-01&to=2020-01-02")
        look("deleted sessions", "/?deleted=yes")
        look("the newest 50 of 5,000 events", LONG)
        look("the first 50", f"{LONG}&after=0")
        look("the state at event 4,990", f"{LONG}&at=4990")
        look("… at event 4,900", f"{LONG}&at=4900")
        look("… at event 10", f"{LONG}&at=10")
        look("… at event 2,500", f"{LONG}&at=2500")
        look("… at event 2,400", f"{LONG}&at=2400")
        look("a search in it that finds much", f"{LONG}&q=message")
        look("… that finds nothing in 2,000 events", f"{LONG}&q=nowhere")
        look("a user", "/user?app=shop&user=user-8")
        look("the plots", "/activity")
        look("the plots of one app", "/activity?app=bank")
        look("the usage of an app with 2,500 sessions", "/usage?app=bank")
        look("the usage of all apps", "/usage")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
