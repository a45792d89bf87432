"""One session: the conversation, the state at any event, and the documents."""

from __future__ import annotations

import re

import pytest
from google.adk.events import Event, EventActions
from google.genai import types

from cosmos_emulator import Emulator, Replicas
from cosmosservice import CosmosSessionService
from cosmosservice.explore.session_log import SessionLog
from cosmosservice.sessions.store.keys import SessionKey
from tests.explore.support import names, read
from tests.support.adk import event
from tests.support.raw import raw_store

PNG = bytes.fromhex("89504e470d0a1a0a")


def reply(*parts, **fields):
    content = types.Content(role="model", parts=list(parts))
    return Event(author="waiter", invocation_id="turn", content=content, **fields)


async def conversation(service):
    session = await service.create_session(
        app_name="shop", user_id="ada", session_id="first", state={"cart": []}
    )
    call = types.Part(function_call=types.FunctionCall(name="fetch", args={"what": "tea"}))
    answer = types.Part(
        function_response=types.FunctionResponse(name="fetch", response={"price": 3})
    )
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1200, candidates_token_count=34
    )
    await service.append_event(
        session, event("Tea, please", invocation_id="turn", timestamp=1_700_000_000.0)
    )
    events = [
        reply(types.Part(text="They want tea", thought=True), call, timestamp=1_700_000_001.5),
        reply(
            answer,
            timestamp=1_700_000_002.0,
            actions=EventActions(state_delta={"cart": ["tea"], "user:name": "Ada"}),
        ),
        reply(
            types.Part(text="Here you are"),
            types.Part(inline_data=types.Blob(mime_type="image/png", data=PNG)),
            types.Part(inline_data=types.Blob(mime_type="image/svg+xml", data=b"<svg/>")),
            timestamp=1_700_000_003.0,
            usage_metadata=used,
            actions=EventActions(state_delta={"served": True}),
        ),
        reply(timestamp=1_700_000_004.0, error_code="BLOCKED", error_message="Not that"),
    ]
    for each in events:
        await service.append_event(session, each)
    return session


async def long_session(service, count):
    session = await service.create_session(app_name="shop", user_id="ada", session_id="long")
    for number in range(1, count + 1):
        await service.append_event(session, event(f"message {number}.", delta={"n": number}))
    await service.flush()
    return session


async def test_the_conversation_reads_as_it_was_held(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    page = await visitor.get("/session", **names(session))
    text = read(page)
    assert '<h1 id="title"><bdi>Tea, please</bdi></h1>' in page  # though no document says so yet
    shown = [
        *("Tea, please", "Thought", "They want tea", "Calls fetch", '"what": "tea"'),
        *("fetch returned", '"price": 3', "Here you are", "image/png, 8 bytes"),
        *("image/svg+xml, 6 bytes", "BLOCKED Not that"),
    ]
    offsets = [text.index(each) for each in shown]
    assert offsets == sorted(offsets)
    assert "4.0 s 1,200 tokens in, 34 out ≈ 28 RU" in text
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in page
    assert "data:image/svg" not in page


async def test_calls_results_and_thoughts_are_folded(visit):
    visitor = await visit()
    page = await visitor.get("/session", **names(await conversation(visitor.service)))
    folded = re.findall(r"<details id=\S+ class=\"(\w+)\">", page)
    assert folded == ["thought", "call", "result"]


async def test_the_state_at_an_event_and_what_it_changed(visit):
    visitor = await visit()
    session = await conversation(visitor.service)

    async def state(at):
        found = await visitor.get("/state", **names(session), at=at)
        return read(found.partition("Shared with")[0])

    assert await state(0) == "State at the beginning cart []"
    assert await state(1) == "State not changed by event 1 cart []"
    assert await state(3) == 'State 2 changes by event 3 cart changed ["tea"] was []'
    assert await state(4) == 'State 1 change by event 4 cart ["tea"] served new true'
    for path in ("/session", "/state"):
        page = await visitor.get(path, **names(session), at=3)
        assert 'as it is now user:name changed "Ada"' in read(page)
        assert 'as it is now user:name "Ada"' in read(
            await visitor.get(path, **names(session), at=4)
        )
    page = await visitor.get("/session", **names(session), at=3)
    assert 'cart changed ["tea"] was []' in read(page)
    assert 'value="3"' in page
    assert "user:name" in read(page)
    status, text = await visitor.answer("/state", params={**names(session), "at": "99"})
    assert (status, "The session has the revisions 0 to 5." in text) == (400, True)


async def test_a_large_state_is_shown_in_part(visit):
    visitor = await visit()
    state = {f"key {number:04}": "x" * 3_000 for number in range(400)}
    session = await visitor.service.create_session(app_name="shop", user_id="ada", state=state)
    delta = {"key 0399": "changed"}
    await visitor.service.append_event(session, event("hello", delta=delta))
    page = await visitor.get("/session", **names(session))
    assert 'key 0399 changed "changed"' in read(page)
    assert "100 more keys." in read(page)
    assert "(1,002 more characters)" in read(page)
    assert len(page) < 1_000_000


async def test_a_deleted_session_shows_its_state_too(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    await visitor.service.flush()
    where = {"app_name": "shop", "user_id": "ada", "session_id": "first"}
    await visitor.service.delete_session(**where)
    page = read(await visitor.get("/session", **names(session), at=3))
    assert "This session is deleted." in page
    assert 'cart changed ["tea"] was []' in page


async def test_a_long_session_is_read_a_page_at_a_time(visit, emulator):
    writer = await visit()
    session = await long_session(writer.service, 130)
    visitor = await visit()  # a process with empty caches
    newest = await visitor.get("/session", **names(session))
    assert "message 130." in newest
    assert "message 80." not in newest
    sent = [each for each in emulator.requests if each.operation == "query"]
    emulator.clear_requests()
    earlier = re.search(r'rel="prev" href="([^"]*)"', newest)[1].replace("&amp;", "&")
    _, middle = await visitor.answer(earlier)
    assert "message 80." in middle
    assert "message 31." in middle
    assert "message 30." not in middle
    assert len([each for each in emulator.requests if each.operation == "query"]) <= len(sent)
    first = await visitor.get("/session", **names(session), after=0)
    assert "message 1." in first
    assert "message 51." not in first
    around = await visitor.get("/session", **names(session), at=60)
    assert "message 60." in around


async def test_a_page_of_a_long_session_needs_as_few_requests_as_one_of_a_short_one(visit):
    writer = await visit()
    needed = []
    for count in (55, 160):
        service = writer.service
        session = await service.create_session(app_name="shop", user_id="ada")
        for number in range(count):
            await service.append_event(session, event(str(number)))
        await service.flush()
        visitor = await visit()
        await visitor.get("/")  # connects
        page = await visitor.get("/session", **names(session))
        needed.append(int(re.search(r"(\d+) requests?, ", page)[1]))
    assert needed[0] == needed[1]
    assert needed[0] <= 8


async def test_a_session_without_events_is_shown_with_its_state_and_nothing_is_written(
    visit, emulator
):
    writer = await visit()
    session = await writer.service.create_session(
        app_name="shop", user_id="ada", state={"topic": "tea"}
    )
    visitor = await visit()
    emulator.clear_requests()
    assert session.id in await visitor.get("/")
    assert 'topic "tea"' in read(await visitor.get("/session", **names(session)))
    await visitor.service.flush()
    reading = {"read", "list", "query", "query plan"}
    assert {each.operation for each in emulator.requests} <= reading


async def test_raw_documents_are_shown_on_demand(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    assert '"document_type": "session"' in read(await visitor.get("/raw", **names(session)))
    text = read(await visitor.get("/raw", **names(session), revision=1))
    assert '"document_type": "adk_event"' in text
    assert "Tea, please" in text
    status, _ = await visitor.answer("/raw", params={**names(session), "revision": 99})
    assert status == 404


async def test_a_session_that_is_not_there_is_said_so(visit):
    visitor = await visit()
    status, text = await visitor.answer(
        "/session", params={"app": "shop", "user": "ada", "session": "none"}
    )
    assert (status, "Session none not found." in text) == (404, True)
    status, text = await visitor.answer("/session", params={"app": "shop"})
    assert (status, "The session id is empty." in text) == (400, True)


@pytest.mark.parametrize("may_write", [True, False])
async def test_a_record_that_something_else_removed_hides_no_other(visit, emulator, may_write):
    """An identity that may only read cannot probe."""
    writer = CosmosSessionService.embedded(emulator)
    session = await writer.create_session(app_name="shop", user_id="ada", session_id="first")
    for number in range(1, 6):
        await writer.append_event(session, event(f"message {number}", delta={"n": number}))
    await writer.close()
    with raw_store(emulator) as raw:
        raw.events.remove(raw.events.one(seq=3))
    visitor = await visit()
    if not may_write:
        emulator.faults.fail(403, times=None, operation="replace")
    for at in ({}, {"at": 4}):
        page = read(await visitor.get("/session", **names(session), **at))
        assert [n for n in range(1, 6) if f"message {n}" in page] == [1, 2, 4, 5]


async def test_a_page_of_a_replica_that_lags_is_whole():
    who = {"app_name": "shop", "user_id": "ada", "session_id": "first"}
    with Emulator(replicas=Replicas()) as emulator:
        async with (
            CosmosSessionService.embedded(emulator) as writer,
            CosmosSessionService.embedded(emulator) as reader,
        ):
            session = await writer.create_session(**who)
            emulator.replicas.hold("events")
            for number in range(5):
                await writer.append_event(session, event(f"message {number}"))
            await writer.flush()
            log = SessionLog(reader, SessionKey.of(**who))
            page = await log.page(await log.head())
            assert [entry.event for entry in page.entries] == session.events
