"""Races with restore (R…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deleted_session,
    deletes,
    event,
    gets,
    gets_and_appends,
    holding,
    log_snapshot,
    one_after_the_other,
    one_event,
    reader_at_rest,
    restores,
    session_document,
    stored,
    tombstone,
)
from tests.model.store import Frozen


def R1(rules):
    """Restore against re-creation, and a writer; a crash, a lost reply."""
    ps = [
        Process("X", restores(rules), crash=True, lost_reply=True),
        Process("C", creates(rules, "a1"), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b")),
    ]
    store = deleted_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def R1b(rules):
    """Restore against re-creation; a get that began before the delete joins both halves."""
    ps = [
        Process("D", deletes(rules)),
        Process("X", restores(rules), after=("D",)),
        Process("C", creates(rules, "a1"), after=("D",)),
        Process("B", gets_and_appends(rules, "b", project=False)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules))


def R2(rules):
    """Restore against an old object and a delete; one crash, one lost reply."""
    ps = [
        Process("X", restores(rules), crash=True, lost_reply=True),
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a", key="k")),
        Process("D", deletes(rules), crash=True, lost_reply=True),
    ]
    store = deleted_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def R2b(rules):
    """As R2 in rebase mode, from before the first event: delete, restore, delete."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k", rebase=True), lost_reply=True),
        Process("D", one_after_the_other(deletes(rules), restores(rules))),
        Process("E", deletes(rules), after=("D",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), lost_replies=1)


def R3(rules):
    """A restore crashes anywhere; readers and a writer find it."""
    ps = [
        Process("X", restores(rules), crash=True),
        Process("Q", gets(rules, "1")),
        Process("B", gets_and_appends(rules, "b", key="k"), crash=True),
        Process("N", gets_and_appends(rules, "n"), after=("B",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], deleted_session(rules), crashes=2)


def R4(rules):
    """Two restores, then a writer; two lost replies, a crash."""
    ps = [
        Process("X", restores(rules), crash=True, lost_reply=True),
        Process("Y", restores(rules), lost_reply=True),
        Process("B", gets_and_appends(rules, "b"), after=("Y",)),
    ]
    store = deleted_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=2)


def R5(rules):
    """Restore, append, delete, restore again; a reader and a session object from before."""
    steps = restores(rules), gets_and_appends(rules, "b"), deletes(rules), restores(rules)
    ps = [
        Process("X", one_after_the_other(*steps), crash=True),
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a")),
        Process("Q", gets(rules, "1")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], deleted_session(rules), crashes=1)


def R6(rules):
    """A restore crashed; a delete returns; nobody may bring the session back after it."""
    ps = [
        Process("X", restores(rules), crash=True),
        Process("D", deletes(rules), after=("X",), crash=True),
        Process("Q", gets(rules, "1"), after=("X",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], deleted_session(rules), crashes=2)


def R7(rules):
    """A stale reader and a stale writer while the session is deleted and restored."""
    steps = deletes(rules), restores(rules)
    ps = [
        Process("X", one_after_the_other(*steps)),
        Process("Q", gets(rules, "1"), stale=True),
        Process("B", gets_and_appends(rules, "b"), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), token_on_error=False)


def R7b(rules):
    """A stale reader and writer across delete, restore, delete and re-creation."""
    steps = deletes(rules), restores(rules)
    ps = [
        Process("X", one_after_the_other(*steps)),
        Process("E", one_after_the_other(deletes(rules), creates(rules, "a1")), after=("X",)),
        Process("B", gets_and_appends(rules, "b"), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), token_on_error=False)


def R8(rules):
    """Restore of a session whose delete is under way or crashed."""
    ps = [
        Process("D", deletes(rules), crash=True, lost_reply=True),
        Process("X", restores(rules), lost_reply=True),
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a")),
    ]
    store = one_event(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def R9(rules):
    """A stale restorer: it must not take the session for active or missing."""
    store = deleted_session(rules)
    z, tomb = event(1, "z", "a0"), tombstone(2, "a0")
    docs = (
        session_document("a0", revision=1, shows="z"),
        session_document("a0", "deleted", revision=2, shows="z"),
    )
    store = store.having(
        log1=(log_snapshot(), log_snapshot(z), log_snapshot(z, tomb)),
        session1=(Frozen(), *(Frozen({"s": (v, doc)}) for v, doc in enumerate(docs, 1))),
    )
    ps = [
        Process("X", restores(rules), stale=True),
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a")),
        Process("Q", gets(rules, "1"), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def R9b(rules):
    """A stale restorer, and a delete that stopped after its tombstone: the document is still
    active, and the log shows the tombstone only after a probe."""
    store = deleted_session(rules)
    z, tomb = event(1, "z", "a0"), tombstone(2, "a0")
    doc = session_document("a0", revision=1, shows="z")
    store = store.having(
        log1=(log_snapshot(), log_snapshot(z), log_snapshot(z, tomb)),
        session1=(Frozen(), Frozen({"s": (1, doc)})),
    )
    ps = [Process("X", restores(rules), stale=True), Process("Q", gets(rules, "1"), stale=True)]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def R10(rules):
    """An appender crashed before its delta was merged; delete and restore keep the delta."""
    steps = deletes(rules), restores(rules)
    ps = [
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a", key="k"), crash=True),
        Process("X", one_after_the_other(*steps), crash=True),
        Process("Q", gets(rules, "1")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), crashes=2)


def R11(rules):
    """Restore of a missing session against its creation."""
    ps = [
        Process("X", restores(rules), lost_reply=True),
        Process("C", creates(rules, "a0"), lost_reply=True),
    ]
    store = stored(rules, {"1": (None,)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, lost_replies=1)


def R12(rules):
    """Restore, delete and re-creation at once, with a writer in whichever session is alive."""
    ps = [
        Process("X", restores(rules), lost_reply=True),
        Process("D", deletes(rules)),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n", project=False)),
    ]
    store = deleted_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, lost_replies=1)
