"""The building blocks of the protocol's operations: records, probe, merge, project.

Partitions: "log" + id (records, document id = (seq, incarnation)), "body" + id (the bodies of large
events, document id = event id), "session" + id (one document "s"), "user" and "app" (one document
"d" each). Session tokens: see `range_of` in checker.py.

Record kinds: event, tombstone, restored, stub (an event that was purged).
Session statuses: active, deleted, restoring, purging, purged.

`rules.without(name)` drops one rule of the protocol. The result is a mutant, which the checker must
catch.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.store import EMPTY, Frozen

NO_STATE = Frozen(state=EMPTY, stamps=EMPTY)
IMPOSSIBLE_ETAG = -1
GONE = ("deleted", "purging", "purged")


@dataclass(frozen=True)
class Rules:
    """What is modelled: the shared documents involved, and the omitted rules, if any."""

    shared: tuple[str, ...] = ("user",)
    left_out: tuple[str, ...] = ()
    bodies: bool = False  # whether there are large events

    def without(self, rule: str) -> bool:
        return rule in self.left_out


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
    """The records of one incarnation after a sequence number; those of others are ignored."""
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


# ------------------------------------------------------------------ what exists now


def probe(partition, doc_id):
    """Whether a document exists now, whatever a stale read returned.

    A conditional write that cannot succeed. It is decided on the newest version, and its answer
    advances the session token, so that the next read is at least as new.
    """
    reply = yield ("replace", partition, doc_id, Frozen(status="probe"), IMPOSSIBLE_ETAG)
    return reply[0] == "412"


def confirm(sid):
    """Whether the session document exists now."""
    there = yield from probe("session" + sid, "s")
    return there


def first_missing(records, first, last, holes=()):
    """The first number from `first` up to `last`, or up to the last record, that was neither read
    nor proved to be a hole."""
    known = {r.seq for r in records} | {seq for seq, _ in holes}
    last = max([last, *known])
    return next((seq for seq in range(first, last + 1) if seq not in known), None)


def proved(rules, sid, missing, holes, tries):
    """Decides about a record that was not read: returns (proved holes, tries). Then the log is read
    again.

    The old protocol read a few times and then took the record for removed.
    """
    if rules.without("a hole is proved by a probe"):
        return ((*holes, missing) if tries else holes), tries + 1
    there = yield from probe("log" + sid, missing)
    return (holes if there else (*holes, missing)), tries


def read_whole(rules, sid, incarnation, begin, end, given=None, own=(), gaps=False):
    """The records of an incarnation from `begin` on, without a gap and at least up to `end`, and
    the proved holes among them. `given`: what was read already; `own`: what need not be read.
    With `gaps`, a rule is left out."""
    holes, tries = (), 0
    while True:
        found = missing = None
        found = given if given is not None else (yield ("query", "log" + sid))[1]
        given = None
        known = {r.seq: r for r in of(found, incarnation, begin - 1) + own}
        found = tuple(known[seq] for seq in sorted(known))
        known = None
        missing = first_missing(found, begin, end, holes)
        if missing is None or gaps:
            return found, holes
        found = None
        missing = yield from proved(rules, sid, (missing, incarnation), holes, tries)
        holes, tries = missing


def readable(rules, sid, records, own=(), placeholders=False):
    """The records up to the first large event whose body is lost, or with a placeholder for it.

    An event is stored after its body, but the read of the bodies may be older. A probe decides.
    """
    i = 0
    while i < len(records):
        reply = unknown = None
        if "large" in records[i] and records[i] not in own:
            reply = yield ("read", "body" + sid, records[i].event_id)
            reply = reply[0]
            if reply == "404" and not rules.without("a missing body is proved by a probe"):
                reply = yield from probe("body" + sid, records[i].event_id)
                if reply:
                    continue
                reply = "404"
            if reply == "404":
                if not placeholders and not rules.without("projection stops before a missing body"):
                    return records[:i]
                unknown = records[i].having(session=EMPTY, user=EMPTY, app=EMPTY)
                records = (*records[:i], unknown, *records[i + 1 :])
        i += 1
    return records


# ------------------------------------------------------------------ shared state: merge


def merged(rules, doc, records, scope):
    """For each key the larger (stamp, event id) wins, so that merging twice changes nothing."""
    state, stamps = dict(doc.state), dict(doc.stamps)
    for rec in records:
        for key, value in rec[scope].items():
            stamp = (rec.stamp, rec.event_id)
            if rec.stamp <= doc.get("erased", -1):
                continue  # an erasure is later
            if rules.without("merge by stamp") or stamps.get(key, (-1, "")) < stamp:
                state[key], stamps[key] = value, stamp
    return doc.having(state=Frozen(state), stamps=Frozen(stamps))


def merge(rules, scope, records):
    """Merges the deltas of some records into the user or app document."""
    records = tuple(r for r in records if r[scope])
    while records:
        reply = written = None
        reply = yield ("read", scope, "d")
        if reply[0] == "404":
            written = yield ("create", scope, "d", merged(rules, NO_STATE, records, scope))
        elif merged(rules, reply[2], records, scope) == reply[2]:
            return
        else:
            written = yield (
                "replace",
                scope,
                "d",
                merged(rules, reply[2], records, scope),
                None if rules.without("If-Match on shared state") else reply[1],
            )
        if written[0] == "ok":
            return


def merge_all(rules, records):
    i = 0
    while i < len(rules.shared):
        yield from merge(rules, rules.shared[i], records)
        i += 1


# ------------------------------------------------------------------ session document: project


def initial_state(doc):
    """Initial user and app state, kept in the session document until it is merged."""
    return (doc.initial,) if "initial" in doc else ()


def project(rules, sid, incarnation, upto, own=()):
    """Brings the session document of an incarnation to a revision of at least `upto`, or up to an
    event whose body is lost: nobody else would read a deleted session again."""
    confirmed = rules.without("projection confirms what it read")
    while True:
        reply = found = written = records = foreign = tomb = doc = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.incarnation != incarnation or doc.status in GONE:
            # The session is gone, or this is from before it was restored.
            reply, doc = None, doc is not None and doc.incarnation == incarnation and doc.revision
            if confirmed or (doc is not False and doc >= upto):
                return
            doc = None
            confirmed = yield from confirm(sid)
            if confirmed:
                continue
            return
        if doc.revision >= upto:
            return
        if own and doc.revision + 1 == upto == own[-1].seq:
            records = own
        else:
            gaps = rules.without("contiguous projection")
            found = yield from read_whole(
                rules, sid, incarnation, doc.revision + 1, upto, own=own, gaps=gaps
            )
            records = tuple(r for r in found[0] if r.seq <= upto)
            found = None
        tomb = tombstone_in_force(records)
        records = yield from readable(rules, sid, records, own, placeholders=bool(tomb))
        if not records:
            return
        foreign = tuple(r for r in records if r not in own)
        if not rules.without("projection merges deltas of others"):
            yield from merge_all(rules, initial_state(doc) + foreign)
        doc = doc.having(
            status="deleted" if tomb else "active",
            revision=records[-1].seq,
            state=fold(doc.state, records),
        ).without("initial")
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
    """Completes a restore that the session document announces: its record, then the document.

    The document fixes the record's sequence number, so that only one of several helpers writes it.
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
