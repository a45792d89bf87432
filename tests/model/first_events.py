"""The initial state in the log: a session's first event carries the state before it.

So the log alone is complete, and a session whose document was removed by something else is rebuilt
from it. This module has the parts of append, delete, restore and repair that concern it. Other
modules have the rest. INITIAL is the state that the session was created with.
"""

from __future__ import annotations

from tests.model.situations import session_document
from tests.model.steps import (
    confirm,
    finish_restore,
    fold,
    of,
    probe,
    project,
    record,
    record_id,
    tombstone_in_force,
)
from tests.model.store import EMPTY, Frozen, document, documents

INITIAL = Frozen(j=0, k=0)


def get(rules, proc):
    """A session object: incarnation, sequence number, and whether the session is new, or None.
    A session is new until it has an event, whatever other records its log has."""
    reply = yield ("read", "session1", "s")
    found = yield ("query", "log1")
    doc = reply[2] if reply[0] == "ok" else None
    if doc is None or doc.status != "active":
        return None
    records = of(found[1], doc.incarnation)
    if tombstone_in_force(records):
        return None
    new = not any(r.kind == "event" for r in records)
    if rules.without("a session without events is new"):
        new = not records
    return Frozen(
        incarnation=doc.incarnation, n=max([doc.revision, *(r.seq for r in records)]), new=new
    )


def state_before(rules, held):
    """The state that the session was created with; None if it has changed since."""
    confirmed = rules.without("a document that is not visible is confirmed")
    while True:
        reply = yield ("read", "session1", "s")
        doc = reply[2] if reply[0] == "ok" else None
        reply = None
        if doc is not None and doc.incarnation == held.incarnation:
            # The document may be late compared with the session object: marks do not change the
            # state.
            late = doc.revision < held.n and rules.without("marks do not change the state")
            return doc.state if doc.revision <= held.n and not late else None
        doc = None
        if confirmed:
            return None
        yield from confirm("1")
        confirmed = True


def append(rules, proc, held, key, rebase=False):
    """Sets a key. The event has the name of the process."""
    before, n = None, held.n
    if held.new:
        before = yield from state_before(rules, held)
    while True:
        written = found = rec = None
        rec = record("event", held.incarnation, n + 1, proc.name, 0, Frozen({key: proc.name}))
        if before is not None:
            rec = rec.having(before=before)
        written = yield ("create", "log1", record_id(rec), rec)
        rec = None
        if written[0] == "ok":
            break
        found = yield ("query", "log1")
        found = of(found[1], held.incarnation, n)
        if any(r.event_id == proc.name for r in found):
            break
        if not rebase or any(r.kind != "event" for r in found):
            return
        if not rules.without("a rebased event does not carry the initial state"):
            before = None
        n = found[-1].seq
    before = found = written = None
    yield from project(rules, "1", held.incarnation, n + 1)


def appends(rules, key, held=None, rebase=False):
    """Appends from the given session object, or from one that is read now."""

    def body(proc):
        session = held
        if session is None:
            session = yield from get(rules, proc)
        if session is not None:
            yield from append(rules, proc, session, key, rebase)

    return body


def deletes_and_restores(rules):
    def body(proc):
        while True:
            reply = found = doc = None
            reply = yield ("read", "session1", "s")
            found = yield ("query", "log1")
            doc = reply[2]
            if doc.status == "active":
                n = max([doc.revision, *(r.seq for r in of(found[1], "a0"))])
                found = record("tombstone", "a0", n + 1, "T")
                reply = yield ("create", "log1", (n + 1, "a0"), found)
                found = doc = None
                if reply[0] == "ok":
                    yield from project(rules, "1", "a0", n + 1)
            elif doc.status == "deleted":
                doc, found = doc.having(status="restoring"), None
                reply = yield ("replace", "session1", "s", doc, reply[1])
                if reply[0] == "ok":
                    yield from finish_restore(rules, "1", doc, reply[1])
                    return

    return body


def removes(proc):
    """Something else removes the session document."""
    yield ("delete", "session1", "s")


def rebuilds(rules):
    """Repairs a session whose document is missing: the last one that has events."""

    def body(proc):
        yield from confirm("1")
        if not rules.without("a rebuild probes first"):
            yield from probe("log1", (0, "probe"))
        reply = yield ("read", "session1", "s")
        if reply[0] == "ok":
            return
        found = yield ("query", "log1")
        first, last, found = *last_creation(rules, found[1]), None
        if first is None:
            return
        state = EMPTY if rules.without("a rebuild reads the initial state") else first.before
        doc = session_document(first.incarnation, first_seq=first.seq, revision=first.seq - 1)
        reply = yield ("create", "session1", "s", doc.having(state=state))
        doc, first, state = doc.incarnation, None, None
        if reply[0] == "ok":
            yield from project(rules, "1", doc, last)

    return body


def last_creation(rules, records):
    """The first event of the last session that has any, and its last sequence number."""
    first = None
    for r in records:
        if r.kind == "event" and (first is None or r.incarnation != first.incarnation):
            first = r
            if rules.without("a rebuild takes the last creation"):
                break
    return first, max(
        (r.seq for r in records if first and r.incarnation == first.incarnation), default=0
    )


class Rebuilt:
    """N4: a session that has events is rebuilt as it was. a0 was created with INITIAL, and every
    later one without a state."""

    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset()):
        pass

    def initial(self):
        return EMPTY

    def apply(self, ghost, marks, process, op, before, after):
        return ghost, ()

    def at_rest(self, ghost, store):
        doc = document(store, "session1", "s")
        events = [r for r in documents(store, "log1") if r.kind == "event"]
        if doc is None:
            return [("N4-lost", "not rebuilt")] if events else []
        if any(r.incarnation > doc.incarnation for r in events):
            return [("N4-lost", f"{doc.incarnation} is not the last one")]
        first = INITIAL if doc.incarnation == "a0" else EMPTY
        if doc.state != fold(first, [r for r in events if r.incarnation == doc.incarnation]):
            return [("N4-lost", f"{dict(doc.state)} is not what the session was")]
        return []


class LogTellsEverything:
    """N1: the first event carries the initial state; N2: no other event carries any; N3: the
    document shows what the log says."""

    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset()):
        pass

    def initial(self):
        return EMPTY

    def apply(self, ghost, marks, process, op, before, after):
        return ghost, self.at_rest(ghost, after) if before is not after else ()

    def at_rest(self, ghost, store):
        events = [r for r in documents(store, "log1") if r.kind == "event"]
        broken = []
        if events and events[0].get("before") != INITIAL:
            broken.append(("N1-missing", f"{events[0].event_id} carries {events[0].get('before')}"))
        later = [r.event_id for r in events[1:] if "before" in r]
        if later:
            broken.append(("N2-carried", f"{later} are not the first"))
        doc = document(store, "session1", "s")
        folded = fold(INITIAL, [r for r in events if r.seq <= doc.revision])
        if doc.state != folded:
            broken.append(("N3-fold", f"{dict(doc.state)}, but the log gives {dict(folded)}"))
        return broken
