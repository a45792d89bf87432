"""What the operations of the protocol are made of: records, merge, project, erase, confirm.

Partitions: "log" + id (records, document id = (seq, incarnation)), "body" + id (the bodies of large
events, document id = event id), "session" + id (one document "s"), "user" and "app" (one document
"d" each).

Record kinds: event, tombstone, restored, stub (an event that was purged).
Session statuses: active, deleted, restoring, purging, purged.

`rules.without(name)` drops one rule of the protocol: a mutant, which the checker must catch.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.store import EMPTY, Frozen

NO_STATE = Frozen(state=EMPTY, stamps=EMPTY)
IMPOSSIBLE_ETAG = -1
GONE = ("deleted", "purging", "purged")


@dataclass(frozen=True)
class Rules:
    """What is modelled: the shared documents in play and the rule left out, if any."""

    shared: tuple[str, ...] = ("user",)
    left_out: str | None = None

    def without(self, rule: str) -> bool:
        return self.left_out == rule


def record(kind, incarnation, seq, event_id, stamp=0, session=EMPTY, user=EMPTY, app=EMPTY):
    return Frozen(
        kind=kind,
        incarnation=incarnation,
        seq=seq,
        event_id=event_id,
        stamp=stamp,
        session=session,
        user=user,
        app=app,
    )


def record_id(rec: Frozen) -> tuple[int, str]:
    return rec.seq, rec.incarnation


def of(records, incarnation, after=0):
    """The records of one incarnation behind a seq; all others are none of its business."""
    return tuple(r for r in records if r.incarnation == incarnation and r.seq > after)


def fold(state, records):
    """The session state after the given records."""
    folded = dict(state)
    for rec in records:
        folded.update(rec.session)
    return Frozen(folded)


def tombstone_in_force(records):
    """The tombstone that no `restored` record follows, if there is one."""
    last = None
    for rec in records:
        if rec.kind == "tombstone":
            last = rec
        elif rec.kind == "restored":
            last = None
    return last


def readable(rules, sid, records, own=(), until_it_shows=False):
    """The records, up to the first large event whose body does not show.

    An event is stored after its body, so the body is there; but a read may be older than it.
    """
    i = 0
    while i < len(records):
        reply = None
        if "large" in records[i] and records[i] not in own:
            reply = yield ("read", "body" + sid, records[i].event_id)
            if reply[0] == "404" and until_it_shows:
                if not rules.without("bodies are read until they show"):
                    continue
                unknown = records[i].having(session=EMPTY, user=EMPTY, app=EMPTY)
                records = (*records[:i], unknown, *records[i + 1 :])
            elif reply[0] == "404" and rules.without("projection stops before a missing body"):
                unknown = records[i].having(session=EMPTY, user=EMPTY, app=EMPTY)
                records = (*records[:i], unknown, *records[i + 1 :])
            elif reply[0] == "404":
                return records[:i]
        unknown = None
        i += 1
    return records


# ------------------------------------------------------------------ shared state: merge


def merged(rules, doc, records, scope, stored=False):
    """Per key the larger (stamp, event id) wins, so that applying twice changes nothing. What is
    to be stored must fit: a document that is full takes no other key."""
    state, stamps = dict(doc.state), dict(doc.stamps)
    for rec in records:
        for key, value in rec[scope].items():
            stamp = (rec.stamp, rec.event_id)
            if stored and state.get("room") == "none" and key not in state:
                continue
            if rules.without("merge by stamp") or stamps.get(key, (-1, "")) < stamp:
                state[key], stamps[key] = value, stamp
    return Frozen(state=Frozen(state), stamps=Frozen(stamps))


def not_merged(doc, records, scope):
    """Those of the records that the document has no room for."""
    return tuple(r for r in records if any(key not in doc.state for key in r[scope]))


def merge(rules, scope, records):
    """Bring the deltas of some records into the user or app document; returns those records that
    there is no room for."""
    records = tuple(r for r in records if r[scope])
    while records:
        reply = written = None
        reply = yield ("read", scope, "d")
        if reply[0] == "404":
            written = yield ("create", scope, "d", merged(rules, NO_STATE, records, scope))
        elif merged(rules, reply[2], records, scope, stored=True) == reply[2]:
            return not_merged(reply[2], records, scope)
        else:
            written = yield (
                "replace",
                scope,
                "d",
                merged(rules, reply[2], records, scope, stored=True),
                None if rules.without("If-Match on shared state") else reply[1],
            )
        if written[0] == "ok":
            if reply[0] == "404":
                return ()
            return not_merged(merged(rules, reply[2], records, scope, stored=True), records, scope)
    return ()


def merge_all(rules, records):
    i, left = 0, ()
    while i < len(rules.shared):
        more = yield from merge(rules, rules.shared[i], records)
        left += more
        more = None
        i += 1
    return left


# ------------------------------------------------------------------ session document: project


def initial_state(doc):
    """Initial user and app state, kept in the session document until it was merged."""
    return (doc.initial,) if "initial" in doc else ()


def project(rules, sid, incarnation, upto, own=()):
    """Bring the session document of an incarnation to a revision of at least `upto`, or up to an
    event whose body does not show: of a deleted session nobody else would look again."""
    while True:
        reply = found = written = records = foreign = tomb = doc = None
        reply = yield ("read", "session" + sid, "s")
        if reply[0] == "404" or reply[2].incarnation != incarnation:
            return
        doc = reply[2]
        if doc.status in GONE:
            return
        if doc.revision >= upto and (doc.status != "active" or "unmerged" not in doc):
            return
        late, upto = (), max(upto, doc.revision)
        if own and doc.revision + 1 == upto == own[-1].seq and "unmerged" not in doc:
            records = own
        else:
            found = yield ("query", "log" + sid)
            known = {r.seq: r for r in of(found[1], incarnation, doc.revision) + own}
            records = tuple(known[seq] for seq in sorted(known) if doc.revision < seq <= upto)
            if "unmerged" in doc:
                late = of(found[1], incarnation, doc.unmerged - 1)
                late = tuple(r for r in late if r.seq <= doc.revision)
                whole = len(late) == doc.revision - doc.unmerged + 1
                if not whole and not rules.without("what did not fit is all read again"):
                    continue
                whole = None
            found = known = None
            if len(records) != upto - doc.revision and not rules.without("contiguous projection"):
                continue
        tomb = tombstone_in_force(records)
        records = yield from readable(rules, sid, records, own, until_it_shows=bool(tomb))
        if not records and "unmerged" not in doc:
            return
        foreign = tuple(r for r in records if r not in own)
        left = ()
        if not rules.without("projection merges deltas of others"):
            left = yield from merge_all(rules, initial_state(doc) + late + foreign)
        doc = doc.having(
            status="deleted" if tomb else "active",
            revision=records[-1].seq if records else doc.revision,
            state=fold(doc.state, records),
        )
        if not any(r.seq < doc.first_seq for r in left):
            doc = doc.without("initial")
        left = [r.seq for r in left if r.seq >= doc.first_seq]
        doc = doc.without("unmerged")
        if left and not rules.without("what does not fit is named in the document"):
            doc = doc.having(unmerged=min(left))
        left = late = None
        if tomb and rules.without("deleted document keeps its state"):
            doc = doc.having(state=EMPTY)
        records = foreign = tomb = None
        if doc == reply[2]:
            return
        etag = None if rules.without("If-Match on projection") else reply[1]
        reply = None
        written = yield ("replace", "session" + sid, "s", doc, etag)
        if written[0] in ("ok", "404"):
            return


def finish_restore(rules, sid, doc, etag):
    """Complete a restore that the session document announces: its record, then the document.

    The record's place is fixed by the document, so that of several helpers one writes it.
    """
    done = yield (
        "create",
        "log" + sid,
        (doc.revision + 1, doc.incarnation),
        record("restored", doc.incarnation, doc.revision + 1, "restored"),
    )
    doc = doc.having(status="active", revision=doc.revision + 1)
    done = yield ("replace", "session" + sid, "s", doc, etag)
    return done


def erase(rules, sid, doc, etag):
    """Complete a purge that the session document announces: stubs for events, then the document.

    Every record up to the document's revision is dead, whichever incarnation it is of.
    """
    todo = yield from dead_events(rules, sid, doc.first_seq, doc.revision)
    if rules.without("purge covers earlier incarnations"):
        todo = of(todo, doc.incarnation)
    yield from stubs(rules, sid, todo)
    todo = None
    doc = doc.having(status="purged").without("replaced")
    done = yield ("replace", "session" + sid, "s", doc, etag)
    return done


def dead_events(rules, sid, first, last):
    """The events up to `last`. The log is read again until it has no gap from `first` on."""
    found = None
    while True:
        found = None
        found = yield ("query", "log" + sid)
        if rules.without("purge reads the whole log"):
            break
        if len({r.seq for r in found[1] if first <= r.seq <= last}) == last - first + 1:
            break
    return tuple(r for r in found[1] if r.kind == "event" and r.seq <= last)


def stubs(rules, sid, todo):
    """Replaces events by stubs, which keep their places taken."""
    while todo:
        rec, todo = todo[0], todo[1:]
        if rules.without("purge leaves stubs"):
            yield ("delete", "log" + sid, record_id(rec))
        else:
            stub = record("stub", rec.incarnation, rec.seq, rec.event_id)
            yield ("replace", "log" + sid, record_id(rec), stub, None)
        rec = stub = None


def confirm(sid):
    """Whether the session document exists, whatever a stale read said.

    A conditional write that cannot succeed: it is decided on the newest version, and its
    answer advances the session token, so that the next read is at least as new.
    """
    reply = yield ("replace", "session" + sid, "s", Frozen(status="probe"), IMPOSSIBLE_ETAG)
    return reply[0] == "412"
