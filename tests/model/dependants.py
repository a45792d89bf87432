"""Memories and artifacts: documents of other containers that belong to a session.

The session document is "session1"/"s", with its log left out; every change of it is one If-Match.
An artifact is a document of "files", named by its file name only, as in ADK: it does not say which
incarnation of the session it belongs to (`incarnation` is a ghost). A memory is a document of
"memories" that knows its incarnation. Each container has its own lag.

Artifacts belong to the session, memories to the user: re-creating a session erases the artifacts
of its predecessor (`clearing`), a purge erases both (`purging`).
"""

from __future__ import annotations

from tests.model.steps import confirm, probe
from tests.model.store import Frozen


def change(doc, etag, **fields):
    written = yield ("replace", "session1", "s", doc.having(**fields), etag)
    return written


def look():
    reply = yield ("read", "session1", "s")
    return (reply[2], reply[1]) if reply[0] == "ok" else (None, None)


def stands(rules, seen):
    """Whether the session document is still as it was seen: (incarnation, status)."""
    if not rules.without("the announcement is confirmed"):
        yield from confirm("1")
    doc = yield from look()
    return doc[0] is not None and (doc[0].incarnation, doc[0].status) == seen


def erase(rules, kind, seen, incarnations=None):
    """Erases what a scan has found, if the announcement stood after the scan. Nothing of a newer
    session can be in that scan. Repeats until a scan behind a probe finds nothing. With
    `incarnations`, erases only what these left. False if the announcement is gone."""
    todo = None
    if not rules.without("dependants are probed first"):
        yield from probe(kind, "probe")
    if rules.without("the scan comes before the check"):
        todo = yield from stands(rules, seen)
        if not todo:
            return False
        todo = None
    while True:
        todo = yield ("scan", kind)
        todo = tuple(
            (v, d.id) for v, d in todo[1] if incarnations is None or d.incarnation in incarnations
        )
        if not todo:
            return True
        if seen is not None and not (
            rules.without("the scan comes before the check")
            or rules.without("the announcement is checked")
        ):
            here = yield from stands(rules, seen)
            if not here:
                return False
            here = None
        while todo:
            version = None if rules.without("If-Match on erasing") else todo[0][0]
            yield ("delete", kind, todo[0][1], version)
            version, todo = None, todo[1:]


def complete(rules, doc, etag):
    """Finishes an announced purge."""
    seen = (doc.incarnation, doc.status)
    if rules.without("purging covers dependants"):
        yield from change(doc, etag, status="purged")
    done = yield from erase(rules, "files", seen)
    if done:
        done = yield from erase(rules, "memories", seen)
    if done and not rules.without("purging covers dependants"):
        yield from change(doc, etag, status="purged")


def purge(rules, proc):
    """Erases the session that it finds, and only that. A purged session is swept: something may
    have been saved after the last scan."""
    proc.start("purge")
    target, outcome = None, None
    while outcome is None:
        found = doc = etag = None
        found = yield from look()
        doc, etag, found = found[0], found[1], None
        if target is None:
            target = doc.incarnation
        if doc.incarnation != target:
            outcome = "created again"
        elif doc.status == "purging":
            yield from complete(rules, doc, etag)
        elif doc.status == "purged":
            doc = (doc.incarnation, doc.status)
            yield from erase(rules, "files", doc)
            yield from erase(rules, "memories", doc)
            outcome = "done"
        else:
            yield from change(doc, etag, status="purging")
    proc.end("purge_end", outcome)


def delete(rules, proc):
    found = yield from look()
    if found[0] is not None and found[0].status == "active":
        found, etag = found
        yield from change(found, etag, status="deleted")


def restore(rules, proc):
    found = yield from look()
    if found[0] is not None and found[0].status == "deleted":
        found, etag = found
        yield from change(found, etag, status="active")


def create(rules, proc, incarnation):
    """Creates the session again. Its predecessor's artifacts are erased first."""
    proc.start("create", incarnation)
    outcome = None
    while outcome is None:
        found = doc = etag = None
        found = yield from look()
        doc, etag, found = found[0], found[1], None
        if doc.status == "active":
            outcome = "exists" if doc.incarnation != incarnation else "ok"
        elif doc.status == "purging" and not rules.without("a creator completes a purge"):
            yield from complete(rules, doc, etag)
        elif doc.status == "deleted" and not rules.without("clearing is announced"):
            yield from change(doc, etag, status="clearing")
        else:
            done = True
            if not rules.without("a new session begins without artifacts"):
                done = yield from erase(rules, "files", (doc.incarnation, doc.status))
            if done:
                done = None
                doc = doc.having(status="active", incarnation=incarnation, replaced=("a0",))
                written = yield ("replace", "session1", "s", doc, etag)
                outcome = "ok" if written[0] == "ok" else None
                written = None
            done = None
    proc.end("create_end", incarnation, outcome)
    return outcome


def purge_replaced(rules, proc):
    """Erases what the predecessors of a session left that was created again. Nothing restores
    them, so nothing has to be announced."""
    proc.start("purge")
    found = yield from look()
    doc, etag = found
    found = None
    if doc is not None and doc.status == "active" and "replaced" in doc:
        incarnations = None if rules.without("memories know their source") else doc.replaced
        yield from erase(rules, "memories", None, incarnations)
        incarnations = None
        yield ("replace", "session1", "s", doc.without("replaced"), etag)


def fork(rules, proc):
    """Copies the session with its artifacts, or completes a fork that it finds."""
    outcome = None
    while outcome is None:
        found = yield ("read", "session1", "fork")
        doc, etag = (found[2], found[1]) if found[0] == "ok" else (None, None)
        found = None
        if doc is None:
            source = yield from look()
            if source[0].status == "active":
                doc = Frozen(status="forking", incarnation="b0", source=source[0].incarnation)
                source = None
                yield ("create", "session1", "fork", doc)
            else:
                outcome = "not found"
        elif doc.status != "forking":
            outcome = doc.status
        else:
            yield from copy(rules, doc, etag)
        doc = etag = None


def copy(rules, doc, etag):
    """The artifacts first. A fork whose source was erased meanwhile ends with it."""
    yield from probe("files", "probe")
    todo = yield ("scan", "files")
    todo = tuple(d.id for _, d in todo[1])
    while todo:
        yield ("create", "copies", todo[0], Frozen(id=todo[0], incarnation="b0"))
        todo = todo[1:]
    todo = yield from whole(rules, doc.source)
    yield ("replace", "session1", "fork", doc.having(status="active" if todo else "purged"), etag)


def whole(rules, incarnation):
    """Whether nothing of the source can have been erased before the copies were made."""
    if rules.without("a fork confirms its source"):
        return True
    yield from confirm("1")
    source = yield from look()
    return source[0].incarnation == incarnation and source[0].status in ("active", "deleted")


def save(rules, proc, kind, incarnation, name="f"):
    """Saves a file, or adds a memory, of one incarnation. ADK does not ask the session."""
    proc.start("save", kind, incarnation)
    saved = False
    while not saved:
        reply = written = None
        reply = yield ("read", kind, name)
        document = Frozen(id=name, incarnation=incarnation)
        if reply[0] == "ok":
            written = yield ("replace", kind, name, document, reply[1])
        else:
            written = yield ("create", kind, name, document)
        saved = written[0] == "ok"
    reply = written = document = None
    proc.end("save_end", kind, name, incarnation)
