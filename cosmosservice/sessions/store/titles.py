"""The title of a session: its name in ADK's web interface, or the user's first words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cosmosservice.account.container import Document
from cosmosservice.data_converters import from_json
from cosmosservice.data_converters.state_scopes import plain
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.state import State

MAX_TITLE: Final = 120
BEGINNING: Final = (
    20  # records that are searched for the first words of a session whose name was removed
)

_METADATA: Final = "__session_metadata__"
_DISPLAY_NAME: Final = "displayName"


def display_name(state: State) -> str:
    """The session's name in ADK's web interface or in the application; empty if it has none."""
    metadata = state.inline.get(_METADATA)
    if not isinstance(metadata, dict):
        return ""
    return _short(metadata.get(_DISPLAY_NAME))


def first_words(records: Iterable[Record]) -> str:
    """The user's first words; empty if these records have none."""
    for record in records:
        if record.is_event and not record.lost:
            words = _words(from_json(record.raw))
            if words:
                return words
    return ""


def _words(fields: Document) -> str:
    if fields.get("author") != "user":
        return ""
    content, heard = fields.get("content"), fields.get("input_transcription")
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else [heard]:
        words = _short(part.get("text")) if isinstance(part, dict) else ""
        if words:
            return words
    return ""


def _short(stored: Any) -> str:
    """On one line, and short enough for a list."""
    text = stored if isinstance(stored, str) else plain({"text": stored}).get("text")
    if not isinstance(text, str):
        return ""
    # Half of a surrogate pair cannot be stored as text.
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…"
