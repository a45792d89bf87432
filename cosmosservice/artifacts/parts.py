"""An artifact is a Part: its payload (bytes or text) and its other fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from cosmosservice.data_converters import decode_value, encode_value

ABSENT = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))


class Divided(NamedTuple):
    """A part without its payload, and the payload, or None if it has none."""

    rest: Any  # as stored in a document
    mime_type: str | None
    payload: bytes | None


def ensure_part(artifact: types.Part | Mapping[str, Any]) -> types.Part:
    """ADK's callers may pass a dictionary, with keys in camelCase or snake_case."""
    if isinstance(artifact, types.Part):
        return artifact
    if isinstance(artifact, Mapping):
        return types.Part.model_validate(dict(artifact))
    raise InputValidationError(
        f"An artifact is a Part or a dictionary, not {type(artifact).__name__}. Nothing was stored."
    )


def divided(part: types.Part) -> Divided:
    if part.inline_data is not None:
        blob = part.inline_data
        if blob.data is None:
            return Divided(encode_value(part), blob.mime_type, None)
        hollow = part.model_copy(update={"inline_data": blob.model_copy(update={"data": None})})
        return Divided(encode_value(hollow), blob.mime_type, blob.data)
    if part.text is not None:
        hollow = part.model_copy(update={"text": ""})
        payload = part.text.encode("utf-8", "surrogatepass")
        return Divided(encode_value(hollow), "text/plain", payload)
    if part.file_data is not None:
        mime_type = None if reference_of(part) else part.file_data.mime_type
        return Divided(encode_value(part), mime_type, None)
    raise InputValidationError("Not supported artifact type.")


def blob_part(mime_type: str, display_name: str | None) -> types.Part:
    """The part for a stream: bytes with a type."""
    return types.Part(inline_data=types.Blob(mime_type=mime_type, display_name=display_name))


def part_of(rest: Any) -> types.Part:
    """The part without its payload. Raises TypeError if the document does not hold one."""
    part = decode_value(rest)
    if not isinstance(part, types.Part):
        raise TypeError(type(part).__name__)
    return part


def filled(part: types.Part, payload: bytes) -> types.Part:
    """The part with its payload again."""
    if part.inline_data is not None:
        return part.model_copy(
            update={"inline_data": part.inline_data.model_copy(update={"data": payload})}
        )
    return part.model_copy(update={"text": payload.decode("utf-8", "surrogatepass")})


def is_absent(part: types.Part) -> bool:
    """Whether it means that there is no artifact: a rewind saves such a part, or it is empty."""
    return part in (ABSENT, types.Part())


def reference_of(part: types.Part) -> str | None:
    """The artifact:// URI of a part that only refers to another artifact."""
    uri = part.file_data.file_uri if part.file_data is not None else None
    return uri if uri is not None and uri.startswith("artifact://") else None
