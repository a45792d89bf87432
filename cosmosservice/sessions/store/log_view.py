"""This process's view of one session's log: a run of records without a gap."""

from __future__ import annotations

from collections.abc import Iterable

from cosmosservice.account.cache import Cache
from cosmosservice.scopes import Pair
from cosmosservice.sessions.store.compaction import Loading, is_turning
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.state_documents import Changes, newest, record_changes


class LogView:
    """Records of one incarnation without a gap. Events never change, so this only grows."""

    __slots__ = (
        "apart", "changes", "first_seq", "has_origin", "ids", "incarnation", "records", "size",
        "turning",
    )  # fmt: skip

    def __init__(self, incarnation: str, first_seq: int, records: list[Record]) -> None:
        self.incarnation = incarnation
        self.first_seq = first_seq  # where the incarnation begins, even if not loaded
        self.records = list(records)  # a copy: it grows while readers hold theirs
        self.size = 200 + sum(record.size for record in records)
        self.ids = {record.event_id: record for record in records if record.is_event}
        self.changes: Pair[Changes] = record_changes(records)
        self.apart: dict[int, Record] = {}  # single records before the run
        self.has_origin = False  # as far as this process knows
        # The last place that may have changed which records to load.
        self.turning = max((record.seq for record in records if is_turning(record)), default=0)

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
            if is_turning(record):
                self.turning = record.seq
            if record.is_event:
                self.ids[record.event_id] = record
            if record.deltas.has_shared:
                self.changes = self.changes.map(newest, record_changes([record]))

    def put_apart(self, records: list[Record]) -> None:
        for record in records:
            if record.seq < self.first and record.seq not in self.apart:
                self.apart[record.seq] = record
                self.size += record.size

    def of_places(self, places: Iterable[int]) -> list[Record]:
        """The records at these places that the view has."""
        found = (
            self.records[seq - self.first] if seq >= self.first else self.apart.get(seq)
            for seq in places
            if seq <= self.last
        )
        return [record for record in found if record is not None]

    def named(self, loading: Loading) -> list[Record] | None:
        """All records that `loading` names; None if the view lacks some of them."""
        following = self.after(loading.begin - 1)
        apart = self.of_places(loading.apart)
        if following is None or len(apart) < len(loading.apart):
            return None
        return apart + following

    def after(self, seq: int) -> list[Record] | None:
        """The records after a place; None if the view lacks some of them."""
        if seq + 1 < self.first:
            return None
        return self.records[max(0, seq + 1 - self.first) :] if self.records else []


class LogViews:
    """The views in the cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(self, key: SessionKey) -> LogView | None:
        found: LogView | None = self._cache.get(key.tenant)
        return found

    def drop(self, key: SessionKey) -> None:
        self._cache.drop(key.tenant)

    def put(self, key: SessionKey, view: LogView) -> LogView:
        self._cache.put(key.tenant, view)
        return view

    def remember_origin(self, key: SessionKey, incarnation: str) -> None:
        """Remembers that the session's origin is stored."""
        view = self.of(key)
        if view is not None and view.incarnation == incarnation:
            view.has_origin = True

    def take(
        self,
        key: SessionKey,
        incarnation: str,
        first_seq: int,
        records: list[Record],
        apart: list[Record],
    ) -> LogView:
        """Adds what a reader found: a run without a gap up to the then end of the log, and single
        records before it."""
        view = self.of(key)
        if view is None or view.incarnation != incarnation:
            view = LogView(incarnation, first_seq, records)
        elif records and not (view.records and view.first <= records[0].seq <= view.last + 1):
            newer = [record for record in view.records if record.seq > records[-1].seq]
            view = LogView(incarnation, first_seq, records + newer)
        else:
            view.first_seq = first_seq
            view.extend(records)
        view.put_apart(apart)
        return self.put(key, view)

    def extend(self, key: SessionKey, records: list[Record]) -> None:
        """Adds what a writer stored."""
        view, first = self.of(key), records[0]
        if (
            view is None
            or view.incarnation != first.incarnation
            or not view.first <= first.seq <= view.last + 1
        ):
            # The beginning is not known here: 0 makes a reader of the whole log look for it.
            view = LogView(first.incarnation, 0, list(records))
        else:
            view.extend(records)
        self.put(key, view)
