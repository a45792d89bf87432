"""Forks: a new session with the events of another one up to a point.

The new document comes first, with the status `forking`. It names its source, the point and the
number of events. It may take the place of a purged session; its log then begins after the stubs.
Then the events are copied to the beginning of its log, and it becomes active. Any process that
finds `forking` completes the fork. If events of the source are gone, it announces a purge.

The copy of an event z is called "f:z" here, to tell the two apart.
"""

from __future__ import annotations

from tests.model.erasing import erase, sweep
from tests.model.steps import finish_restore, fold, of, probe, record, record_id, tombstone_in_force
from tests.model.store import EMPTY, Frozen

NAMES = {"restoring": "restore", "forking": "fork"}  # what a document may announce
GONE_FOR_GOOD = ("purging", "purged")


def fork(rules, proc, source, target, incarnation):
    """Outcome: ok; exists (the target's id is taken); notfound (no source); ended (the source or
    the new session was erased before the fork was complete)."""
    reply = records = doc = None
    outcome = None
    reply = yield ("read", "session" + source, "s")
    doc = reply[2] if reply[0] == "ok" else None
    reply = yield ("query", "log" + source)
    if doc is None or doc.status != "active":
        outcome = "notfound"
    else:
        records = of(reply[1], doc.incarnation)
        if tombstone_in_force(records):
            outcome = "notfound"
    reply = None
    if outcome is None:
        seq = max([doc.revision, *(r.seq for r in records)])
        records = tuple(r for r in records if r.kind == "event")
        named = Frozen(sid=source, incarnation=doc.incarnation, seq=seq, events=len(records))
        doc = Frozen(
            status="forking",
            incarnation=incarnation,
            first_seq=1,
            revision=0,
            state=EMPTY,
            source=named,
        )
        named = seq = None
        if rules.without("the fork's document is created first"):
            yield from copies(target, doc, records)
        reply = yield ("create", "session" + target, "s", doc)
        etag = reply[1] if reply[0] == "ok" else None
        while outcome is None and etag is None:
            reply = yield ("read", "session" + target, "s")
            found = reply[2] if reply[0] == "ok" else None
            if found is not None and own_attempt(found, incarnation):
                doc, etag = found, reply[1]
                if doc.status != "forking" and not rules.without(
                    "only what is forking is copied to"
                ):
                    # The answer to our write was lost, and another process has continued since.
                    outcome = "ended" if doc.status in GONE_FOR_GOOD else "ok"
                if rules.without("own fork is recognised"):
                    outcome = "exists"
            elif found is not None and found.status == "purging":
                yield from erase(rules, target, found, reply[1])
            elif found is not None and found.status == "purged":
                # A new incarnation for every attempt, after the stubs.
                doc = doc.having(
                    incarnation=doc.incarnation + "'",
                    first_seq=found.revision + 1,
                    revision=found.revision,
                )
                etag = None if rules.without("If-Match on a fork") else reply[1]
                reply = yield ("replace", "session" + target, "s", doc, etag)
                etag = reply[1] if reply[0] == "ok" else None
            else:
                outcome = "exists"
            found = None
        reply = None
        if outcome is None:
            outcome = yield from copy(rules, target, doc, etag, records)
    if outcome != "notfound":
        incarnation = doc.incarnation
    reply = doc = records = etag = None
    proc.end("fork_end", target, incarnation, outcome)
    return outcome


def own_attempt(doc, incarnation):
    return doc.incarnation.rstrip("'") == incarnation


def copies(sid, doc, records):
    """Copies the events into the new log. Another process may have taken a number."""
    i = 0
    while i < len(records):
        rec = records[i]
        seq = doc.first_seq + i
        rec = record("event", doc.incarnation, seq, "f:" + rec.event_id, rec.stamp, rec.session)
        yield ("create", "log" + sid, record_id(rec), rec)
        rec = seq = None
        i += 1


def copy(rules, sid, doc, etag, records):
    """Copies the events and makes the document active. Outcome: ok, or ended if the fork was
    erased."""
    yield from copies(sid, doc, records)
    incarnation = doc.incarnation
    new = tuple(record("event", "", 0, r.event_id, 0, r.session) for r in records)
    last = doc.revision + len(records)
    doc = doc.having(status="active", revision=last, state=fold(doc.state, new)).without("source")
    new = records = last = None
    if rules.without("If-Match on the end of a fork"):
        etag = None
    done = yield ("replace", "session" + sid, "s", doc, etag)
    if done[0] == "ok" or rules.without("a forker reads its document again"):
        return "ok"
    doc = etag = None
    done = yield ("read", "session" + sid, "s")
    doc = done[2] if done[0] == "ok" else None
    done = None
    if doc is not None and doc.incarnation == incarnation and doc.status not in GONE_FOR_GOOD:
        return "ok"  # completed by another process
    doc = None
    if not rules.without("a forker erases copies that are not used"):
        yield from sweep(rules, sid)
    return "ended"


def complete(rules, sid, doc, etag):
    """Completes a fork that the document announces, or ends it if events of its source are gone."""
    source = doc.source
    if not rules.without("a helper probes the source first"):
        yield from probe("log" + source.sid, (1, source.incarnation))
    found = yield ("query", "log" + source.sid)
    found = of(found[1], source.incarnation)
    found = tuple(r for r in found if r.kind == "event" and r.seq <= source.seq)
    if len(found) < source.events and not rules.without("a fork ends with its source"):
        found = None
        doc = doc.having(status="purging")
        yield ("replace", "session" + sid, "s", doc, etag)
        return
    source = None
    yield from copy(rules, sid, doc, etag, found)


def finish(rules, sid, doc, etag):
    """Completes what the document announces, for any process that finds it."""
    if doc.status == "restoring":
        yield from finish_restore(rules, sid, doc, etag)
    else:
        yield from complete(rules, sid, doc, etag)
