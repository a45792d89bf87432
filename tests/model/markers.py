"""Session objects from elsewhere: without a marker, or with one that another process gave.

`n` of such an object is what it has really seen. An object without a marker does not know it.
"""

from __future__ import annotations

from tests.model.protocol import append, get
from tests.model.steps import confirm, probe
from tests.model.store import Frozen


def append_unmarked(rules, proc, held, event_id):
    """An object that was sent as JSON: its last event says what it has seen. Timestamps say
    nothing: here, all are equal."""
    seen = held.n
    proc.start("append", held.sid, event_id, held.incarnation, seen, ())
    confirmed = rules.without("a refusal of an object is confirmed")
    while True:
        now = yield from get(rules, proc, held.sid, repair=False)
        if now is not None and now.event_ids[-1:] == (event_id,):  # its own: what is before it?
            now = now.having(n=now.n - 1, event_ids=now.event_ids[:-1])
        if now is not None and (
            now.event_ids[-1:] == held.event_ids[-1:]
            or rules.without("an object without a marker proves itself")
        ):
            break
        if confirmed:
            outcome = "notfound" if now is None else "stale"
            proc.end("append_end", held.sid, event_id, held.incarnation, seen, outcome, False)
            return
        now = None
        yield from probe("log" + held.sid, (0, "probe"))
        yield from confirm(held.sid)
        confirmed = True
    confirmed = None
    yield from append(rules, proc, now, event_id, Frozen({event_id: 1}), seen=seen)


def append_given(rules, proc, held, event_id):
    """An object whose marker another process gave, perhaps a process on another store."""
    proc.start("append", held.sid, event_id, held.incarnation, held.n, ())
    there = rules.without("a marker of another process is checked")
    confirmed = rules.without("a refusal of a marker is confirmed")
    while not there:
        reply = yield ("read", "session" + held.sid, "s")
        there = reply[0] == "ok" and reply[2].incarnation == held.incarnation
        reply = None
        if not there and confirmed:
            proc.end("append_end", held.sid, event_id, held.incarnation, held.n, "notfound", False)
            return
        if not there:
            confirmed = yield from confirm(held.sid)
            confirmed = True
    there = confirmed = None
    yield from append(rules, proc, held, event_id, Frozen({event_id: 1}))
