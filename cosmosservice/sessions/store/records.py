"""The records of a session's log, in memory."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cosmosservice.account.cache import footprint
from cosmosservice.account.chunks import checksum
from cosmosservice.account.container import Document
from cosmosservice.data_converters import event_time, fields_to_event, from_json, same_event
from cosmosservice.data_converters.state_scopes import NOTHING, Scoped, split_stored
from cosmosservice.sessions.store.documents import EVENT, RESTORED, TOMBSTONE

# Bytes of memory that a record takes besides its text, and changes besides their values.
_OVERHEAD = 520
_CHANGES = 150

LogKey = tuple[str, str]
"""Session hash and incarnation: they name the log of one session from its creation to its end."""


@dataclass(slots=True)
class Record:
    """One record of the log: an event, a tombstone, a restored record, a stub or a lost record."""

    seq: int  # its sequence number in the log
    incarnation: str
    kind: str
    event_id: str
    timestamp: float
    stamp: int
    raw: bytes  # the event's fields as JSON, which no caller can change
    fields: Document | None = None  # the same, until they are stored
    deltas: Scoped = NOTHING
    delta_size: int | None = None  # in bytes, once it was needed
    merged: bool = False  # its user and app state is known to be merged
    appended_here: bool = False  # by this process
    upload: str = ""  # the name under which the body of a large event is uploaded
    chunks: Document | None = None  # where that body is stored
    initial: Document | None = None  # in a session's first event: the state before it
    copied: bool = False  # by a fork: its changes of user and app state belong to the source
    lost: bool = False  # the body cannot be read: the event's content and changes are unknown

    @property
    def size(self) -> int:
        """Approximate memory use in bytes."""
        size = len(self.raw) + _OVERHEAD
        if self.deltas is not NOTHING:
            size += _CHANGES + footprint(self.deltas.session)
            for changes in self.deltas.shared:
                size += footprint(changes) + _CHANGES * len(changes)
        return size + footprint(self.chunks)

    @property
    def is_event(self) -> bool:
        return self.kind == EVENT

    def same_event(self, other: Record) -> bool:
        if self.lost:
            stored = self.chunks.get("sha256") if isinstance(self.chunks, dict) else None
            sent = other.chunks.get("sha256") if isinstance(other.chunks, dict) else None
            return stored in (checksum(other.raw), sent)
        # The store writes 5.0 as 5, so the same event may have different text.
        return self.raw == other.raw or same_event(
            fields_to_event(from_json(self.raw)), fields_to_event(from_json(other.raw))
        )


def event_record(fields: Document, raw: bytes) -> Record:
    """A record of an event that has no sequence number yet."""
    return Record(
        seq=0,
        incarnation="",
        kind=EVENT,
        event_id=str(fields.get("event_id", "")),
        timestamp=event_time(fields),
        stamp=0,
        raw=raw,
        fields=fields,
        deltas=deltas_of(fields),
    )


def new_mark(kind: str, timestamp: float) -> Record:
    """A record that is not an event: a tombstone, a restored record, or a lost one."""
    return Record(0, "", kind, f"{kind}-{secrets.token_hex(8)}", timestamp, 0, b"{}")


def of_incarnation(
    records: Iterable[Record], incarnation: str | None, first_seq: int = 0
) -> list[Record]:
    """The records of this incarnation from `first_seq` on; None: of every incarnation.

    `EventLog.read` applies this. Callers do only if they read the log before they knew the
    incarnation, or together with the document that names it.
    """
    return [
        record
        for record in records
        if incarnation in (None, record.incarnation) and record.seq >= first_seq
    ]


def after(records: list[Record], seq: int) -> list[Record]:
    """The records after a sequence number, which are usually few."""
    start = len(records)
    while start and records[start - 1].seq > seq:
        start -= 1
    return records[start:]


def missing_seqs(records: list[Record], begin: int, end: int, most: int = 1_000) -> list[int]:
    """The sequence numbers from `begin` to `end`, and between these records, that none of them
    has; at most the first `most`."""
    last = records[-1].seq if records else begin - 1
    if last >= end and last - begin + 1 == len(records):  # nearly always
        return []
    taken = {record.seq for record in records}
    missing = (seq for seq in range(begin, max(end, last) + 1) if seq not in taken)
    return list(itertools.islice(missing, most))


def is_deleted(records: Iterable[Record]) -> bool | None:
    """Whether the session is deleted after these records; None if they do not say."""
    deleted = None
    for record in records:
        if record.kind == TOMBSTONE:
            deleted = True
        elif record.kind == RESTORED:
            deleted = False
    return deleted


def deltas_of(fields: Document) -> Scoped:
    """What the event changes."""
    actions = fields.get("actions")
    delta = actions.get("state_delta") if isinstance(actions, dict) else None
    return split_stored(delta) if delta and isinstance(delta, dict) else NOTHING


def number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
