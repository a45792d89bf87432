"""An application's own classes are stored and read back."""

from __future__ import annotations

import dataclasses
import enum
import math

import pytest
from google.adk.events import Event
from pydantic import BaseModel

import cosmosservice
from cosmosservice.cli import archive
from cosmosservice.data_converters import to_json
from tests.support.adk import event, reload, texts
from tests.support.registry import nothing_registered

WHO = {"app_name": "app", "user_id": "ann"}


class Size(enum.Enum):
    LARGE = "large"


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    size: Size


class Order(BaseModel):
    lines: list[Line]


class NodeEvent(Event):
    node: str
    order: Order


def order() -> Order:
    return Order(lines=[Line("tea", Size.LARGE)])


def node_event(text: str) -> NodeEvent:
    made = event(text, delta={"order": order(), "user:line": Line("tea", Size.LARGE)})
    held = {name: getattr(made, name) for name in ("author", "timestamp", "content", "actions")}
    return NodeEvent(**held, node="router", order=order())


@pytest.fixture(autouse=True)
def registry():
    with nothing_registered():
        yield


async def session_with(service, *events):
    session = await service.create_session(**WHO, state={"app:size": Size.LARGE})
    for each in events:
        await service.append_event(session, each)
    return session


async def test_a_session_of_registered_classes_comes_back_equal(open_service):
    cosmosservice.register_classes(NodeEvent, Line)
    session = await session_with(open_service(), node_event("one"), event("two"), node_event("3"))
    found = await reload(open_service(), session)
    assert [isinstance(each, NodeEvent) for each in found.events] == [True, False, True]
    assert found == session
    assert type(found.state["order"]) is Order
    assert found.state["user:line"] == Line("tea", Size.LARGE)
    assert found.state["app:size"] is Size.LARGE
    assert found.events[2].order.lines == [Line("tea", Size.LARGE)]


async def test_a_process_that_has_not_registered_them_reads_data_and_loses_nothing(open_service):
    session = await session_with(open_service(), node_event("one"))
    found = await reload(open_service(), session)
    line = {"name": "tea", "size": "large"}
    assert found.state == {"order": {"lines": [line]}, "user:line": line, "app:size": "large"}
    assert type(found.events[0].model_copy()) is Event
    writer = open_service()
    await writer.append_event(found, event("two"))
    await writer.flush()
    cosmosservice.register_classes(NodeEvent, Line)
    found = await reload(open_service(), session)
    assert texts(found) == ["one", "two"]
    assert found.events[0] == session.events[0]
    assert found.state == {
        "order": order(),
        "user:line": Line("tea", Size.LARGE),
        "app:size": Size.LARGE,
    }


async def test_an_export_carries_the_fields_of_classes_that_it_does_not_know(open_service):
    session = await session_with(open_service(), node_event("one"))
    found = await reload(open_service(), session)
    lines = [archive.HEAD, *archive.session_lines(found)]
    (imported,) = archive.read([to_json(line) for line in lines])
    again = await session_with(open_service(), *imported.events)
    cosmosservice.register_classes(NodeEvent)
    found = await reload(open_service(), again)
    assert (found.events[0].node, found.events[0].order) == ("router", order())


@pytest.mark.parametrize("timestamp", [5.0, math.nan])
async def test_an_event_of_a_class_that_is_not_registered_is_stored_once(open_service, timestamp):
    sent = node_event("one")
    sent.timestamp = timestamp
    session = await session_with(open_service(), sent)
    found = await reload(open_service(), session)
    await open_service().append_event(found, sent)
    await open_service(cache_bytes=0).append_event(found, event("two"))
    await open_service(cache_bytes=0).append_event(found, sent)
    assert texts(await reload(open_service(), session)) == ["one", "two"]
    other = sent.model_copy(update={"node": "another"})
    with pytest.raises(cosmosservice.EventIdReusedError):
        await open_service().append_event(await reload(open_service(), session), other)
