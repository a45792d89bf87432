"""The origin: a document beside the log with the state that a session was created with.

A session's first event carries that state (first_events.py). Until there is an event, the origin
does, so that the log and what is stored beside it are complete. A session whose document was
removed by something else is rebuilt from them.

Partition "body1" holds the origins, next to the bodies of large events: erasure treats them alike.
"""

from __future__ import annotations

from tests.model.first_events import INITIAL
from tests.model.situations import session_document
from tests.model.steps import confirm, first_missing, fold, of, probe, project
from tests.model.store import EMPTY, Frozen, document, documents

ERASED = ("purging", "purged")


def origin_of(doc):
    return Frozen(
        kind="origin",
        seq=0,
        event_id="origin:" + doc.incarnation,
        incarnation=doc.incarnation,
        first_seq=doc.first_seq,
        state=doc.state,
    )


def keep(rules, proc, known=None):
    """Stores the origin of a session. `known`: its document as it was created. A reader looks for
    a session that has no events."""
    origin = known and origin_of(known)
    if origin is None:
        origin = yield from seen_without_events(rules)
    if origin is None:
        return
    yield ("create", "body1", origin.event_id, origin)
    origin = origin.incarnation
    if rules.without("an origin of an erased session is removed"):
        return
    yield from confirm("1")
    reply = yield ("read", "session1", "s")
    # Without a document, something else has removed it: the origin is all that is left.
    if reply[0] == "ok" and (reply[2].incarnation != origin or reply[2].status in ERASED):
        reply = None
        yield ("delete", "body1", "origin:" + origin)


def seen_without_events(rules):
    """The origin of a session that is shown without events; None if there is none. The log may be
    read from an older replica than the document, so it must reach the revision."""
    reply = yield ("read", "session1", "s")
    doc, reply = reply[2] if reply[0] == "ok" else None, None
    if doc is None or doc.status != "active":
        return None
    found = yield ("query", "log1")
    found = of(found[1], doc.incarnation)
    missing = first_missing(found, doc.first_seq, doc.revision)
    if rules.without("an origin is the state before every event"):
        missing = None
    if missing is not None or any(r.kind == "event" for r in found):
        return None
    return origin_of(doc)


def rebuild(rules, proc):
    """Repairs a session whose document is missing: the last creation that is stored, with the
    records that follow it."""
    yield from confirm("1")
    if not rules.without("a rebuild probes first"):
        yield from probe("log1", (0, "probe"))
    reply = yield ("read", "session1", "s")
    if reply[0] == "ok":
        return
    found = yield ("query", "log1")
    found = found[1]
    kept = yield ("query", "body1")
    found, kept = last_creation(rules, found, kept[1]), None
    if found is None:
        return
    doc, last = found
    found = None
    reply = yield ("create", "session1", "s", doc)
    doc = doc.incarnation
    if reply[0] == "ok" and last:
        yield from project(rules, "1", doc, last)


def last_creation(rules, records, origins):
    """The document of the last creation, and its last place; None if nothing tells of any."""
    if rules.without("a rebuild reads the origin"):
        origins = ()
    creations = {o.incarnation: (o.first_seq, o.state) for o in origins}
    events = {}
    for r in records:
        if r.kind == "event":
            events.setdefault(r.incarnation, r)
    for incarnation, event in events.items():
        first = of(records, incarnation)[0].seq
        creations.setdefault(incarnation, (first, event.get("before", EMPTY)))
    if not creations:
        return None
    chosen = max(creations, key=lambda incarnation: creations[incarnation][0])
    if events and rules.without("a rebuild takes the last creation"):
        chosen = max(events, key=lambda incarnation: events[incarnation].seq)
    first, state = creations[chosen]
    doc = session_document(chosen, first_seq=first, revision=first - 1).having(state=state)
    return doc, max((r.seq for r in of(records, chosen)), default=0)


def removes(proc):
    """Something else removes the session document."""
    yield ("delete", "session1", "s")


class OriginTells:
    """O1: an origin has the state that its session was created with; O2: nothing of an erased
    session is left; O3: a rebuilt session is the one that was lost."""

    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset(), crash=()):
        self._crash = crash

    def initial(self):
        return EMPTY

    def apply(self, ghost, marks, process, op, before, after):
        wrong = [o for o in documents(after, "body1") if o.state != self._created_with(o)]
        broken = [("O1-wrong", f"{o.incarnation} began with {dict(o.state)}") for o in wrong]
        return ghost, broken if before is not after else ()

    @staticmethod
    def _created_with(origin):
        return INITIAL if origin.incarnation == "a0" else EMPTY

    def at_rest(self, ghost, store):
        doc, kept = document(store, "session1", "s"), documents(store, "body1")
        events = [r for r in documents(store, "log1") if r.kind == "event"]
        if doc is None:
            # A creator that died before there was an event and an origin left only the document.
            return [("O3-lost", "not rebuilt")] if events or kept else []
        broken = []
        dead = [o.incarnation for o in kept if o.incarnation != doc.incarnation]
        if doc.status == "purged":
            dead = [o.incarnation for o in kept]
        if dead:
            broken.append(("O2-unerased", f"the origins of {dead} are stored"))
        if doc.status != "purged":
            first = self._created_with(doc)
            mine = [r for r in events if r.incarnation == doc.incarnation]
            if doc.state != fold(first, [r for r in mine if r.seq <= doc.revision]):
                broken.append(("O3-lost", f"{dict(doc.state)} is not what the session was"))
            if any(r.incarnation > doc.incarnation for r in [*events, *kept]):
                broken.append(("O3-lost", f"{doc.incarnation} is not the last one"))
        return broken
