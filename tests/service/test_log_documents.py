"""The decoder knows every field that the log adds to an event, so events take the fast path.

A field of the envelope that `ENVELOPE` does not name would be taken for a field of the event. Then
every event would be decoded on the slow path, which is for fields of other versions.
"""

from __future__ import annotations

import pytest
from google.adk.events.event import Event

from cosmosservice.data_converters import ENVELOPE, events
from cosmosservice.sessions.store.documents import (
    EVENT,
    STUB_FIELDS,
    TOMBSTONE,
    log_document,
    stub_document,
)
from cosmosservice.sessions.store.keys import SessionKey
from tests.support.adk import event, reload
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
NAMES = set(events._stored_fields(Event))  # those of an event, as documents have them


@pytest.mark.parametrize("kind", [EVENT, TOMBSTONE])
def test_the_envelope_names_every_field_of_a_log_document(kind):
    key = SessionKey.of("app", "user", "session")
    document = log_document(key, kind=kind, incarnation="i", seq=1, stamp=2, fields={})
    assert document.keys() <= ENVELOPE
    assert stub_document(document).keys() <= ENVELOPE | {"event_id"}
    assert set(STUB_FIELDS) <= ENVELOPE


@pytest.mark.parametrize("ttl", [None, 600])
async def test_a_stored_event_has_the_fields_of_the_event_and_of_the_envelope(
    open_service, cosmos, ttl
):
    service = open_service()
    session = await service.create_session(**WHO, ttl=ttl, state={"given": 1})
    await service.append_event(session, event("short", delta={"a": 1, "user:b": 2}))
    await service.append_event(session, event("x" * 3_000_000))
    await service.fork_session(**WHO, session_id=session.id)
    await service.delete_session(**WHO, session_id=session.id)
    await service.restore_session(**WHO, session_id=session.id)
    with raw_store(cosmos) as raw:
        stored = [body for body in raw.events.all() if body["document_type"] != "chunk"]
    assert {body["document_type"] for body in stored} == {"adk_event", "tombstone", "restored"}
    for body in stored:
        assert body.keys() <= ENVELOPE | NAMES


async def test_stored_events_are_decoded_the_fast_way(open_service, monkeypatch):
    writer = open_service()
    session = await writer.create_session(**WHO, ttl=600)
    await writer.append_event(session, event("short", delta={"a": 1}))
    await writer.append_event(session, event("x" * 3_000_000))

    def slow(*_):
        raise AssertionError("the slow path")

    monkeypatch.setattr(events, "_event_of", slow)
    found = await reload(open_service(), session)
    assert [each.model_dump() for each in found.events] == [
        each.model_dump() for each in session.events
    ]
