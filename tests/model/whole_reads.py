"""Operations that must see everything: iterate over the log, repair. Both probe first."""

from __future__ import annotations

from tests.model.steps import (
    GONE,
    confirm,
    finish_restore,
    initial_state,
    merge_all,
    of,
    probe,
    project,
    proved,
    read_whole,
    record,
)


def iterate(rules, proc, sid):
    """The session's events in order, one record per page: complete, or an error. Ends with the
    incarnation and the events that were delivered; None: there is no session, or it was deleted."""
    proc.start("iterate", sid)
    confirmed = False
    while True:
        reply = doc = delivered = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status in GONE:
            reply = doc = None
            if not confirmed and not rules.without("iterate confirms what it read"):
                confirmed = yield from confirm(sid)
                if confirmed:
                    continue
            break
        if doc.status == "restoring":
            yield from finish_restore(rules, sid, doc, reply[1])
            continue
        reply = None
        if not rules.without("iterate probes first"):
            yield from probe("log" + sid, (doc.revision + 1, doc.incarnation))
        delivered = yield from _pages(rules, sid, doc)
        if delivered is not None:
            proc.end("iterate_end", sid, doc.incarnation, delivered)
            return
        # A stub or a tombstone: the session was deleted, and perhaps created again. If events were
        # delivered, this is an error, because they cannot be taken back.
        if confirmed:
            break
        confirmed = yield from confirm(sid)
        if not confirmed:
            break
    proc.end("iterate_end", sid, None, ())


def _pages(rules, sid, doc):
    """The ids of the events, page by page; None if the session turns out to be deleted."""
    at, holes, tries, delivered, last = doc.first_seq, (), 0, (), None
    incarnation, revision = doc.incarnation, doc.revision
    doc = None
    while True:
        found = yield ("query", "log" + sid)
        found = of(found[1], incarnation, at - 1)
        rec = next((r for r in found if r.seq == at), None)
        more = bool(found) or at <= revision
        found = None
        if rec is None and not more:
            break
        if rec is None and (at, incarnation) not in holes:
            if rules.without("the last page reaches the revision"):
                break
            holes = yield from proved(rules, sid, (at, incarnation), holes, tries)
            holes, tries = holes
            continue
        if rec is not None and rec.kind == "stub":
            return None  # and a tombstone follows it
        if rec is not None and rec.kind != "event":
            last = rec.kind
        elif rec is not None:
            delivered += (rec.event_id,)
        at, rec = at + 1, None
    if last == "tombstone" and not rules.without("a tombstone ends an iteration with an error"):
        return None
    return delivered


def repair(rules, proc, sid):
    """Brings the documents up to date with the log, and reports damage. Never lowers a revision."""
    proc.start("repair", sid)
    probed = rules.without("repair probes first")
    if not probed:
        yield from confirm(sid)
    reply = yield ("read", "session" + sid, "s")
    doc = reply[2] if reply[0] == "ok" else None
    if doc is None or doc.status != "active":
        proc.end("repair_end", sid, ())
        return
    if not probed:
        yield from probe("log" + sid, (doc.revision, doc.incarnation))
    found = yield from read_whole(rules, sid, doc.incarnation, doc.first_seq, doc.revision)
    records, holes = found
    closed, found = holes, None
    while holes and not rules.without("repair closes a proved hole"):
        # Otherwise an old session object could append there, below the revision.
        found, holes = holes[0], holes[1:]
        yield ("create", "log" + sid, found, record("lost", found[1], found[0], "lost"))
    yield from merge_all(rules, initial_state(doc) + records)
    last = max([doc.first_seq - 1, *(r.seq for r in records)])
    if last < doc.revision and rules.without("repair never lowers the revision"):
        doc = doc.having(revision=last)
        yield ("replace", "session" + sid, "s", doc, reply[1])
    reply = records = found = None
    if last > doc.revision:
        doc = doc.incarnation
        yield from project(rules, sid, doc, last)
    proc.end("repair_end", sid, closed)
