"""Ghost variables: what has been promised so far, tracked alongside the processes.

A delete and a get name an incarnation and how often it had been restored.
"""

from __future__ import annotations

from tests.model.store import EMPTY, Frozen, document, documents


def content_of(store: Frozen, sid: str) -> frozenset:
    """The ids of all stored events and bodies of a session."""
    found = documents(store, "log" + sid)
    found += documents(store, "body" + sid) if "body" + sid in store else []
    return frozenset((d.kind, d.event_id) for d in found if d.kind in ("event", "body"))


def _states(store: Frozen) -> list:
    found = [document(store, scope, "d") for scope in ("user", "app") if scope in store]
    return [doc for doc in found if doc is not None]


def history(store: Frozen) -> Frozen:
    """The ghost of a store whose whole content was acknowledged long ago."""
    created, dead, restores, seen, lost = {}, {}, {}, {}, set()
    writers = {w for doc in _states(store) for _, w in doc.stamps.values()}
    for partition in store:
        if partition.startswith("log"):
            records = documents(store, partition)
            for rec in records:
                seen.setdefault(rec.incarnation, rec.seq)
                if rec.kind in ("event", "stub"):
                    created[rec.event_id] = (rec.incarnation, rec.seq, rec.session)
                elif rec.kind == "tombstone":
                    dead[rec.incarnation] = rec.seq
                else:
                    dead.pop(rec.incarnation)
                    restores[rec.incarnation] = restores.get(rec.incarnation, 0) + 1
        elif partition.startswith("session"):
            doc = document(store, partition, "s")
            records = documents(store, "log" + partition.removeprefix("session"))
            for rec in records:  # of sessions whose document has expired
                if doc is None or rec.incarnation != doc.incarnation:
                    dead.setdefault(rec.incarnation, 0)
            if doc is not None:
                seen.setdefault(doc.incarnation, doc.first_seq)
                present = {r.seq for r in records if r.incarnation == doc.incarnation}
                span = range(doc.first_seq, doc.revision + 1)
                lost |= {(doc.incarnation, seq) for seq in span if seq not in present}
    return Frozen(
        returned=frozenset(created) | writers,
        rejected=frozenset(),
        started=EMPTY,  # event -> what had returned before
        deleted_before=EMPTY,  # event -> (incarnation, restores) whose delete had returned before
        dead=Frozen(dead),  # incarnation -> tombstone in force
        restores=Frozen(restores),  # incarnation -> how often it was restored
        deletes_returned=frozenset(),  # (incarnation, restores)
        past=EMPTY,  # shared key -> events it showed before
        created=Frozen(created),  # event -> (incarnation, seq, session delta)
        touches=EMPTY,  # event -> shared keys it touches
        running=EMPTY,  # (process, operation) -> what it knew when it began
        incarnations=Frozen(seen),
        won=EMPTY,  # (incarnation, marker) -> event appended from it
        lost=frozenset(lost),  # sequence numbers whose documents were removed before the start
        erased=frozenset(),  # events whose user state was erased together with their session
        completed=frozenset(),  # incarnations of forks that have been active
        ended=frozenset(),  # incarnations of forks that will never be active
        forgotten=frozenset(),  # events begun before the erasure: their user state may be gone
    )


def without_key(mapping: Frozen, key) -> Frozen:
    return mapping.without(key) if key in mapping else mapping


class Ghost:
    """Tracks the processes. `Invariants` defines what must hold."""

    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset()):
        self._history, self._stale = history(store), stale

    def initial(self) -> Frozen:
        return self._history

    def apply(self, ghost, marks, process, op, before, after):
        """The ghost after one step, and the invariants that the step broke."""
        if not marks and before is after:
            return ghost, ()
        broken: list[tuple[str, str]] = []
        for mark in marks:
            starting = getattr(self, "_start_" + mark[0], None)
            if starting:
                ghost = starting(ghost, process, before, *mark[1:])
        if before is not after:
            kind = op[1].rstrip("0123456789")
            ghost = getattr(self, "_changed_" + kind, self._changed_shared)(
                ghost, op, before, after, broken
            )
        for mark in marks:
            ending = getattr(self, "_" + mark[0], None)
            if ending and mark[0].endswith("_end"):
                ghost = ending(ghost, process, after, broken, *mark[1:])
        return ghost, broken

    @staticmethod
    def older(ghost, a, b) -> bool:
        """Whether a is older than b: by real time, by the order of a log, or by a chain of both."""
        if a == b:
            return False
        if a is None:
            return True
        seen, waiting = set(), [b]
        while waiting:
            x = waiting.pop()
            earlier = set(ghost.started.get(x, ()))
            created = ghost.created.get(x)
            if created:
                earlier |= {
                    y for y, p in ghost.created.items() if p[0] == created[0] and p[1] < created[1]
                }
            if a in earlier:
                return True
            waiting += earlier - seen
            seen |= earlier
        return False

    # -------------------------------------------------------------- an operation begins

    @staticmethod
    def _begin(ghost, process, operation, known):
        if (process, operation) in ghost.running:
            return ghost
        return ghost.having(running=ghost.running.put((process, operation), known))

    @staticmethod
    def _live(ghost, store, sid):
        """(incarnation, restores) of the session if it is alive according to the log."""
        doc = document(store, "session" + sid, "s")
        if doc is None or doc.incarnation in ghost.dead:
            return None
        return doc.incarnation, ghost.restores.get(doc.incarnation, 0)

    def _start_append(self, ghost, process, store, sid, event_id, incarnation, n, keys):
        if event_id in ghost.started:
            return ghost
        return ghost.having(
            started=ghost.started.put(event_id, ghost.returned),
            deleted_before=ghost.deleted_before.put(event_id, ghost.deletes_returned),
            touches=ghost.touches.put(event_id, keys) if keys else ghost.touches,
        )

    def _start_get(self, ghost, process, store, sid):
        live = self._live(ghost, store, sid)
        known = (ghost.returned, ghost.deletes_returned, live, ghost.erased)
        return self._begin(ghost, process, "get", known)

    def _start_iterate(self, ghost, process, store, sid):
        live = self._live(ghost, store, sid)
        known = [e for e, p in ghost.created.items() if live and p[0] == live[0] and e[:2] != "i:"]
        known = ghost.returned & frozenset(known)
        return self._begin(ghost, process, "iterate", (live, known))

    def _start_delete(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        target = None
        if doc and doc.status in ("active", "restoring", "forking"):
            restored = ghost.restores.get(doc.incarnation, 0)
            announced = doc.status == "restoring" and doc.incarnation in ghost.dead
            target = (doc.incarnation, restored + announced)
        return self._begin(ghost, process, "delete", target)

    def _start_create(self, ghost, process, store, sid, incarnation, keys):
        known = (self._live(ghost, store, sid) is None, ghost.incarnations, ghost.restores)
        ghost = self._begin(ghost, process, "create", known)
        if keys:
            event_id = "i:" + incarnation
            ghost = ghost.having(
                started=ghost.started.put(event_id, ghost.returned),
                touches=ghost.touches.put(event_id, keys),
            )
        return ghost

    def _start_restore(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        dead = doc is not None and doc.incarnation in ghost.dead
        known = (doc.incarnation, ghost.restores) if dead else None
        return self._begin(ghost, process, "restore", known)

    def _start_purge(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        known = frozenset(), None
        if doc is None or doc.status in ("deleted", "purging", "purged"):
            known = content_of(store, sid), doc and doc.incarnation
        return self._begin(ghost, process, "purge", known)

    def _start_repair(self, ghost, process, store, sid):
        live = self._live(ghost, store, sid)
        records = documents(store, "log" + sid)
        last = max([r.seq for r in records if live and r.incarnation == live[0]], default=0)
        return self._begin(ghost, process, "repair", (live, last))

    def _start_expired(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        return ghost.having(dead=ghost.dead.put(doc.incarnation, 0))

    def _start_purge_user(self, ghost, process, store, *sids):
        known = tuple((sid, content_of(store, sid)) for sid in sids)
        return self._begin(ghost, process, "purge_user", known)

    def _start_purge_replaced(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        bound = doc.first_seq - 1 if doc is not None else 0
        return self._begin(ghost, process, "purge_replaced", bound)
