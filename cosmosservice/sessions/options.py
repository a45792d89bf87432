"""The options of a session service, as types."""

from __future__ import annotations

from typing import Literal

from cosmosservice.account.options import EmbeddedOptions
from cosmosservice.sessions.remembering import SessionMemory

OnConflict = Literal["raise", "rebase"]

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024


class SessionOptions(EmbeddedOptions, total=False):
    """Options of a session service on the embedded emulator."""

    session_container: str | None
    conversation_container: str | None
    on_conflict: OnConflict
    ttl: int | None
    recent_events: int | None
    since_compaction: bool | None
    cache_bytes: int
    memory: SessionMemory | None
