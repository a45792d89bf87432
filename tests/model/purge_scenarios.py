"""Races with purge (P…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    gets_and_appends,
    holding,
    log_snapshot,
    one_after_the_other,
    one_event,
    purges,
    purges_replaced,
    reader_at_rest,
    recreated_session,
    restores,
    session_document,
    stored,
    tombstone,
)
from tests.model.steps import record
from tests.model.store import Frozen


def two_events_deleted(rules):
    doc = session_document("a0", "deleted", revision=3, shows="yz")
    records = event(1, "y", "a0"), event(2, "z", "a0"), tombstone(3, "a0")
    return stored(rules, {"1": (doc, *records)})


def P1(rules):
    """Purge against two old objects and a re-creator; a crash; another purge finishes."""
    ps = [
        Process("P", purges(rules), crash=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", key="k")),
        Process("B", appends(rules, holding(), "b", rebase=True)),
        Process("C", creates(rules, "a1"), crash=True),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def P2(rules):
    """Purge against restore; two crashes, a lost reply; another purge afterwards."""
    ps = [
        Process("P", purges(rules), crash=True, lost_reply=True),
        Process("X", restores(rules), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b")),
        Process("P2", purges(rules), after=("P", "X")),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=2, lost_replies=1)


def P3(rules):
    """Purge, restore and re-creation at once; a crash, a lost reply."""
    ps = [
        Process("P", purges(rules), crash=True, lost_reply=True),
        Process("X", restores(rules), crash=True),
        Process("C", creates(rules, "a1"), lost_reply=True),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def P4(rules):
    """Two purges; two lost replies, a crash; then creation and a writer."""
    ps = [
        Process("P", purges(rules), crash=True, lost_reply=True),
        Process("P2", purges(rules), lost_reply=True),
        Process("C", creates(rules, "a1"), after=("P2",)),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=2)


def P5(rules):
    """A delete, a purge and a get that began before; the get's session object appends."""
    ps = [
        Process("P", one_after_the_other(deletes(rules), purges(rules)), lost_reply=True),
        Process("B", gets_and_appends(rules, "b", key="k", repair=True)),
        Process("C", creates(rules, "a1")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), lost_replies=1)


def P6(rules):
    """Purge of a session that had been re-created erases its predecessor as well."""
    doc = session_document("a1", "deleted", first_seq=3, revision=4, shows="y", replaced=1)
    records = event(1, "z", "a0"), tombstone(2, "a0"), event(3, "y", "a1"), tombstone(4, "a1")
    ps = [
        Process("P", purges(rules), crash=True),
        Process("C", creates(rules, "a2"), crash=True),
        Process("A", appends(rules, holding(), "a", rebase=True)),
        Process("P2", purges(rules), after=("P", "C")),
    ]
    store = stored(rules, {"1": (doc, *records)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def P7(rules):
    """A stale purger and a stale creator; the past holds every earlier version."""
    y, z, tomb = event(1, "y", "a0"), event(2, "z", "a0"), tombstone(3, "a0")
    docs = (
        session_document("a0", revision=2, shows="yz"),
        session_document("a0", "deleted", revision=3, shows="yz"),
        session_document("a0", "purging", revision=3),
    )
    store = two_events_deleted(rules).having(
        log1=(log_snapshot(y), log_snapshot(y, z), log_snapshot(y, z, tomb)),
        session1=(Frozen(), *(Frozen({"s": (v, doc)}) for v, doc in enumerate(docs, 1))),
    )
    ps = [
        Process("P", purges(rules), stale=True),
        Process("C", creates(rules, "a1"), stale=True, after=()),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def P8(rules):
    """Purge of a session in use is refused, whether or not it is deleted meanwhile."""
    ps = [
        Process("P", purges(rules), lost_reply=True),
        Process("D", deletes(rules), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b", key="k"), crash=True),
    ]
    store = one_event(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def P9(rules):
    """A crashed appender's delta survives delete and purge."""
    steps = deletes(rules), purges(rules)
    ps = [
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a", key="k"), crash=True),
        Process("P", one_after_the_other(*steps), crash=True),
        Process("P2", purges(rules), after=("P",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), crashes=2)


def P10(rules):
    """Purge of a session that was restored once and deleted again."""
    doc = session_document("a0", "deleted", revision=5, shows="yz")
    records = (
        event(1, "y", "a0"),
        tombstone(2, "a0"),
        record("restored", "a0", 3, "restored"),
        event(4, "z", "a0"),
        record("tombstone", "a0", 5, "T:new"),
    )
    ps = [
        Process("P", purges(rules), crash=True),
        Process("X", restores(rules), crash=True),
        Process("A", appends(rules, holding(n=1, event_ids="y"), "a")),
        Process("B", appends(rules, holding(n=3, event_ids="y"), "b")),
    ]
    store = stored(rules, {"1": (doc, *records)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


# ------------------------------------------------------------------ predecessors


def P11(rules):
    """A deleted session is created again; its predecessor is purged, and purged again."""
    ps = [
        Process("C", creates(rules, "a1"), crash=True, lost_reply=True),
        Process("P", purges_replaced(rules), after=("C",), crash=True, lost_reply=True),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
        Process("A", appends(rules, holding(n=1, event_ids="y"), "a", rebase=True)),
        Process("P2", purges_replaced(rules), after=("P", "N")),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=2, lost_replies=1)


def P11b(rules):
    """The predecessor is purged while its successor is deleted, restored and created again."""
    ps = [
        Process("P", purges_replaced(rules), crash=True),
        Process("D", one_after_the_other(deletes(rules), restores(rules))),
        Process("C", creates(rules, "a2")),
        Process("B", gets_and_appends(rules, "b", project=False)),
        Process("P2", purges_replaced(rules), after=("P", "D", "C", "B")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], recreated_session(rules), crashes=1)


def P11c(rules):
    """The predecessor is purged while its successor is deleted and purged."""
    ps = [
        Process("P", purges_replaced(rules), crash=True, lost_reply=True),
        Process("D", one_after_the_other(deletes(rules), purges(rules)), crash=True),
        Process("B", gets_and_appends(rules, "b")),
        Process("P2", purges_replaced(rules), after=("P", "D", "B")),
    ]
    store = recreated_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=2, lost_replies=1)


def P11d(rules):
    """A stale purger, while the session is created again; the past holds earlier versions."""
    y, z, tomb = event(1, "y", "a0"), event(2, "z", "a0"), tombstone(3, "a0")
    docs = (
        session_document("a0", revision=2, shows="yz"),
        session_document("a0", "deleted", revision=3, shows="yz"),
        session_document("a1", first_seq=4, revision=3, replaced=1),
    )
    store = two_events_deleted(rules).having(
        log1=(log_snapshot(y), log_snapshot(y, z), log_snapshot(y, z, tomb)),
        session1=(Frozen(), *(Frozen({"s": (v, doc)}) for v, doc in enumerate(docs, 1))),
    )
    ps = [
        Process("P", purges_replaced(rules), stale=True),
        Process("D", one_after_the_other(deletes(rules), creates(rules, "a2"))),
        Process("B", gets_and_appends(rules, "b"), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def P12(rules):
    """A session with a ttl follows a deleted one without: the predecessor is purged first."""
    ps = [
        Process("C", creates(rules, "a1", expires=True), crash=True, lost_reply=True),
        Process("X", restores(rules), crash=True),
        Process("A", appends(rules, holding(n=1, event_ids="y"), "a", rebase=True)),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = two_events_deleted(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)
