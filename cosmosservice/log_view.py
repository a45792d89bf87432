"""What this process knows of one session's log: a run of records without a gap."""

from __future__ import annotations

from cosmosservice.documents import APP_STATE, USER_STATE
from cosmosservice.event_log import Record
from cosmosservice.state_documents import Changes, newest, record_changes


class LogView:
    """Records of one incarnation without a gap. Events never change, so this only grows."""

    __slots__ = ("changes", "first_seq", "ids", "incarnation", "records", "size")

    def __init__(self, incarnation: str, first_seq: int, records: list[Record]) -> None:
        self.incarnation = incarnation
        self.first_seq = first_seq  # where the incarnation begins, whether or not it is in hand
        self.records = records
        self.size = 200 + sum(record.size for record in records)
        self.ids = {record.event_id: record for record in records if record.is_event}
        self.changes: dict[str, Changes] = {
            kind: record_changes(records, kind) for kind in (USER_STATE, APP_STATE)
        }

    @property
    def first(self) -> int:
        return self.records[0].seq if self.records else self.first_seq

    @property
    def last(self) -> int:
        return self.records[-1].seq if self.records else self.first_seq - 1

    @property
    def whole(self) -> bool:
        return self.first <= self.first_seq

    def extend(self, records: list[Record]) -> None:
        """Adds what follows."""
        for record in records:
            if record.seq != self.last + 1 or record.incarnation != self.incarnation:
                continue
            self.records.append(record)
            self.size += record.size
            if record.is_event:
                self.ids[record.event_id] = record
            if record.deltas.shared:
                for kind, known in self.changes.items():
                    self.changes[kind] = newest((known, record_changes([record], kind)))

    def after(self, seq: int) -> list[Record] | None:
        """The records behind `seq`; None if some of them are not in hand."""
        if seq + 1 < self.first:
            return None
        return self.records[max(0, seq + 1 - self.first) :] if self.records else []
