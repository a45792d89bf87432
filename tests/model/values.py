"""Large values: documents of their own, in the partition of the document that names them.

Partition "kept": the document ("d",), values ("v", generation, name). A value is written before the
document that names it, under a name that nothing else has, and it never changes. Generations: the
stamp of a state's last erasure, or the incarnation of a session.

A state: `erased`, and `keys`: key -> Frozen(stamp, writer, text, ref). `text` stands for a value
and its hash, `ref` for (generation, name).
"""

from __future__ import annotations

from tests.model.steps import probe
from tests.model.store import EMPTY, Frozen

D = ("d",)
NOTHING = Frozen(erased=0, keys=EMPTY)


def value_id(ref):
    return ("v", *ref)


def names(doc):
    """The names in a document."""
    if doc is None:
        return ()
    return tuple(entry.ref for entry in doc["keys"].values())


def upload(generation, name, text):
    value = Frozen(kind="value", generation=generation, name=name, text=text)
    yield ("create", "kept", ("v", generation, name), value)


def discard(refs, kept):
    """Deletes values that are no longer named."""
    refs = tuple(sorted(set(refs) - set(kept)))
    while refs:
        yield ("delete", "kept", value_id(refs[0]))
        refs = refs[1:]


# ------------------------------------------------------------------ user and app state


def merge(rules, proc, key, text, writer=None):
    """Sets a key of the state to a large value."""
    writer = writer or proc.name
    proc.start("write", writer, text)
    reply = yield ("read", "kept", D)
    stamps = [e.stamp for e in reply[2]["keys"].values()] if reply[0] == "ok" else []
    stamps += [reply[2].erased] if reply[0] == "ok" else []
    stamps = max(stamps, default=0)
    stamp = yield ("now",)
    stamp, stamps = max(stamp, stamps + 1), None
    proc.start("stamped", writer, key, stamp)
    mine, attempt, done = (), 0, False
    while not done:
        old = reply[2] if reply[0] == "ok" else NOTHING
        found = old["keys"].get(key)
        if stamp <= old.erased or (found is not None and found.stamp >= stamp):
            reply = found = None  # merged or erased by another process, or the answer was lost
            old = names(old)
            if not rules.without("uploads that are not used are removed"):
                yield from discard(mine, old)
            break
        etag = reply[1] if reply[0] == "ok" else None
        reply = found = None
        ref = next((e.ref for e in old["keys"].values() if e.text == text), None)
        again = [m for m in mine if m[0] == old.erased]
        if rules.without("an erased generation is not continued"):
            again = mine
        if ref is None and again:
            ref = again[0]
        if ref is None:
            ref = (old.erased, f"{writer}{attempt}")
            if rules.without("a value has a name of its own"):
                ref = (old.erased, text)
            mine += (ref,)
            if not rules.without("a value is written before its name"):
                yield from upload(ref[0], ref[1], text)
        again = None
        attempt += 1
        new = Frozen(stamp=stamp, writer=writer, text=text, ref=ref)
        new = Frozen(erased=old.erased, keys=old["keys"].put(key, new))
        old = names(old)
        if rules.without("a value is removed after its name"):
            yield from discard(old, names(new))
        if rules.without("If-Match on the state"):
            etag = None
        if etag is None and not rules.without("If-Match on the state"):
            reply = yield ("create", "kept", D, new)
        else:
            reply = yield ("replace", "kept", D, new, etag)
        if reply[0] == "ok":
            if rules.without("a value is written before its name"):
                yield from upload(ref[0], ref[1], text)
            new, reply, etag, ref, done = names(new), None, None, None, True
            yield from discard(old + mine, new)
        else:
            old = new = etag = ref = reply = None
            reply = yield ("read", "kept", D)
    old = new = reply = mine = None
    proc.end("write_end", writer)


def erase_state(rules, proc):
    """Erases the state: a stub with a new stamp, then all values of earlier generations."""
    proc.start("erase")
    while True:
        reply = old = stamp = None
        yield from probe("kept", D)
        reply = yield ("read", "kept", D)
        old = reply[2] if reply[0] == "ok" else NOTHING
        stamp = yield ("now",)
        stamp = max([stamp, old.erased + 1, *(e.stamp + 1 for e in old["keys"].values())])
        stub = Frozen(erased=stamp, keys=EMPTY)
        old = names(old)
        if reply[0] == "ok":
            reply = yield ("replace", "kept", D, stub, reply[1])
        else:
            reply = yield ("create", "kept", D, stub)
        stub = None
        if reply[0] == "ok":
            break
    reply = None
    reply = yield ("query", "kept")
    dead = tuple((v.generation, v.name) for v in named(reply))
    if rules.without("an erasure removes older generations only"):
        dead = tuple(ref for ref in dead if ref[0] != stamp)
    elif rules.without("an erasure also removes what nobody names"):
        dead = old
    else:
        dead = tuple(ref for ref in dead if ref[0] < stamp)
    reply = old = None
    yield from discard(dead, ())
    dead = None
    proc.end("erase_end", stamp)


def sweep_state(rules, proc):
    """A day after an erasure: deletes uploads that were under way then and whose writer has
    died."""
    proc.start("sweep")
    yield from probe("kept", D)
    reply = yield ("read", "kept", D)
    erased = reply[2].erased if reply[0] == "ok" else 0
    reply = None
    if not rules.without("an erased state is swept a day later"):
        reply = yield ("query", "kept")
        dead = tuple((v.generation, v.name) for v in named(reply) if v.generation < erased)
        reply = None
        yield from discard(dead, ())
    dead = erased = None
    proc.end("sweep_end")


def named(reply):
    return [v for v in reply[1] if v.get("kind") == "value"]


def read_state(rules, proc):
    """The texts of all keys, with their writers."""
    proc.start("read")
    shown = None
    while shown is None:
        reply = todo = texts = value = None
        reply = yield ("read", "kept", D)
        doc = reply[2] if reply[0] == "ok" else NOTHING
        reply, todo, texts = None, tuple(sorted(doc["keys"].items())), ()
        while todo:
            value = yield ("read", "kept", value_id(todo[0][1].ref))
            if value[0] != "ok":
                break
            texts += ((todo[0][0], value[2].text),)
            todo = todo[1:]
        if not todo:
            shown = texts
        elif rules.without("a reader that misses a value reads again"):
            shown, doc = "missing", None
        else:
            value = todo = texts = doc = None
            yield from probe("kept", D)
    value = todo = texts = None
    proc.end("read_end", shown, doc)
