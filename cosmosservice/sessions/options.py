"""The options of a session service, as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from cosmosservice.sessions.remembering import SessionMemory

if TYPE_CHECKING:
    from cosmosservice.account.options import Ensure, OnRequestCharge

OnConflict = Literal["raise", "rebase"]

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024


class SessionOptions(TypedDict, total=False):
    """Options of a session service on the embedded emulator."""

    database: str | None
    session_container: str | None
    conversation_container: str | None
    on_conflict: OnConflict
    ttl: int | None
    recent_events: int | None
    since_compaction: bool | None
    cache_bytes: int
    memory: SessionMemory | None
    ensure: Ensure | None
    timeout: float | None
    on_request_charge: OnRequestCharge | None
