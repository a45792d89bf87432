"""Sessions with a ttl: how use keeps them alive. Times are in hundredths of the ttl.

A session document lives a tenth longer than the ttl, and is written again when it is older than a
tenth of the ttl. Events live three times as long as the ttl, and are written again when half of the
ttl has passed.
"""

from __future__ import annotations

from tests.model.protocol import get
from tests.model.steps import of, probe, record_id

TTL = 100
DOCUMENT_TTL = 110
EVENT_TTL = 300


def use(rules, proc, sid):
    """Reads the session, and renews what has become old."""
    session = yield from get(rules, proc, sid, repair=False)
    if session is None:
        return
    session = None
    while True:
        reply = doc = now = due = None
        reply = yield ("read", "session" + sid, "s")
        if reply[0] != "ok" or reply[2].status != "active":
            return
        doc = reply[2]
        now = yield ("now",)
        if now - doc.renewed_at <= TTL / 10:
            return
        doc = doc.having(renewed_at=now)
        if now - doc.events_renewed_at > TTL / 2:
            yield from _renew_events(rules, sid, doc, now)
            doc = doc.having(events_renewed_at=now)
        now = None
        due = yield ("replace", "session" + sid, "s", doc, reply[1])
        if due[0] == "ok":
            return


def _renew_events(rules, sid, doc, now):
    if not rules.without("renewal of events probes first"):
        yield from probe("log" + sid, (doc.revision + 1, doc.incarnation))
    due = yield ("scan", "log" + sid)
    due = tuple(
        (version, rec)
        for version, rec in due[1]
        if of((rec,), doc.incarnation) and "ttl" in rec and rec.ts < now - TTL / 2
    )
    doc = now = None
    while due:
        (version, rec), due = due[0], due[1:]
        # Purged, expired or renewed by another process in between: nothing is left to do.
        yield ("replace", "log" + sid, record_id(rec), rec, version)
