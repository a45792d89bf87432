"""Erasing: events become stubs, bodies are deleted, and a user's state leaves a stamp.

Erasure goes by partition, not by what a session document knows. It erases everything that is stored
under the session's name and is dead. Dead are: an incarnation that is being purged; everything up
to the revision of a document that is being purged; and what was found *before* the session document
was read and is not of its incarnation.
"""

from __future__ import annotations

from tests.model.steps import confirm, probe, record, record_id
from tests.model.store import EMPTY, Frozen


def content(rules, sid, probed, record=(1, "")):
    """The stored content of a session, as (version, document): events, then bodies. A read may be
    stale, so a probe comes first."""
    if not probed and not rules.without("erasure probes first"):
        yield from probe("log" + sid, record)
    found = yield ("scan", "log" + sid)
    found = tuple(e for e in found[1] if e[1].kind == "event")
    if rules.bodies:
        bodies = yield ("scan", "body" + sid)
        found += bodies[1]
    return found


def is_dead(entry, doc, found):
    """Whether the purge that this document announces includes the entry, whatever has happened
    since."""
    incarnations = {doc.incarnation}
    incarnations |= {e[1].incarnation for e in found if 0 < e[1].seq <= doc.revision}
    if entry[1].seq:
        return entry[1].seq <= doc.revision or entry[1].incarnation == doc.incarnation
    return entry[1].incarnation in incarnations


def remove(rules, sid, todo):
    """Replaces events by stubs, which keep their sequence numbers taken, and deletes bodies."""
    while todo:
        (version, rec), todo = todo[0], todo[1:]
        if not rec.seq:
            yield ("delete", "body" + sid, rec.event_id)
        elif rules.without("purge leaves stubs"):
            yield ("delete", "log" + sid, record_id(rec))
        else:
            stamp = 0 if rules.without("a stub keeps its stamp") else rec.stamp
            stub = record("stub", rec.incarnation, rec.seq, rec.event_id, stamp)
            yield ("replace", "log" + sid, record_id(rec), stub, version)
        rec = stub = version = stamp = None


def erase(rules, sid, doc, etag):
    """Completes a purge that the session document announces: stubs for events, then the
    document."""
    probed = False
    while True:
        found = todo = others = now = None
        found = yield from content(rules, sid, probed, (doc.revision, doc.incarnation))
        probed = True
        if rules.without("purge covers earlier incarnations"):
            found = tuple(e for e in found if e[1].incarnation == doc.incarnation)
        todo = tuple(e for e in found if is_dead(e, doc, found))
        others = tuple(e for e in found if e not in todo)
        found = None
        if others and rules.without("what may have an owner waits for the document"):
            todo += others
        elif others and not rules.without("erasure goes by partition"):
            # Left by a session whose document expired, or written by a session that was created
            # since.
            yield from confirm(sid)
            now = yield ("read", "session" + sid, "s")
            now = now[2] if now[0] == "ok" else None
            if now is not None and (now.incarnation, now.status) == (doc.incarnation, "purging"):
                todo += others
        others = now = None
        if not todo:
            break
        yield from remove(rules, sid, todo)
        if rules.without("purge reads until nothing is left"):
            break
    todo = found = others = now = probed = None
    doc = doc.having(status="purged").without("replaced")
    done = yield ("replace", "session" + sid, "s", doc, etag)
    return done


def sweep(rules, sid):
    """Erases what is left in the partition of a session that has no document, or a purged one.
    Returns whether there was anything."""
    if rules.without("erasure goes by partition"):
        return False
    erased = probed = False
    while True:
        found = yield from content(rules, sid, probed)
        probed = True
        if not found:
            return erased
        doc = None
        if not rules.without("what may have an owner waits for the document"):
            yield from confirm(sid)
            doc = yield ("read", "session" + sid, "s")
            doc = doc[2] if doc[0] == "ok" else None
        if doc is not None and doc.status not in ("purging", "purged"):
            found = tuple(e for e in found if e[1].incarnation != doc.incarnation)
            if not found:
                return erased
        doc = None
        yield from remove(rules, sid, found)
        found, erased = None, True


def erase_predecessors(rules, sid, doc, last):
    """Erases what a re-created session left of its predecessors: everything up to `last`."""
    probed = False
    while True:
        found = None
        found = yield from content(rules, sid, probed, (doc.revision, doc.incarnation))
        probed = True
        found = tuple(e for e in found if e[1].seq <= last)
        if not found:
            return
        yield from remove(rules, sid, found)


def erase_state(rules, newest):
    """Erases the user's state. `newest` is the highest stamp among what was erased before.

    A stub with the stamp of the erasure stays: older changes that are still under way in some
    process must not come back.
    """
    now = yield ("now",)
    while True:
        reply = written = stamp = doc = None
        reply = yield ("read", "user", "d")
        if rules.without("erased state leaves a stamp"):
            if reply[0] == "ok":
                yield ("delete", "user", "d")
            return
        doc = reply[2] if reply[0] == "ok" else Frozen(stamps=EMPTY)
        stamp = max([now, doc.get("erased", 0), *(stamp for stamp, _ in doc.stamps.values())])
        if not rules.without("the erasure is later than all it erased"):
            stamp = max(stamp, newest)
        doc = Frozen(state=EMPTY, stamps=EMPTY, erased=stamp + 1)
        if reply[0] == "ok":
            written = yield ("replace", "user", "d", doc, reply[1])
        else:
            written = yield ("create", "user", "d", doc)
        if written[0] == "ok":
            return


def newest_stamp(sid):
    """The highest stamp in a session's log, stubs included."""
    found = yield ("query", "log" + sid)
    return max([r.stamp for r in found[1]], default=0)
