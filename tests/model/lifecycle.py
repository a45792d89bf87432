"""Restore and purge: both are first announced in the session document, with If-Match.

So the document decides between restore, purge and re-creation. Any process that finds an announced
restore or purge completes it (`finish_restore`, `erase`).
"""

from __future__ import annotations

from tests.model.erasing import erase, erase_predecessors, erase_state, newest_stamp, sweep
from tests.model.forks import finish
from tests.model.protocol import delete
from tests.model.steps import (
    confirm,
    finish_restore,
    of,
    probe,
    project,
    record,
    tombstone_in_force,
)
from tests.model.store import EMPTY


def restore(rules, proc, sid):
    """Restores a deleted session.

    Outcome: restored; active (it was not deleted); recreated (another process created the id again
    meanwhile); notfound (there is none, or it was purged).
    """
    proc.start("restore", sid)
    outcome = deleted = None
    confirmed = log_confirmed = False
    while outcome is None:
        reply = doc = found = tomb = written = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status in ("purging", "purged"):
            reply = doc = None
            if not confirmed and not rules.without("restore confirms what it read"):
                confirmed = yield from confirm(sid)
                if confirmed:
                    continue
            outcome = "notfound"
        elif doc.status == "forking":
            yield from finish(rules, sid, doc, reply[1])
        elif doc.status == "restoring":
            deleted = doc.incarnation
            yield from finish_restore(rules, sid, doc, reply[1])
        elif doc.status == "deleted":
            deleted = doc.incarnation
            if rules.without("restore is announced first"):
                tomb = record("restored", doc.incarnation, doc.revision + 1, "restored")
                written = yield ("create", "log" + sid, (tomb.seq, tomb.incarnation), tomb)
                written = tomb = None
            doc = doc.having(status="restoring")
            etag = None if rules.without("If-Match on restore") else reply[1]
            reply = None
            written = yield ("replace", "session" + sid, "s", doc, etag)
            if written[0] == "ok":
                yield from finish_restore(rules, sid, doc, written[1])
                outcome = "restored"
            etag = None
        elif deleted is not None:
            outcome = "restored" if doc.incarnation == deleted else "recreated"
        else:
            reply = None
            found = yield ("query", "log" + sid)
            tomb = tombstone_in_force(of(found[1], doc.incarnation, doc.revision))
            found = None
            if tomb is not None:
                tomb, doc = tomb.seq, doc.incarnation
                yield from project(rules, sid, doc, tomb)
                continue
            doc = None
            if rules.without("restore confirms what it read"):
                outcome = "active"
                continue
            if rules.without("restore confirms the log too"):
                log_confirmed = confirmed
            if not log_confirmed:
                confirmed = yield from confirm(sid)
                yield from probe("log" + sid, (0, "probe"))
                log_confirmed = True
                continue
            outcome = "active"
    proc.end("restore_end", sid, outcome)
    return outcome


def purge(rules, proc, sid, insist=False):
    """Erases a deleted session for good. May be called again to continue an interrupted purge. A
    session with no document, or a purged one, is swept: its document may have expired, or an upload
    that was under way may have arrived after the purge.

    Outcome: done; active (it is not deleted, and nothing was changed). With `insist`, a session
    that is not deleted, or was restored meanwhile, is deleted first. A session that was created
    again meanwhile stays, but its predecessors are erased.
    """
    proc.start("purge", sid)
    outcome = target = None
    confirmed = erased = False
    first, deletes = True, 0
    while outcome is None:
        reply = doc = found = tomb = written = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if first and insist:
            target = doc.incarnation if doc is not None else "none"
        first = False
        if doc is None or doc.status == "purged":
            reply = doc = None
            if not confirmed and not rules.without("purge confirms what it read"):
                confirmed = yield from confirm(sid)
                if confirmed:
                    continue
            yield from sweep(rules, sid)
            outcome = "done"
        elif doc.status in ("restoring", "forking"):
            yield from finish(rules, sid, doc, reply[1])
        elif doc.status == "active":
            reply = None
            found = yield ("query", "log" + sid)
            tomb = tombstone_in_force(of(found[1], doc.incarnation, doc.revision))
            found = None
            if tomb is None and insist and target == doc.incarnation and deletes < 2:
                doc, deletes = None, deletes + 1
                yield from delete(rules, proc, sid, str(deletes))
            elif tomb is None and insist:
                doc = None
                yield from sweep(rules, sid)
                outcome = "done"
            elif tomb is None:
                outcome = "done" if erased else "active"  # created again after the purge
            else:
                tomb, doc = tomb.seq, doc.incarnation
                yield from project(rules, sid, doc, tomb)
        elif doc.status == "purging" or rules.without("purge is announced first"):
            written = yield from erase(rules, sid, doc.having(state=EMPTY), reply[1])
            erased = True
            if written[0] == "ok":
                outcome = "done"
        else:
            doc = doc.having(status="purging", state=EMPTY)
            written = yield ("replace", "session" + sid, "s", doc, reply[1])
            reply = None
            if written[0] == "ok":
                written = written[1]
                yield from erase(rules, sid, doc, written)
                outcome = "done"
    proc.end("purge_end", sid, outcome)
    return outcome


def purge_replaced(rules, proc, sid):
    """Erases what a re-created session left of its predecessors. Nothing can bring them back, so no
    announcement is needed. The document's mark is removed last, so that nothing is forgotten."""
    proc.start("purge_replaced", sid)
    while True:
        reply = doc = last = None
        reply = yield ("read", "session" + sid, "s")
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or "replaced" not in doc:
            break
        if doc.status == "purging":
            yield from erase(rules, sid, doc, reply[1])
            continue
        if rules.without("the mark of a replaced session is removed last"):
            doc = doc.without("replaced").having(replaced_by_mutant=doc.replaced)
            reply = yield ("replace", "session" + sid, "s", doc, reply[1])
            if reply[0] != "ok":
                continue
            doc = doc.having(replaced=doc.replaced_by_mutant).without("replaced_by_mutant")
        last = doc.first_seq - 1
        if rules.without("only what was replaced is erased"):
            last = doc.revision
        yield from erase_predecessors(rules, sid, doc, last)
        last = None
        doc = doc.without("replaced")
        reply = yield ("replace", "session" + sid, "s", doc, reply[1])
        if reply[0] == "ok":
            break
    proc.end("purge_replaced_end", sid)


def purge_user(rules, proc, *sids, include_state=False):
    """Erases all sessions of a user, including those whose document has expired, and then the
    state."""
    proc.start("purge_user", *sids)
    if not rules.without("purge_user probes first"):
        yield from probe("session" + sids[0], "s")  # any document of the user's partition
    found = yield ("list", tuple("session" + sid for sid in sids))
    found = tuple(docs[0].status if docs else None for docs in found[1])
    if not rules.without("erasure goes by partition"):
        # A query over the events of all partitions finds sessions that have no document.
        left = yield ("list", tuple("log" + sid for sid in sids))
        found = tuple(
            status or ("expired" if records else None)
            for status, records in zip(found, left[1], strict=True)
        )
        left = None
    i = newest = 0
    while i < len(sids):
        if found[i] is not None:
            yield from purge(rules, proc, sids[i], insist=True)
            if include_state:
                more = yield from newest_stamp(sids[i])
                newest = max(newest, more)
                more = None
        i += 1
    found = None
    if include_state:
        yield from erase_state(rules, newest)
    proc.end("purge_user_end", include_state)
