"""ADK's Event as the fields of a document, and back."""

import contextlib
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.adk.events.event import Event

from cosmosservice.data_converters.classes import class_named, full_name, is_set_up
from cosmosservice.data_converters.codecs import Child
from cosmosservice.data_converters.lenient import validated
from cosmosservice.data_converters.models import Decoders, plan
from cosmosservice.data_converters.tags import CLASS
from cosmosservice.data_converters.text import from_json, to_json
from cosmosservice.data_converters.values import (
    Lost,
    decode_dict,
    decode_value,
    decoder,
    encoder,
    warn_of,
)

logger = logging.getLogger(__name__)

ENVELOPE = frozenset(
    {
        "id", "document_type", "session_id", "user_id", "app_name", "incarnation", "seq", "stamp",
        "schema_version", "ttl", "appended_at", "chunks", "initial_state", "copied",
        "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn",
    }
)  # fmt: skip
"""What the service and the store add to an event's document. No field of an Event is kept there."""

UNREADABLE = "UNREADABLE_EVENT"

_ID = "event_id"
_ASIDE = "event_fields"  # fields whose names a document uses for something else
_TAKEN = ENVELOPE | {_ID, _ASIDE, CLASS}

# A key in an event's __dict__, which pydantic ignores: the own fields of a subclass that is not
# registered here, as JSON. So nothing is lost if the event is written again, as by an export.
_KEPT = "_kept"


def event_to_fields(event: Event) -> dict[str, Any]:
    """The fields of an event, ready for JSON; `id` is named `event_id`.

    They include those of a subclass, preceded by the name of its class.
    """
    state = event.__dict__  # a lazy event is decoded here
    cls = type(event)
    lost: Lost = []
    fields = plan(cls).encode(event, encoder(lost))
    warn_of(lost)
    kept = from_json(state[_KEPT]) if _KEPT in state else {}
    fields.update(kept)
    event_id = fields.pop("id", state.get("id"))
    name = fields.pop(CLASS, None) if cls is Event else full_name(cls)
    taken = _TAKEN.intersection(fields)
    if taken:
        fields[_ASIDE] = {name: fields.pop(name) for name in taken}
    fields[_ID] = event_id
    return {CLASS: name, **fields} if name else fields


def fields_to_event(document: Mapping[str, Any]) -> Event:
    """The event of a document. Never raises: an unreadable document gives a placeholder.

    It is a subclass of Event if the application has registered that class.
    """
    child = decoder()
    known = _stored_fields(Event)
    if known.keys() >= document.keys():  # the fast path: nearly always
        with contextlib.suppress(Exception):
            return plan(Event).decode(document, child, known)
    cls = class_named(document.get(CLASS))
    if cls is not None and issubclass(cls, Event):
        with contextlib.suppress(Exception):
            return _event_of(cls, document, child)
    try:
        event = _event_of(Event, document, child)
        if CLASS in document:
            event.__dict__[_KEPT] = to_json(_unknown_fields(document))
        return event
    except Exception as error:
        placeholder = _placeholder(document)
        # Not the error's text: it quotes the event.
        logger.error("Event %r cannot be read: %s", placeholder.id, type(error).__name__)
        return placeholder


def same_event(left: Event, right: Event) -> bool:
    """Whether both would be read as the same event. They may differ in what is not restored here:
    one may have an object of an unregistered class, the other its data. NaN equals NaN."""
    return _as_read(left) == _as_read(right)


def _as_read(event: Event) -> dict[str, Any]:
    return event_to_fields(fields_to_event(event_to_fields(event)))


class OddTime(float):
    """The number for a timestamp that is not stored as a number."""


def event_time(fields: Mapping[str, Any]) -> float:
    """The timestamp of an event that is not decoded. It may be infinite or NaN."""
    timestamp = fields.get("timestamp")
    if type(timestamp) is float:
        return timestamp
    try:
        return float(timestamp) if type(timestamp) is int else OddTime(decode_value(timestamp))
    except (TypeError, ValueError, OverflowError):
        return OddTime(0.0)


def _event_of(cls: type[Event], document: Mapping[str, Any], child: Child) -> Event:
    fields = _own_fields(cls, document)
    if not is_set_up(cls):
        with contextlib.suppress(Exception):
            return plan(cls).decode(fields, child)
    if not isinstance(fields.get("content"), dict | None):
        raise ValueError("nothing of what was said is left to show")
    values = decode_dict(fields, child)
    if not isinstance(values.get("timestamp"), int | float):
        values["timestamp"] = event_time(fields)  # not the time of reading
    return validated(cls, values)


@lru_cache(maxsize=1024)
def _stored_fields(cls: type[Event]) -> Decoders:
    """How to read the id, and the fields that a document has under their own names."""
    decoders = plan(cls).decoders
    own = {key: known for key, known in decoders.items() if key not in _TAKEN}
    return own | {_ID: decoders["id"]}


def _own_fields(cls: type[Event], document: Mapping[str, Any]) -> dict[str, Any]:
    """The event's fields under their own names, without those that the class does not know."""
    event_plan = plan(cls)
    fields = _all_fields(document)
    if event_plan.extra:
        return fields
    return {key: body for key, body in fields.items() if event_plan.knows(key)}


def _unknown_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that Event does not have, and the name of the class that has them."""
    knows = plan(Event).knows
    unknown = {key: body for key, body in _all_fields(document).items() if not knows(key)}
    return {CLASS: document[CLASS], **unknown}


def _all_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: body for key, body in document.items() if key not in _TAKEN}
    fields.update(document.get(_ASIDE, ()))
    fields["id"] = document[_ID]
    return fields


def _placeholder(document: Mapping[str, Any]) -> Event:
    def text(key: str) -> str:
        value = decode_value(document.get(key))
        return value if isinstance(value, str) else ""

    timestamp = decode_value(document.get("timestamp"))
    if not isinstance(timestamp, (int, float)):
        timestamp = document.get("_ts", 0.0)
    return Event(
        id=text(_ID) or text("id"),
        timestamp=timestamp,
        author=text("author"),
        invocation_id=text("invocation_id"),
        error_code=UNREADABLE,
        error_message="The stored event cannot be read by this version.",
    )
