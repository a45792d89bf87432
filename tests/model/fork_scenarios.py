"""Races with forks (F…). Session 1 is the source, session 2 the fork f0."""

from __future__ import annotations

from tests.model import forks
from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    gets,
    gets_and_appends,
    holding,
    one_after_the_other,
    purges,
    purges_user,
    reader_at_rest,
    restores,
    session_document,
    stored,
    tombstone,
    with_past,
)
from tests.model.store import EMPTY, Frozen


def source_with(rules, *event_ids):
    """The source has these events. There is no other session."""
    records = [event(i, e, "a0") for i, e in enumerate(event_ids, 1)]
    doc = session_document("a0", revision=len(records), shows=event_ids)
    return stored(rules, {"1": (doc, *records), "2": (None,)})


def forking_document(n):
    source = Frozen(sid="1", incarnation="a0", seq=n, events=n)
    return session_document("f0", "forking").having(source=source)


def begun(rules, *event_ids):
    """A process began a fork and died."""
    store = source_with(rules, *event_ids)
    return store.put("session2", (Frozen({"s": (1, forking_document(len(event_ids)))}),))


def forks_it(rules, incarnation="f0"):
    return lambda proc: forks.fork(rules, proc, "1", "2", incarnation)


def deletes_and_purges(rules, sid="1"):
    return one_after_the_other(deletes(rules, sid), purges(rules, sid))


def at_the_end(rules, *ps):
    """Reads everything once more."""
    return [*ps, reader_at_rest(rules, *ps, sids="21")]


def F1(rules):
    """A fork, and a reader that finds it and appends; a crash, a lost reply."""
    ps = [
        Process("F", forks_it(rules), crash=True, lost_reply=True),
        Process("G", gets_and_appends(rules, "g", sid="2", repair=True), crash=True),
    ]
    store = source_with(rules, "y", "z")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F1b(rules):
    """The answer to the fork's create is lost; others complete, delete and purge it meanwhile."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True),
        Process("G", one_after_the_other(gets(rules, "2"), deletes_and_purges(rules, "2"))),
    ]
    return Scenario(at_the_end(rules, *ps), source_with(rules, "z"), lost_replies=1)


def F2(rules):
    """The source is deleted and purged while it is forked, and while the fork is read."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True),
        Process("P", deletes_and_purges(rules)),
        Process("G", gets(rules, "2"), crash=True),
    ]
    store = source_with(rules, "y", "z")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F2b(rules):
    """The same; the process that finds the fork purges it."""
    ps = [
        Process("F", forks_it(rules)),
        Process("P", deletes_and_purges(rules)),
        Process("Q", purges(rules, "2"), crash=True),
        Process("Q2", purges(rules, "2"), after=("Q",)),
    ]
    return Scenario(at_the_end(rules, *ps), source_with(rules, "z"), crashes=1)


def F2c(rules):
    """All sessions of a user are erased while one of them is forked."""
    ps = [
        Process("F", forks_it(rules)),
        Process("U", purges_user(rules, "1", "2"), crash=True),
        Process("U2", purges_user(rules, "1", "2"), after=("U",)),
    ]
    return Scenario(at_the_end(rules, *ps), source_with(rules, "z"), crashes=1)


def F3(rules):
    """The forker died at any step; a reader and a delete find what it left."""
    ps = [
        Process("G", gets_and_appends(rules, "g", sid="2"), lost_reply=True),
        Process("H", gets(rules, "2"), crash=True),
        Process("D", deletes(rules, "2"), crash=True),
    ]
    store = begun(rules, "y", "z")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F3b(rules):
    """The same with a create, a restore and a purge of the source."""
    ps = [
        Process("C", creates(rules, "c0", sid="2")),
        Process("X", restores(rules, "2")),
        Process("P", deletes_and_purges(rules)),
    ]
    return Scenario(at_the_end(rules, *ps), begun(rules, "z"))


def F4(rules):
    """Another process creates the target's id; the source is appended to."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True, crash=True),
        Process("C", creates(rules, "c0", sid="2"), lost_reply=True),
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a"), crash=True),
    ]
    store = source_with(rules, "z")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F4b(rules):
    """Two forks of the same name."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True, crash=True),
        Process("E", forks_it(rules, "e0"), lost_reply=True),
    ]
    store = source_with(rules, "z")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F5(rules):
    """A purge of the fork's id, which has no document yet, sweeps what belongs to no session."""
    ps = [
        Process("F", forks_it(rules)),
        Process("P", purges(rules, "2")),
        Process("Q", purges(rules, "2")),
    ]
    return Scenario(at_the_end(rules, *ps), source_with(rules, "y", "z"))


def F6(rules):
    """A process that finds the fork reads the source from a replica that lags."""
    y, z = event(1, "y", "a0"), event(2, "z", "a0")
    store = with_past(
        begun(rules, "y", "z"),
        "1",
        [None, session_document("a0", revision=2, shows="yz")],
        [(), (y,), (y, z)],
    )
    ps = [Process("G", gets(rules, "2"), stale=True), Process("D", deletes(rules, "1"))]
    return Scenario(at_the_end(rules, *ps), store)


def purged_target(rules, status):
    """The target's id belonged to a session of one event, which was purged, or nearly so."""
    old, gone = event(1, "o", "b0"), tombstone(2, "b0")
    if status == "purged":
        old = old.having(kind="stub", event_id="", session=EMPTY)
    doc = session_document("b0", status, revision=2)
    source = session_document("a0", revision=1, shows="z")
    return stored(rules, {"1": (source, event(1, "z", "a0")), "2": (doc, old, gone)})


def F7(rules):
    """A fork onto the id of a purged session, which another process creates, and a third reads."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True, crash=True),
        Process("C", creates(rules, "c0", sid="2")),
        Process("G", gets(rules, "2")),
    ]
    store = purged_target(rules, "purged")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)


def F7b(rules):
    """A fork onto the id of a session that is being purged; it is deleted and purged itself."""
    ps = [
        Process("F", forks_it(rules), lost_reply=True),
        Process("Q", deletes_and_purges(rules, "2"), crash=True),
    ]
    store = purged_target(rules, "purging")
    return Scenario(at_the_end(rules, *ps), store, crashes=1, lost_replies=1)
