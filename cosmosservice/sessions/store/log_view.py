"""This process's view of one session's log: a run of records without a gap."""

from __future__ import annotations

from cosmosservice.account.cache import Cache
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.compaction import may_change_loading
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.state_documents import Changes, newest, record_changes


class LogView:
    """Records of one incarnation without a gap. Events never change, so this only grows."""

    __slots__ = (
        "changes",
        "first_seq",
        "ids",
        "incarnation",
        "last_loading_change",
        "records",
        "size",
    )  # fmt: skip

    def __init__(self, incarnation: str, first_seq: int, records: list[Record]) -> None:
        self.incarnation = incarnation
        self.first_seq = first_seq  # where the incarnation begins, even if not loaded
        self.records = list(records)  # a copy: it grows while readers hold theirs
        self.size = 200 + sum(record.size for record in records)
        self.ids = {record.event_id: record for record in records if record.is_event}
        self.changes: Pair[Changes] = record_changes(records)
        # The last record that may have changed which records to load.
        self.last_loading_change = max(
            (record.seq for record in records if may_change_loading(record)), default=0
        )

    @property
    def first(self) -> int:
        return self.records[0].seq if self.records else self.first_seq

    @property
    def last(self) -> int:
        return self.records[-1].seq if self.records else self.first_seq - 1

    @property
    def only_events(self) -> bool:
        return len(self.ids) == len(self.records)

    @property
    def whole(self) -> bool:
        return self.first <= self.first_seq

    def extend(self, records: list[Record]) -> None:
        """Adds those of these records that follow the run."""
        following = self.last + 1
        if records and records[-1].seq < following:
            return
        for record in records:
            if record.seq != following or record.incarnation != self.incarnation:
                continue
            following += 1
            self.records.append(record)
            self.size += record.size
            if may_change_loading(record):
                self.last_loading_change = record.seq
            if record.is_event:
                self.ids[record.event_id] = record
            if record.deltas.has_shared:
                self.changes = self.changes.map(newest, record_changes([record]))

    def after(self, seq: int) -> list[Record] | None:
        """The records after a sequence number; None if the view lacks some of them."""
        if seq + 1 < self.first:
            return None
        return self.records[max(0, seq + 1 - self.first) :] if self.records else []


class LogViews:
    """The views in the cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(self, key: SessionKey) -> LogView | None:
        found: LogView | None = self._cache.get(key.session_hash)
        return found

    def drop(self, key: SessionKey) -> None:
        self._cache.drop(key.session_hash)

    def put(self, key: SessionKey, view: LogView) -> LogView:
        self._cache.put(key.session_hash, view)
        return view

    def take(
        self,
        key: SessionKey,
        incarnation: str,
        first_seq: int,
        records: list[Record],
    ) -> LogView:
        """Adds what a reader found: a run without a gap up to the then end of the log."""
        view = self.of(key)
        if view is None or view.incarnation != incarnation:
            view = LogView(incarnation, first_seq, records)
        elif records and not (view.records and view.first <= records[0].seq <= view.last + 1):
            newer = [record for record in view.records if record.seq > records[-1].seq]
            view = LogView(incarnation, first_seq, records + newer)
        else:
            view.first_seq = first_seq
            view.extend(records)
        return self.put(key, view)

    def extend(self, key: SessionKey, records: list[Record]) -> None:
        """Adds what a writer stored."""
        view, first = self.of(key), records[0]
        if (
            view is None
            or view.incarnation != first.incarnation
            or not view.first <= first.seq <= view.last + 1
        ):
            # Where the incarnation begins is not known here: whoever reads all of it reads from 0.
            view = LogView(first.incarnation, 0, list(records))
        else:
            view.extend(records)
        self.put(key, view)
