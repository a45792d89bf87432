"""A session as of one revision."""

from __future__ import annotations

from dataclasses import dataclass

from cosmosservice.account.container import Document
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.sessions.store.keys import Marker, SessionKey
from cosmosservice.sessions.store.records import Record


@dataclass
class Snapshot:
    """The content of a session object. A listed one has no events."""

    key: SessionKey
    marker: Marker
    records: list[Record]
    state: Scoped
    last_update_time: float
    title: str = ""  # of a listed one
    created: float = 0.0  # when, if it was read with its events


@dataclass(frozen=True)
class Past:
    """A session as it was, and the sequence number up to which it is shown."""

    snapshot: Snapshot
    incarnation: str
    initial: Document  # its state before the first event
    seq: int
    time: float  # of that moment; infinite: now
