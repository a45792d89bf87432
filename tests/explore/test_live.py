"""Open pages get new events from the feed."""

from __future__ import annotations

import asyncio
import html
import json
import re
from contextlib import asynccontextmanager

import pytest

from cosmosservice.explore import live
from cosmosservice.explore.live import Listener
from cosmosservice.explore.rendering import anchor
from cosmosservice.sessions.store.keys import SessionKey
from tests.explore.support import names
from tests.support.adk import event

SHOP = {"app_name": "shop", "user_id": "ada"}


class Stream:
    """What a browser's EventSource reads."""

    def __init__(self, response):
        self._lines = response.content

    async def next(self, wanted):
        """The data of the next message of a kind."""
        kind = ""
        async with asyncio.timeout(20):
            async for line in self._lines:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                if name.startswith("data") and kind == wanted:
                    return json.loads(value) if value else None
        raise AssertionError(f"no {wanted}: the stream has ended")


@asynccontextmanager
async def stream(visitor, path="/", **parameters):
    """The stream of a page."""
    page = await visitor.get(path, **parameters)
    address = html.unescape(re.search(r'data-live="([^"]*)"', page)[1])
    async with visitor.http.get(visitor.origin + address) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        yield Stream(response)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("cosmosservice.explore.streams._REST", 0.01)
    monkeypatch.setattr("cosmosservice.explore.streams._LOOK", 0.05)
    monkeypatch.setattr("cosmosservice.explore.server.Live", lambda s: live.Live(s, 0.02))


async def make(service, session_id="s", **where):
    return await service.create_session(**(SHOP | where), session_id=session_id)


async def test_a_list_gets_changes_of_every_app_and_a_session_its_own(visit):
    visitor = await visit()
    one, other = await make(visitor.service), await make(visitor.service, "t", app_name="bank")
    async with (
        stream(visitor) as everything,
        stream(visitor, app="bank") as bank,
        stream(visitor, "/session", **names(one)) as alone,
    ):
        for each in (everything, bank, alone):
            await each.next("live")
        assert visitor.explorer.live.watches == 2  # one for both lists
        await visitor.service.append_event(other, event("of the bank"))
        await visitor.service.append_event(one, event("of the shop"))
        changed = await everything.next("changed")
        if len(changed) < 2:
            changed |= await everything.next("changed")
        keys = [SessionKey.named(each.app_name, each.user_id, each.id) for each in (one, other)]
        assert changed == {anchor(keys[0]): 1, anchor(keys[1]): 1}
        assert await alone.next("changed") == {anchor(keys[0]): 1}
        assert await bank.next("changed") == {anchor(keys[1]): 1}


async def test_a_watch_ends_when_nobody_looks(visit, emulator):
    visitor = await visit()
    opened = {"path": "/session"} | names(await make(visitor.service))
    async with stream(visitor), stream(visitor), stream(visitor, **opened) as last:
        await last.next("live")
    for _ in range(1_000):
        if not visitor.explorer.live.watches:
            break
        await asyncio.sleep(0.02)
    emulator.clear_requests()
    await asyncio.sleep(0.1)
    assert list(emulator.requests) == []


async def test_changes_between_the_page_and_the_watch_are_reported(visit):
    visitor = await visit()
    session = await make(visitor.service)
    page = await visitor.get("/session", **names(session))
    await visitor.service.append_event(session, event("one"))
    visitor.get = returning(page)
    async with stream(visitor) as late:
        assert await late.next("changed") == {}  # look again


def returning(page):
    async def get(path, **parameters):
        return page

    return get


async def test_it_goes_on_after_throttling(visit, emulator):
    visitor = await visit()
    session = await make(visitor.service)
    async with stream(visitor, "/session", **names(session)) as events:
        await events.next("live")
        emulator.faults.throttle(retry_after_ms=1, operation="change feed", times=30)
        await visitor.service.append_event(session, event("one"))
        assert list((await events.next("changed")).values()) == [1]


async def test_a_store_that_cannot_be_read_at_first_is_waited_for(visit, emulator, monkeypatch):
    monkeypatch.setattr(live, "_PAUSES", live.Retry(1, first_pause=0.01, longest_pause=0.05))
    visitor = await visit()
    session = await make(visitor.service)
    emulator.faults.fail(403, operation="change feed", times=2)
    async with stream(visitor, "/session", **names(session)) as events:
        await events.next("waiting")
        await events.next("live")
        assert await events.next("changed") == {}  # what was missed is unknown
        await visitor.service.append_event(session, event("one"))
        assert list((await events.next("changed")).values()) == [1]


async def test_the_number_of_open_pages_is_bounded(visit, monkeypatch):
    monkeypatch.setattr(live, "MOST_LISTENERS", 1)
    visitor = await visit()
    async with stream(visitor) as events:
        await events.next("live")
        status, text = await visitor.answer("/live")
        assert (status, "Too many pages are open." in text) == (503, True)


async def test_a_page_that_does_not_read_takes_a_bounded_amount_of_memory():
    listener = Listener(lambda key: True)
    for number in range(10_000):
        listener.changed(SessionKey("app", "user", str(number)), 1)
    news = await listener.news(0.01)
    assert (len(news.changed), news.missed) == (100, True)
    assert not await listener.news(0.01)


async def test_streams_end_with_the_server(visit):
    visitor = await visit()
    async with stream(visitor) as events:
        await events.next("live")
        visitor.explorer.live.close()
        with pytest.raises(AssertionError, match="the stream has ended"):
            await events.next("changed")
