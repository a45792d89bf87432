"""Edit and continue, forks with their sources, two sessions side by side, and an export."""

from __future__ import annotations

import json

import pytest
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice.cli import archive
from tests.explore.support import names, read
from tests.support.adk import event

ADA = {"app_name": "shop", "user_id": "ada"}


async def conversation(service, session_id="first"):
    session = await service.create_session(**ADA, session_id=session_id, state={"cart": []})
    for author, text, delta in (
        ("user", "Tea, please", {"cart": ["tea"], "user:name": "Ada"}),
        ("waiter", "Green or black?", {"asked": True}),
        ("user", "Green", {}),
    ):
        said = types.Content(role=author, parts=[types.Part(text=text)])
        made = Event(author=author, content=said, actions=EventActions(state_delta=delta))
        await service.append_event(session, made)
    return session


async def forked(visitor, session):
    page = await visitor.service.list_sessions_page(**ADA)
    (found,) = (each for each in page.sessions if each.id != session.id)
    return await visitor.service.get_session(**ADA, session_id=found.id)


def texts(session):
    return [each.content.parts[0].text if each.content else None for each in session.events]


async def test_a_message_is_changed_in_a_fork_that_ends_with_it(visit):
    visitor = await visit(write=True)
    session = await conversation(visitor.service)
    form = await visitor.get("/edit", **names(session), at=1)
    assert "Tea, please" in form
    status, page = await visitor.post(
        "/edit", names(session), {"at": "1", "message": "Coffee, please", "state": '{"cart": []}'}
    )
    assert status == 200
    fork = await forked(visitor, session)
    assert texts(fork) == ["Coffee, please"]
    assert fork.state["cart"] == []
    assert "Forked from first after event 0." in read(page)
    assert texts(await visitor.service.get_session(**ADA, session_id="first"))[0] == "Tea, please"


async def test_the_state_is_changed_after_an_event(visit):
    visitor = await visit(write=True)
    session = await conversation(visitor.service)
    state = json.dumps({"cart": ["tea", "cake"], "table": 4})
    await visitor.post(
        "/edit", names(session), {"at": "2", "message": "Green or black?", "state": state}
    )
    fork = await forked(visitor, session)
    assert texts(fork) == ["Tea, please", "Green or black?", None]
    own = {key: value for key, value in fork.state.items() if ":" not in key}
    assert own == {"cart": ["tea", "cake"], "table": 4, "asked": None}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("{", "The state is not JSON"),
        ("[]", "not a JSON object"),
        ('{"user:name": "Eve"}', "shared with other sessions"),
        ('{"cart": ["tea"], "asked": true}', "Neither the message nor the state was changed."),
    ],
)
async def test_an_edit_that_is_refused_stores_nothing(visit, state, reason):
    visitor = await visit(write=True)
    session = await conversation(visitor.service)
    status, page = await visitor.post(
        "/edit", names(session), {"at": "2", "message": "Green or black?", "state": state}
    )
    assert (status, reason in read(page), "Nothing was stored." in read(page)) == (400, True, True)
    assert await visitor.service.count_sessions(**ADA) == 1


async def test_nothing_is_edited_without_write(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    assert (await visitor.answer("/edit", params={**names(session), "at": 1}))[0] == 404
    status, _ = await visitor.post("/edit", names(session), {"at": "1", "message": "x"})
    assert status == 403
    assert "/edit" not in await visitor.get("/session", **names(session))


async def test_a_fork_for_another_user_does_not_name_the_source(visit):
    visitor = await visit()
    await conversation(visitor.service)
    fork = await visitor.service.fork_session(**ADA, session_id="first", new_user_id="bob")
    page = await visitor.get("/session", **names(fork))
    assert "Forked from" not in page
    assert "ada" not in read(await visitor.get("/raw", **names(fork)))


async def test_two_sessions_are_compared(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    fork = await visitor.service.fork_session(
        **ADA, session_id="first", at=2, new_session_id="other"
    )
    await visitor.service.append_event(fork, event("Black", delta={"cart": ["black tea"]}))
    page = await visitor.get("/compare", **names(session), other="other")
    text = read(page)
    assert "2 events the same" in text
    assert "<mark>Green</mark>" in page
    assert "<mark>Black</mark>" in page
    assert 'cart ["tea"] ["black tea"]' in text
    status, _ = await visitor.answer("/compare", params={**names(session), "other": "none"})
    assert status == 404


async def test_an_exported_session_can_be_imported(visit):
    visitor = await visit()
    session = await conversation(visitor.service)
    text = await visitor.get("/export", **names(session))
    (found,) = archive.read(text.encode().splitlines(keepends=True))
    stored = await visitor.service.get_session(**ADA, session_id="first")
    assert (found.id, found.state, found.events) == ("first", stored.state, stored.events)
