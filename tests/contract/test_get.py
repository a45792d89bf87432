"""get_session: what is found, and the two filters."""

from __future__ import annotations

import pytest
from google.adk.sessions.base_session_service import GetSessionConfig

from tests.support.adk import event, reload, texts
from tests.support.stores import DURABLE, MODERN


@pytest.fixture
async def five(service, app):
    """A session with events at 1, 2, 3, 4 and 5 seconds."""
    session = await service.create_session(app_name=app, user_id="ann", state={"app:a": 1})
    for n in range(1, 6):
        await service.append_event(session, event(str(n), timestamp=float(n), delta={f"k{n}": n}))
    return session


async def test_none_when_there_is_no_such_session(service, app):
    await service.create_session(app_name=app, user_id="ann", session_id="s")
    for app_name, user, session_id in [
        (app, "ann", "other"),
        (app, "bob", "s"),
        (app + "_x", "ann", "s"),
    ]:
        found = await service.get_session(app_name=app_name, user_id=user, session_id=session_id)
        assert found is None


@pytest.mark.claims(MODERN)
async def test_white_space_around_an_id_is_ignored(service, app):
    session = await service.create_session(app_name=app, user_id="ann", session_id="s")
    assert await service.get_session(app_name=app, user_id="ann", session_id=" s\n") == session


async def test_without_filters_all_events_come_in_order(service, five):
    assert texts(await reload(service, five)) == ["1", "2", "3", "4", "5"]
    found = await service.get_session(
        app_name=five.app_name,
        user_id=five.user_id,
        session_id=five.id,
        config=GetSessionConfig(),
    )
    assert texts(found) == ["1", "2", "3", "4", "5"]


async def test_num_recent_events_returns_the_last_ones(service, five):
    for recent, expected in {0: "", 1: "5", 3: "345", 5: "12345", 50: "12345"}.items():
        assert texts(await reload(service, five, recent=recent)) == list(expected), recent


async def test_after_timestamp_is_inclusive(service, five):
    expected = {0.0: "12345", 1.0: "12345", 4.0: "45", 4.000001: "5", 5.0: "5", 50.0: ""}
    for after, said in expected.items():
        assert texts(await reload(service, five, after=after)) == list(said), after


async def test_both_filters_give_the_intersection(service, five):
    for recent, after, said in [
        (3, 4.0, "45"),
        (1, 2.0, "5"),
        (3, 1.0, "345"),
        (0, 1.0, ""),
        (5, 50.0, ""),
    ]:
        found = await reload(service, five, recent=recent, after=after)
        assert texts(found) == list(said), (recent, after)


async def test_state_and_time_are_whole_whatever_the_filter(service, five):
    for recent, after in [(0, None), (2, None), (None, 4.0), (None, 50.0), (0, 50.0)]:
        found = await reload(service, five, recent=recent, after=after)
        assert found.state == {"app:a": 1, "k1": 1, "k2": 2, "k3": 3, "k4": 4, "k5": 5}
        assert found.last_update_time == 5.0


@pytest.mark.parametrize(("recent", "after"), [(0, None), (2, None), (None, 50.0)])
async def test_a_truncated_session_can_be_appended_to(service, five, recent, after):
    part = await reload(service, five, recent=recent, after=after)
    seen = texts(part)
    await service.append_event(part, event("6", timestamp=6.0, delta={"k6": 6}))
    await service.append_event(part, event("7", timestamp=7.0))
    assert texts(part) == [*seen, "6", "7"]
    whole = await reload(service, five)
    assert texts(whole) == ["1", "2", "3", "4", "5", "6", "7"]
    assert whole.state == part.state


async def test_filters_apply_to_a_session_without_events(service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"k": 1})
    for recent, after in [(0, None), (3, None), (None, 1.0), (3, 1.0)]:
        found = await reload(service, session, recent=recent, after=after)
        assert found == session


async def test_a_change_to_a_returned_session_changes_nothing_stored(service, app):
    session = await service.create_session(
        app_name=app, user_id="ann", state={"list": [1], "dict": {"a": {}}}
    )
    await service.append_event(session, event("hello", delta={"more": [1]}))
    before = (await reload(service, session)).model_dump()
    spoilt = await reload(service, session)
    spoilt.state["list"].append(2)
    spoilt.state["dict"]["a"]["b"] = 1
    spoilt.state["more"].append(2)
    spoilt.state["new"] = 1
    spoilt.events[0].content.parts[0].text = "changed"
    spoilt.events[0].actions.state_delta["more"] = "changed"
    spoilt.events.clear()
    assert (await reload(service, session)).model_dump() == before


@pytest.mark.claims(MODERN)
async def test_a_change_to_returned_shared_state_changes_nothing_stored(service, app):
    session = await service.create_session(
        app_name=app, user_id="ann", state={"user:list": [1], "app:list": [1]}
    )
    spoilt = await reload(service, session)
    spoilt.state["user:list"].append(2)
    spoilt.state["app:list"].append(2)
    assert (await reload(service, session)).state == {"user:list": [1], "app:list": [1]}


@pytest.mark.claims(DURABLE)
async def test_a_change_to_an_appended_event_changes_nothing_stored(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    said = event("hello", delta={"list": [1]})
    await service.append_event(session, said)
    said.content.parts[0].text = "changed"
    session.state["list"].append(2)
    stored = await reload(service, session)
    assert texts(stored) == ["hello"]
    assert stored.state == {"list": [1]}
