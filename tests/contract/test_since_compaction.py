"""since_compaction: a get loads only the events that ADK's summaries do not cover."""

from __future__ import annotations

import pytest
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig

from cosmosservice.errors import StaleSessionError
from tests.support.adk import event, reload, texts
from tests.support.histories import History, prompts
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)

SAY = ("say", "agent", "")
ROLL = ("roll", 2, 0)
LONG = [SAY] * 15 + [ROLL] + [SAY] * 2


async def tell(service, session, *operations, history=None):
    """Appends a history to the session, and returns it."""
    history = history or History()
    for operation in operations:
        appended = len(history.events)
        history.follow(operation)
        for each in history.events[appended:]:
            await service.append_event(session, each)
    await service.flush()
    return history


async def start(service, app, *operations):
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    return session, await tell(service, session, *operations)


@pytest.mark.parametrize(
    "operations",
    [
        LONG,
        [SAY] * 6 + [ROLL] + [SAY] * 6 + [ROLL, SAY],
        ([SAY] * 4 + [("slide", 1, 0)]) * 4 + [SAY],
        [("wait", True, False)] + [SAY] * 8 + [ROLL, SAY, ("answer", 0, True)],
        [("call", 2, "all")] + [SAY] * 8 + [ROLL, SAY, ("answer", 0, False)],
        [("task", False, 0)] + [SAY] * 8 + [ROLL, SAY],
        [*LONG, ("rewind", 8, 0), SAY],
    ],
)
async def test_the_prompt_is_the_same_as_with_everything(store, app, operations):
    writer = store.open()
    session, history = await start(writer, app, *operations)
    whole = await reload(store.open(), session)
    part = await reload(store.open(since_compaction=True), session)
    assert prompts(part.events, history.scopes) == prompts(whole.events, history.scopes)
    assert part.state == whole.state
    assert part.last_update_time == whole.last_update_time
    assert [each for each in whole.events if each in part.events] == part.events


async def test_what_the_summary_covers_is_not_there_and_the_session_can_be_appended_to(store, app):
    session, _ = await start(store.open(), app, *LONG)
    service, other = store.open(since_compaction=True), store.open()
    part = await reload(service, session)
    assert len(part.events) < 15 < len(session.events)
    await service.append_event(part, event("goes on", delta={"k": 1}))
    again, whole = await reload(service, session), await reload(other, session)
    assert texts(again)[-1] == texts(whole)[-1] == "goes on"
    assert len(whole.events) == len(session.events) + 1
    assert again.events == part.events
    with pytest.raises(StaleSessionError):
        await other.append_event(session, event("too late"))


async def test_a_get_with_a_config_is_as_always(store, app):
    session, _ = await start(store.open(), app, *LONG)
    service = store.open(since_compaction=True)
    for cold in (True, False):
        found = service if not cold else store.open(since_compaction=True)
        every = await found.get_session(
            app_name=app, user_id="ann", session_id="s", config=GetSessionConfig()
        )
        assert every.events == session.events
        assert (await reload(found, session, recent=2)).events == session.events[-2:]
        assert len((await reload(found, session)).events) < 15


async def test_a_process_that_knows_the_session_sees_what_others_summarise(store, app):
    writer, reader = store.open(), store.open(since_compaction=True)
    session, history = await start(writer, app, *[SAY] * 12)
    assert len((await reload(reader, session)).events) == 24
    await tell(writer, session, ROLL, SAY, history=history)
    for _ in range(2):
        part = await reload(reader, session)
        assert prompts(part.events, []) == prompts(session.events, [])
        assert len(part.events) < 15
    await tell(writer, session, *[SAY] * 4, ROLL, SAY, history=history)
    part = await reload(reader, session)
    assert prompts(part.events, []) == prompts(session.events, [])


async def test_summaries_that_nobody_has_looked_at_are_found_by_a_reader(store, app):
    """The writer does not have the events that the summary covers: it loads none."""
    session, history = await start(store.open(), app, *[SAY] * 12)
    writer, reader = store.open(recent_events=0), store.open(since_compaction=True)
    await tell(writer, await reload(writer, session), ROLL, SAY, history=history)
    assert len((await reload(reader, session)).events) == len(history.events)
    await reader.flush()
    part = await reload(store.open(since_compaction=True), session)
    assert len(part.events) < 15
    assert prompts(part.events, []) == prompts(history.events, [])


@pytest.mark.parametrize("options", [{"since_compaction": True}, {"recent_events": 4}])
async def test_a_rewind_of_a_session_without_all_its_events_is_refused(store, app, options):
    session, _ = await start(store.open(), app, *LONG)
    service = store.open(**options)
    part = await reload(service, session)
    rewind = event(actions=EventActions(rewind_before_invocation_id="turn 16"))
    with pytest.raises(ValueError, match="a rewind needs a session with all its events"):
        await service.append_event(part, rewind)
    whole = await service.get_session(
        app_name=app, user_id="ann", session_id="s", config=GetSessionConfig()
    )
    assert whole.events == session.events
    await service.append_event(whole, rewind)
    assert len((await reload(store.open(), session)).events) == len(session.events) + 1


async def test_a_deleted_session_is_gone_and_comes_back_as_it_was(store, app):
    session, _ = await start(store.open(), app, *LONG)
    who = {"app_name": app, "user_id": "ann", "session_id": "s"}
    service = store.open(since_compaction=True)
    part = await reload(service, session)
    await store.open().delete_session(**who)
    assert await service.get_session(**who) is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(part, event("too late"))
    await service.restore_session(**who)
    assert (await service.get_session(**who)).events == part.events


async def test_a_session_created_anew_begins_anew(store, app):
    session, _ = await start(store.open(), app, *LONG)
    who = {"app_name": app, "user_id": "ann", "session_id": "s"}
    service = store.open(since_compaction=True)
    await reload(service, session)
    other = store.open()
    await other.delete_session(**who)
    again = await other.create_session(**who)
    await other.append_event(again, event("new"))
    assert texts(await reload(service, session)) == ["new"]


async def test_all_events_are_iterated(store, app):
    session, _ = await start(store.open(), app, *LONG)
    service = store.open(since_compaction=True)
    await reload(service, session)
    found = service.iter_events(app_name=app, user_id="ann", session_id="s", page_size=7)
    assert [each async for each in found] == session.events
