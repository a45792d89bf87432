"""The protocol: create, get, append, delete. Restore and purge are in lifecycle.py."""

from __future__ import annotations

from tests.model.erasing import erase
from tests.model.forks import NAMES, finish, own_attempt
from tests.model.steps import (
    GONE,
    NO_STATE,
    confirm,
    fold,
    initial_state,
    merge_all,
    merged,
    of,
    project,
    read_whole,
    readable,
    record,
    record_id,
    tombstone_in_force,
)
from tests.model.store import EMPTY, Frozen


def create(rules, proc, sid, incarnation, user=EMPTY, app=EMPTY, expires=False):
    """`expires`: the new session has a ttl, so its document cannot record for long where content of
    its predecessors is left."""
    proc.start("create", sid, incarnation, touched(user, app))
    stamp = 0
    if user or app:
        stamp = yield from first_stamp(rules)
    initial = record("event", incarnation, 0, "i:" + incarnation, stamp, EMPTY, user, app)
    doc = Frozen(status="active", incarnation=incarnation, first_seq=1, revision=0, state=EMPTY)
    if (user or app) and not rules.without("initial state waits in the document"):
        doc = doc.having(initial=initial)
    outcome = None
    written = yield ("create", "session" + sid, "s", doc)
    if written[0] == "ok":
        outcome = "ok"
    while outcome is None:
        reply = written = found = tomb = old = None
        reply = yield ("read", "session" + sid, "s")
        old = reply[2] if reply[0] == "ok" else None
        if old is None:
            written = yield ("create", "session" + sid, "s", doc)
            if written[0] == "ok":
                outcome = "ok"
        elif own_attempt(old, incarnation) and not rules.without("own incarnation is recognised"):
            outcome = "ok"  # it may have been deleted since
        elif old.status in ("restoring", "forking"):
            yield from finish(rules, sid, old, reply[1])
        elif old.status == "active":
            found = yield ("query", "log" + sid)
            tomb = tombstone_in_force(of(found[1], old.incarnation, old.revision))
            reply = found = None
            if tomb is None or rules.without("create finishes a delete"):
                outcome = "exists"
            else:
                tomb = tomb.seq
                old = old.incarnation
                yield from project(rules, sid, old, tomb)
        elif old.status == "purging" and not rules.without("create finishes a purge"):
            yield from erase(rules, sid, old, reply[1])
        elif old.status == "deleted" and expires:
            written = yield (
                "replace",
                "session" + sid,
                "s",
                old.having(status="purging", state=EMPTY),
                reply[1],
            )
        else:
            # A new incarnation for every attempt: an earlier attempt may have been stored and
            # deleted.
            next_attempt = "" if rules.without("new incarnation for every attempt") else "'"
            doc = doc.having(
                incarnation=doc.incarnation + next_attempt,
                first_seq=old.revision + 1,
                revision=old.revision,
            ).without("replaced")
            if old.status == "deleted" and not rules.without(
                "a new session names what it replaced"
            ):
                doc = doc.having(replaced=old.get("replaced", old.first_seq))
            if "initial" in doc:
                doc = doc.having(initial=initial.having(incarnation=doc.incarnation))
            old = None
            etag = None if rules.without("If-Match on create") else reply[1]
            reply = None
            written = yield ("replace", "session" + sid, "s", doc, etag)
            etag = None
            if written[0] == "ok":
                outcome = "ok"
    reply = written = found = tomb = old = doc = None
    if outcome == "ok" and (user or app):
        yield from merge_all(rules, (initial,))
    proc.end("create_end", sid, incarnation, outcome)
    return outcome


def first_stamp(rules):
    """The stamp of the user and app state of a create. It is taken after both documents were
    read."""
    if rules.without("a create takes its stamp after its reads"):
        now = yield ("now",)
        return now
    replies = yield ("par", tuple(("read", scope, "d") for scope in rules.shared))
    stamps = [stamp for r in replies if r[0] == "ok" for stamp, _ in r[2].stamps.values()]
    stamps += [r[2].get("erased", 0) for r in replies if r[0] == "ok"]
    stamps, replies = max(stamps, default=0), None
    now = yield ("now",)
    return max(now, stamps + 1)


def touched(user, app):
    return tuple(("user", k) for k in user) + tuple(("app", k) for k in app)


def get(rules, proc, sid, repair=True):
    """A session object (incarnation, marker n, highest stamp seen, event ids), or None."""
    proc.start("get", sid)
    reads = ("read", "session" + sid, "s"), ("query", "log" + sid)
    reads += tuple(("read", scope, "d") for scope in rules.shared)
    while True:
        replies = doc = records = tomb = n = None
        replies = yield ("par", reads)
        doc = replies[0][2] if replies[0][0] == "ok" else None
        if doc is None or doc.status in GONE:
            proc.end("get_end", sid, None)
            return None
        if doc.status in ("restoring", "forking"):
            if rules.without(f"get finishes a {NAMES[doc.status]}"):
                proc.end("get_end", sid, None)
                return None
            etag = replies[0][1]
            replies = None
            yield from finish(rules, sid, doc, etag)
            etag = None
            continue
        gaps = rules.without("snapshot covers the revision")
        n = yield from read_whole(
            rules, sid, doc.incarnation, doc.first_seq, doc.revision, replies[1][1], gaps=gaps
        )
        records, holes = n
        n = max([doc.revision, *(r.seq for r in records)])
        if holes and rules.without("a proved hole counts as seen"):
            n = max([doc.first_seq - 1, *(r.seq for r in records)])
        holes = None
        tomb = tombstone_in_force(of(records, doc.incarnation, doc.revision))
        if tomb is not None:
            proc.end("get_end", sid, None)
            if repair and not rules.without("get finishes a delete"):
                tomb, doc = tomb.seq, doc.incarnation
                replies = records = None
                yield from project(rules, sid, doc, tomb)
            return None
        records = yield from readable(rules, sid, records, placeholders=True)
        break
    lag = tuple(r for r in records if r.seq > doc.revision)
    overlay = initial_state(doc) + records
    if rules.without("overlay of all events"):
        overlay = initial_state(doc) + lag
    shown, newest, unmerged = {}, max([r.stamp for r in records], default=0), False
    for i, scope in enumerate(rules.shared):
        stored = replies[2 + i][2] if replies[2 + i][0] == "ok" else NO_STATE
        view = merged(rules, stored, overlay, scope)
        unmerged |= view != stored
        newest = max(newest, view.get("erased", 0))
        for key, (stamp, writer) in view.stamps.items():
            shown[(scope, key)] = writer
            newest = max(newest, stamp)
    session = Frozen(
        sid=sid,
        incarnation=doc.incarnation,
        n=n,
        newest=newest,
        event_ids=tuple(r.event_id for r in records if r.kind == "event"),
    )
    owners = tuple(r.incarnation for r in records)
    state = fold(doc.state, lag)
    proc.end("get_end", sid, session.having(owners=owners, state=state, shown=Frozen(shown)))
    if repair and (lag or unmerged):
        changes, late = initial_state(doc) + lag, bool(lag)
        replies = doc = records = lag = overlay = shown = newest = unmerged = None
        i = scope = stored = view = key = stamp = writer = owners = state = None
        yield from merge_all(rules, changes)
        changes = None
        if late:
            yield from project(rules, sid, session.incarnation, n)
    return session


def append(rules, proc, session, event_id, delta=EMPTY, user=EMPTY, app=EMPTY, **options):
    """Appends to a session object. `rebase=True` continues after the events of other writers.
    `seen` is what the object has really seen, if its marker was found by reading.

    Returns (outcome, session object); outcome is ok, stale or notfound.
    """
    rebase, project_after = options.get("rebase", False), options.get("project", True)
    sid, inc, n = session.sid, session.incarnation, session.n
    seen = options.get("seen", n)
    proc.start("append", sid, event_id, inc, seen, touched(user, app))
    if event_id in session.event_ids and not rules.without("known event is not appended again"):
        yield ("local", "the session object holds this event already")
        proc.end("append_end", sid, event_id, inc, seen, "ok", rebase)
        return "ok", session
    now = yield ("now",)
    newest, event_ids = session.newest, session.event_ids
    outcome = None
    while outcome is None:
        written = found = newer = tomb = None
        stamp = now if rules.without("stamps follow what was seen") else max(now, newest + 1)
        event = record("event", inc, n + 1, event_id, stamp, delta, user, app)
        if "ttl" in options:
            event = event.having(ttl=options["ttl"])
        if options.get("large"):
            event = event.having(large=True)
            written = Frozen(kind="body", seq=0, incarnation=inc, event_id=event_id)
            written = yield ("create", "body" + sid, event_id, written)
        how = "upsert" if rules.without("append is a create") else "create"
        written = yield (how, "log" + sid, record_id(event), event)
        how = None
        if written[0] == "ok":
            outcome = "ok"
            break
        # A query tells whose record has the number. An answer without that record is stale: ask
        # again.
        while newer is None:
            found = None
            found = yield ("query", "log" + sid)
            newer = of(found[1], inc, n)
            if not newer and not rules.without(
                "a conflict is read again until its record is visible"
            ):
                newer = None
        found = None
        ours = [r for r in newer if r.event_id == event_id]
        tomb = any(r.kind == "tombstone" for r in newer)
        if ours and not rules.without("own event is recognised"):
            event = ours[0]
            outcome = "ok"
        elif tombstone_in_force(newer) or (tomb and rules.without("restored lifts the tombstone")):
            outcome = "notfound"
        elif not rebase or (tomb and not rules.without("rebase stops at a tombstone")):
            outcome = "stale"
        elif newer:
            n = newer[-1].seq
            newest = max(newest, *(r.stamp for r in newer))
            event_ids += tuple(r.event_id for r in newer)
        ours = newer = tomb = None
    written = found = newer = tomb = None
    if outcome != "ok":
        if options.get("large"):
            yield ("delete", "body" + sid, event_id)
        proc.end("append_end", sid, event_id, inc, seen, outcome, rebase)
        return outcome, session
    left = yield from merge_all(rules, (event,))
    if not left:  # else it reports that the event is stored, but its state is not visible to others
        proc.end("append_end", sid, event_id, inc, seen, "ok", rebase)
    if event_id not in event_ids:
        event_ids += (event_id,)
    session = session.having(n=event.seq, newest=max(newest, event.stamp), event_ids=event_ids)
    if project_after:
        yield ("local", "projection begins in the background")
        yield from project(rules, sid, inc, event.seq, () if left else (event,))
    return "ok", session


def delete(rules, proc, sid, call=""):
    """Soft delete: a tombstone in the log, then the document.

    `call` distinguishes several deletes of one process.
    """
    proc.start("delete", sid)
    own_id = "T:" + proc.name + call
    confirmed = done = False
    while not done:
        reply = found = written = own = tomb = doc = tail = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status in GONE:
            reply = doc = None
            if confirmed or rules.without("delete confirms what it read"):
                break
            confirmed = yield from confirm(sid)
            if not confirmed:
                break
            continue
        confirmed = False
        if doc.status in ("restoring", "forking"):
            if rules.without(f"delete finishes a {NAMES[doc.status]}"):
                break
            yield from finish(rules, sid, doc, reply[1])
            continue
        reply = None
        found = yield ("query", "log" + sid)
        own = [r for r in found[1] if r.event_id == own_id]  # may belong to an earlier incarnation
        if rules.without("own tombstone is recognised"):
            own = [r for r in own if r.incarnation == doc.incarnation]
        tomb = tombstone_in_force(of(found[1], doc.incarnation, doc.revision))
        tail = max([r.seq for r in of(found[1], doc.incarnation)] + [doc.revision])
        found = None
        doc = doc.incarnation
        if own:
            doc, tomb, done = own[0].incarnation, own[0].seq, True
        elif tomb is not None:
            tomb = tomb.seq  # another process's: finish it, then read again
        else:
            tomb = record("tombstone", doc, tail + 1, own_id)
            written = yield ("create", "log" + sid, record_id(tomb), tomb)
            if written[0] != "ok":
                continue
            tomb, done = tomb.seq, True
        own = tail = written = None
        yield from project(rules, sid, doc, tomb)
    proc.end("delete_end", sid)
