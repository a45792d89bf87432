"""ADK's objects as JSON documents and back, without loss."""

from cosmosservice.data_converters.classes import register_classes
from cosmosservice.data_converters.events import (
    ENVELOPE,
    UNREADABLE,
    event_time,
    event_to_fields,
    fields_to_event,
    same_event,
)
from cosmosservice.data_converters.text import from_json, to_json, wire_size
from cosmosservice.data_converters.values import (
    decode_state,
    decode_value,
    encode_state,
    encode_value,
)

__all__ = [
    "ENVELOPE",
    "UNREADABLE",
    "decode_state",
    "decode_value",
    "encode_state",
    "encode_value",
    "event_time",
    "event_to_fields",
    "fields_to_event",
    "from_json",
    "register_classes",
    "same_event",
    "to_json",
    "wire_size",
]
