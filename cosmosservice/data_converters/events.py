"""ADK's Event as the fields of a document, and back."""

import contextlib
import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.adk.events.event import Event

from .lenient import validated
from .models import Decoders, plan
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
    known = _stored_fields()
    if known.keys() >= document.keys():  # nearly always, and for every event that is looked at
        with contextlib.suppress(Exception):
            return plan(Event).decode(document, decode_value, known)
    try:
        fields = _own_fields(document)
        try:
            return plan(Event).decode(fields, decode_value)
        except Exception:
            if not isinstance(fields.get("content"), dict | None):
                raise  # nothing of what was said is left to show
            return validated(Event, decode_value(fields))
    except Exception as error:
        placeholder = _placeholder(document)
        # Not the error's text: it quotes the event.
        logger.error("Event %r cannot be read: %s", placeholder.id, type(error).__name__)
        return placeholder


@cache
def _stored_fields() -> Decoders:
    """How the fields are read that a document has under their own names; and the id."""
    decoders = plan(Event).decoders
    own = {key: known for key, known in decoders.items() if key not in _TAKEN}
    return own | {_ID: decoders["id"]}


def _own_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The event's fields under their own names, without those that this ADK does not know."""
    event_plan = plan(Event)
    fields = {key: body for key, body in document.items() if key not in _TAKEN}
    fields.update(document.get(_ASIDE, ()))
    fields["id"] = document[_ID]
    if event_plan.extra:
        return fields
    return {key: body for key, body in fields.items() if key in event_plan.decoders}


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
