"""An event that is still text behaves like any other, and is decoded only when necessary."""

import copy
import gc
import pickle
import threading
from typing import Any

import pydantic
import pydantic_core
import pytest
from fastapi.encoders import jsonable_encoder
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.session import Session
from google.genai import types

from cosmosservice.data_converters import (
    event_to_fields,
    fields_to_event,
    from_json,
    lazy_events,
    to_json,
)
from cosmosservice.data_converters.lazy_events import lazy_event

RAW = to_json(
    event_to_fields(
        Event(
            id="e1",
            timestamp=12.5,
            author="agent",
            content=types.Content(role="model", parts=[types.Part(text="hi")]),
            actions=EventActions(state_delta={"a": (1, None)}),
            long_running_tool_ids={"x", "y"},
        )
    )
)


def ordinary() -> Event:
    return fields_to_event(from_json(RAW))


def lazy() -> Event:
    return lazy_event(RAW, "e1", 12.5)


def decoded(event: Event) -> bool:
    return type(event) is Event


def session_of(*events: Event) -> Session:
    return Session(id="s", app_name="a", user_id="u", events=list(events))


def attempt(use, event):
    try:
        return use(event)
    except Exception as error:
        return type(error), str(error)


USES = {
    "field": lambda e: e.content,
    "method": lambda e: e.is_final_response(),
    "set of fields": lambda e: (e.model_fields_set, e.model_extra, e.__pydantic_private__),
    "missing attribute": lambda e: e.no_such_thing,
    "hasattr": lambda e: (hasattr(e, "branch"), hasattr(e, "nothing")),
    "repr": repr,
    "str": str,
    "vars": vars,
    "dir": dir,
    "iteration": list,
    "class": lambda e: (isinstance(e, Event), (e.author, e.__class__)[1]),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda e: (e.model_copy(), e.model_copy(deep=True, update={"author": "b"})),
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "pickle text": pickle.dumps,
    "getstate": lambda e: e.__getstate__(),
    "model_dump": lambda e: e.model_dump(),
    "model_dump_json": lambda e: e.model_dump_json(by_alias=True, exclude_unset=True),
    "validate": lambda e: Event.model_validate(e),
    "document": event_to_fields,
    "assignment": lambda e: (setattr(e, "author", "b"), e)[1],
    "object.__setattr__": lambda e: (object.__setattr__(e, "author", "b"), e.content, e)[2],
    "object.__setattr__ of the id": lambda e: (object.__setattr__(e, "id", "b"), e.content, e)[2],
    "object.__setattr__ of more": lambda e: (
        object.__setattr__(e, "mark", 1),
        e.author,
        vars(e),
    )[2],
    "object.__setattr__, then a dump": lambda e: (
        object.__setattr__(e, "author", "b"),
        session_of(e).model_dump(),
    ),
    "wrong assignment": lambda e: setattr(e, "no_such_thing", 1),
    "deletion": lambda e: (delattr(e, "author"), vars(e))[1],
    "message": lambda e: e.message if hasattr(Event, "message") else None,
    "json of anything": pydantic_core.to_json,
    "type adapter": lambda e: pydantic.TypeAdapter(list[Event]).dump_python([e]),
    "type adapter of Any": lambda e: pydantic.TypeAdapter(Any).dump_json([e]),
    "session": lambda e: session_of(e).model_dump(),
    "session as JSON": lambda e: session_of(e).model_dump_json(exclude_none=True, by_alias=True),
    "session set fields": lambda e: session_of(e).model_dump(exclude_unset=True),
    "session as any": lambda e: session_of(e).model_dump(mode="json", serialize_as_any=True),
    "session without": lambda e: session_of(e).model_dump(exclude={"events": {0: {"content"}}}),
    "session copy": lambda e: copy.deepcopy(session_of(e)),
    "session model_copy": lambda e: session_of(e).model_copy(deep=True),
    "session pickle": lambda e: pickle.loads(pickle.dumps(session_of(e))),
    "session repr": lambda e: repr(session_of(e)),
    "session validated": lambda e: Session.model_validate(session_of(e).model_dump()),
    "web response": lambda e: jsonable_encoder(session_of(e)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use_has_the_outcome_of_an_ordinary_event(use):
    assert attempt(use, lazy()) == attempt(use, ordinary())


def test_equality_works_from_both_sides():
    other = ordinary()
    other.author = "somebody else"
    assert lazy() == ordinary()
    assert ordinary() == lazy()
    assert lazy() == lazy()
    assert lazy() != other
    assert other != lazy()
    assert lazy() != "text"
    assert session_of(lazy()) == session_of(ordinary())


def test_it_is_as_unhashable_as_an_event():
    with pytest.raises(TypeError, match="unhashable"):
        hash(lazy())


def test_handing_it_around_does_not_decode():
    event = lazy()
    session = session_of(event)
    assert session.events[0] is event
    assert (event.id, event.timestamp) == ("e1", 12.5)
    assert isinstance(event, Event)
    twin = copy.deepcopy(session).events[0]
    assert twin is not event
    assert not decoded(event)
    assert not decoded(twin)


def test_a_copy_is_independent():
    event = lazy()
    twin = copy.deepcopy(event)
    twin.actions.state_delta["a"] = "changed"
    event.author = "changed"
    assert event.actions.state_delta == {"a": (1, None)}
    assert twin.author == "agent"


def test_a_copy_is_independent_of_what_was_set_beneath_the_class():
    event = lazy()
    object.__setattr__(event, "content", types.Content(parts=[types.Part(text="set")]))
    twin = copy.deepcopy(event)
    event.content.parts[0].text = "changed"
    assert twin.content.parts[0].text == "set"


def test_threads_that_meet_at_one_event_share_it_and_lose_no_change(monkeypatch):
    # Both threads decode before either becomes the event; the later one must not undo a change.
    both_decoded = threading.Barrier(2)
    original = fields_to_event

    def slow(document):
        event = original(document)
        both_decoded.wait(timeout=10)
        return event

    monkeypatch.setattr(lazy_events, "fields_to_event", slow)
    event = lazy()
    seen = []

    def add():
        event.actions.state_delta[threading.current_thread().name] = True
        seen.append(event.content)

    threads = [threading.Thread(target=add, name=f"t{n}") for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[0] is seen[1]
    assert event.actions.state_delta == {"a": (1, None), "t0": True, "t1": True}


def test_an_unreadable_document_becomes_a_placeholder():
    raw = to_json({"event_id": "e1", "timestamp": 3, "author": "x", "actions": {"state_delta": 7}})
    event = lazy_event(raw, "e1", 3.0)
    assert event.author == "x"
    assert event.id == "e1"


# --- reading ahead


@pytest.fixture
def given(monkeypatch):
    """A hundred events, and the ids of those that were decoded."""
    events = [Event(id=f"e{number}", author="agent", timestamp=number) for number in range(100)]
    texts = [to_json(event_to_fields(event)) for event in events]
    ids, times = [each.id for each in events], [each.timestamp for each in events]
    made = lazy_events.lazy_events(texts, ids, times)
    seen: list[str] = []

    def counted(fields):
        seen.append(fields["event_id"])
        return fields_to_event(fields)

    monkeypatch.setattr(lazy_events, "fields_to_event", counted)
    return made, events, seen


@pytest.mark.parametrize("order", [1, -1])
def test_events_read_in_a_row_are_each_decoded_once(given, order):
    made, events, seen = given
    assert made[::order] == events[::order]
    assert sorted(seen) == sorted(each.id for each in events)


def test_nothing_is_decoded_ahead_for_whoever_reads_a_few_events_or_every_second_one(given):
    made, _, seen = given
    assert [each.author for each in (*made[:10], *made[20::2])] == ["agent"] * 50
    assert len(seen) == 50


def test_copy_of_a_session_that_was_read_in_part_has_the_same_events(given):
    made, events, _ = given
    assert made[:40] == events[:40]
    copied = copy.deepcopy(made)
    copied[70].author = "another"
    assert made == events
    assert copied[:70] + copied[71:] == events[:70] + events[71:]


@pytest.mark.parametrize("wanted", [True, False])
def test_garbage_collector_is_as_before_after_reading_ahead(given, wanted):
    made, events, _ = given
    before = gc.isenabled()
    (gc.enable if wanted else gc.disable)()
    try:
        assert made == events
        assert gc.isenabled() == wanted
    finally:
        (gc.enable if before else gc.disable)()
