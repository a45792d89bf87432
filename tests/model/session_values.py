"""Large values of a session in projection, delete, restore, purge and create.

Other modules model how the document decides between those. Here each is one If-Match.

Partition "kept": the document ("d",) and the values ("v", incarnation, name). Partition "log1": the
events (seq, incarnation). Each event sets the session's one large value to a text.

The document has: status, incarnation, revision, `keys` (at most "k"), and `before`, the
incarnations of its predecessors, whose tombstones are in the log.
"""

from __future__ import annotations

from tests.model.store import EMPTY, Frozen
from tests.model.values import D, discard, named, names, upload

ENDED = ("purging", "purged")


def session(incarnation, status="active", revision=0, text=None, ref=None, before=()):
    keys = EMPTY if ref is None else Frozen(k=Frozen(text=text, ref=ref))
    return Frozen(
        status=status, incarnation=incarnation, revision=revision, keys=keys, before=before
    )


def names_of(doc, incarnation):
    """The names in a document that may be shown again: a deleted session may be restored."""
    if doc is None or doc.incarnation != incarnation or doc.status in ENDED:
        return ()
    return names(doc)


def project(rules, proc, incarnation="a0"):
    """Brings the document to the end of the log."""
    mine, attempt = (), 0  # uploads, as (text, name, revision of the attempt)
    while True:
        reply = doc = found = new = entry = None
        reply = yield ("read", "kept", D)
        doc = reply[2] if reply[0] == "ok" else None
        kept = names_of(doc, incarnation)
        found = ()
        if doc is not None and (doc.incarnation, doc.status) == (incarnation, "active"):
            found = yield ("query", "log1")
            found = tuple(r for r in found[1] if r.seq > doc.revision)
        if not found:
            reply = doc = found = None
            if not rules.without("a projection removes its uploads at every end"):
                yield from discard([(incarnation, name) for _, name, _ in mine], kept)
            return
        last, kept, found = found[-1], None, None
        entry = doc["keys"].get("k")
        ref = entry.ref if entry is not None and entry.text == last.text else None
        again = [m for m in mine if m[0] == last.text and doc.revision < m[2]]
        if rules.without("an upload that may have been named is not used again"):
            again = [m for m in mine if m[0] == last.text]
        if ref is None and again:
            ref = (incarnation, again[0][1])
        if ref is None:
            ref = (incarnation, proc.name + str(attempt))
            yield from upload(incarnation, ref[1], last.text)
            mine += ((last.text, ref[1], last.seq),)
            attempt += 1
        else:
            mine = tuple((m[0], m[1], max(m[2], last.seq)) if m in again else m for m in mine)
        again = entry = None
        new = doc.having(
            revision=last.seq, keys=Frozen(k=Frozen(text=last.text, ref=ref)), before=doc.before
        )
        last = ref = None
        reply = yield ("replace", "kept", D, new, reply[1])
        if reply[0] == "ok":
            doc, new, reply = names(doc), names(new), None
            yield from discard([*doc, *((incarnation, name) for _, name, _ in mine)], new)
            return


def change(status, to):
    """Delete and restore: changes the status of the document."""

    def body(proc):
        while True:
            reply = yield ("read", "kept", D)
            if reply[0] != "ok" or reply[2].status != status:
                return
            reply = yield ("replace", "kept", D, reply[2].having(status=to), reply[1])
            if reply[0] == "ok":
                return

    return body


def purge(rules, proc):
    """Announced in the document. Then the values of its incarnation and of its predecessors are
    deleted."""
    proc.start("purge")
    while True:
        reply = doc = None
        reply = yield ("read", "kept", D)
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status not in ("deleted", "purging"):
            break
        if doc.status == "deleted":
            doc = doc.having(status="purging")
            reply = yield ("replace", "kept", D, doc, reply[1])
            continue
        yield from complete_purge(rules, doc, reply[1])
    reply = doc = None
    proc.end("purge_end")


def complete_purge(rules, doc, etag):
    found = yield ("query", "kept")
    found = tuple((v.generation, v.name) for v in named(found) if is_dead(rules, doc, v))
    yield from discard(found, ())
    found = None
    doc = doc.having(status="purged", keys=EMPTY, before=())
    yield ("replace", "kept", D, doc, etag)


def is_dead(rules, doc, value):
    if rules.without("a purge leaves values of others"):
        return True
    before = () if rules.without("a purge removes values of predecessors") else doc.before
    return value.generation in (doc.incarnation, *before)


def purge_predecessors(rules, proc):
    """Erases what a re-created session has left of its predecessors."""
    proc.start("purge")
    while True:
        reply = doc = found = None
        reply = yield ("read", "kept", D)
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status != "active" or not doc.before:
            break
        if not rules.without("a purge removes values of predecessors"):
            found = yield ("query", "kept")
            found = tuple(v for v in named(found) if v.generation in doc.before)
            found = tuple((v.generation, v.name) for v in found)
            yield from discard(found, ())
            found = None
        reply = yield ("replace", "kept", D, doc.having(before=()), reply[1])
    reply = doc = None
    proc.end("purge_end")


def create(rules, proc, text="N"):
    """A new session with a large value. It may replace one that is gone. Each attempt has an
    incarnation of its own."""
    mine, done = (), None
    while done is None:
        reply = doc = old = incarnation = None
        reply = yield ("read", "kept", D)
        old = reply[2] if reply[0] == "ok" else None
        if old is not None and old.incarnation in mine:
            done = old.incarnation  # the answer to our write was lost
            break
        if old is not None and old.status == "active":
            done = "exists"
            break
        if old is not None and old.status == "purging":
            yield from complete_purge(rules, old, reply[1])
            continue
        incarnation = proc.name + str(len(mine))
        mine += (incarnation,)
        etag, reply = reply[1] if old is not None else None, None
        yield from upload(incarnation, "v", text)
        before = () if old is None or old.status == "purged" else (*old.before, old.incarnation)
        doc = session(incarnation, text=text, ref=(incarnation, "v"), before=before)
        before = None
        if old is None:
            reply = yield ("create", "kept", D, doc)
        else:
            reply = yield ("replace", "kept", D, doc, etag)
        doc = etag = None
        if reply[0] == "ok":
            reply, done, old = None, incarnation, names(old)
            yield from discard(old, ())
    reply = old = doc = incarnation = None
    if not rules.without("a creator removes uploads that are not used"):
        yield from discard([(m, "v") for m in mine if m != done], ())


def complete_fork(rules, proc):
    """For any process that finds a fork. Its document names values of the initial state. The
    events, which are copied by now, replace them."""
    mine = ()
    while True:
        reply = doc = value = new = None
        reply = yield ("read", "kept", D)
        doc = reply[2] if reply[0] == "ok" else None
        if doc is None or doc.status != "forking":
            reply, doc = None, names_of(doc, "a0")
            if not rules.without("a forker removes its uploads at every end"):
                yield from discard(mine, doc)
            return
        value = yield ("read", "kept", ("v", *names(doc)[0]))
        if value[0] != "ok":  # completed by another process
            if rules.without("a forker that misses a value reads again"):
                proc.end("error")
                return
            continue
        value = None
        if not mine:
            mine = (("a0", proc.name),)
            yield from upload("a0", proc.name, "X")
        new = session("a0", revision=1, text="X", ref=mine[0])
        reply = yield ("replace", "kept", D, new, reply[1])
        if reply[0] == "ok":
            reply, doc = None, names(doc)
            yield from discard(doc, names(new))
            return


def get(rules, proc):
    """The session's text, or None. If a value is gone, the document is read again."""
    while True:
        reply = ref = None
        reply = yield ("read", "kept", D)
        if reply[0] != "ok" or reply[2].status != "active" or not reply[2]["keys"]:
            return
        ref, reply = reply[2]["keys"]["k"].ref, None
        reply = yield ("read", "kept", ("v", *ref))
        if reply[0] == "ok":
            return
