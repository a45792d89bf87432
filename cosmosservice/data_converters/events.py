"""ADK's Event as the fields of a document, and back."""

import logging
from collections.abc import Mapping
from typing import Any

from google.adk.events.event import Event
from pydantic import ValidationError

from .models import Mismatch, plan
from .values import Lost, decode_value, encoder, warn_of

logger = logging.getLogger(__name__)

ENVELOPE = frozenset(
    {
        "id", "document_type", "session_id", "user_id", "app_name", "incarnation", "seq", "stamp",
        "schema_version", "ttl", "chunks", "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn",
    }
)  # fmt: skip
"""What the service and the store add to an event's document. No field of an Event is kept there."""

UNREADABLE = "UNREADABLE_EVENT"

_ID = "event_id"
_ASIDE = "event_fields"  # fields whose names are taken
_TAKEN = ENVELOPE | {_ID, _ASIDE}


def event_to_fields(event: Event) -> dict[str, Any]:
    """The fields of an event, ready for JSON; `id` is named `event_id`."""
    state = event.__dict__  # an event that is not decoded yet decodes itself here
    lost: Lost = []
    fields = plan(type(event)).encode(event, encoder(lost))
    warn_of(lost)
    event_id = fields.pop("id", state.get("id"))
    taken = _TAKEN.intersection(fields)
    if taken:
        fields[_ASIDE] = {name: fields.pop(name) for name in taken}
    fields[_ID] = event_id
    return fields


def fields_to_event(document: Mapping[str, Any]) -> Event:
    """The event of a document. Never raises: an unreadable document gives a placeholder."""
    try:
        fields = _own_fields(document)
        try:
            event = plan(Event).decode(fields, decode_value)
        except Mismatch:
            event = _validated(fields)
    except Exception as error:
        # Not the error's text: it quotes the event.
        logger.error("Event %r cannot be read (%s)", document.get(_ID), type(error).__name__)
        return _placeholder(document)
    assert isinstance(event, Event)
    return event


def _own_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The event's fields under their own names, without those that this ADK does not know."""
    event_plan = plan(Event)
    fields = {key: body for key, body in document.items() if key not in _TAKEN}
    fields.update(document.get(_ASIDE, ()))
    fields["id"] = document[_ID]
    if event_plan.extra:
        return fields
    return {key: body for key, body in fields.items() if key in event_plan.decoders}


def _validated(fields: dict[str, Any]) -> Event:
    """Reads what another version of ADK wrote: without what this one refuses."""
    data = decode_value(fields)
    left_out = 0
    while True:
        try:
            event = Event.model_validate(data)
        except ValidationError as error:
            dropped = _drop_refused(data, error)
            if not dropped:
                raise
            left_out += dropped
        else:
            break
    if left_out:
        logger.info("Event %r was read without %d unknown field(s)", event.id, left_out)
    return event


def _drop_refused(data: Any, error: ValidationError) -> int:
    """Removes from `data` what the error is about; returns how many places that was."""
    places: set[tuple[Any, ...]] = set()
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = _reachable(data, item["loc"])
        if path:
            places.add(path)
    # From the end, so that the positions in lists stay right.
    for path in sorted(places, key=lambda path: [(str(type(p)), p) for p in path], reverse=True):
        holder = data
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
    return len(places)


def _reachable(data: Any, location: tuple[Any, ...]) -> tuple[Any, ...]:
    """The longest part of an error's location that leads somewhere in the data.

    A location may end at a missing field, or at the name of a member of a union.
    """
    path: list[Any] = []
    for step in location:
        if not isinstance(data, (dict, list)):
            break
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            break
        path.append(step)
    return tuple(path)


def _placeholder(document: Mapping[str, Any]) -> Event:
    def text(key: str) -> str:
        value = document.get(key)
        return value if isinstance(value, str) else ""

    timestamp = document.get("timestamp", document.get("_ts"))
    return Event(
        id=text(_ID) or text("id"),
        timestamp=timestamp if isinstance(timestamp, (int, float)) else 0.0,
        author=text("author"),
        invocation_id=text("invocation_id"),
        error_code=UNREADABLE,
        error_message="The stored event cannot be read by this version.",
    )
