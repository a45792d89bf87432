"""Races between create, get, append and delete. Each docstring describes its scenario.

Other modules have: stale reads of these (S6, S12), restore (R), purge (P), lag (L), lost documents
(D), clocks (C), ttl (T), erasure (E).
"""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    appends_again,
    creates,
    deleted_session,
    deletes,
    fresh_session,
    gets,
    gets_and_appends,
    holding,
    one_after_the_other,
    one_event,
    reader_at_rest,
    recreated_session,
    stored,
)


def S1(rules):
    """Two appenders from one marker, crashes anywhere, one lost reply."""
    a = Process("A", appends(rules, holding(), "a", key="k"), crash=True, lost_reply=True)
    b = Process("B", appends(rules, holding(), "b", key="k"), crash=True, lost_reply=True)
    store = fresh_session(rules)
    return Scenario([a, b, reader_at_rest(rules, a, b)], store, crashes=2, lost_replies=1)


def S1b(rules):
    """Two appenders with user and app deltas, crashes anywhere."""
    a = Process("A", appends(rules, holding(), "a", key="k", app_key="m"), crash=True)
    b = Process("B", appends(rules, holding(), "b", key="k", app_key="m"), crash=True)
    store = fresh_session(rules, shared_documents=True)
    return Scenario([a, b, reader_at_rest(rules, a, b)], store, crashes=2)


def S2(rules):
    """An old object, a deleter, a re-creator, and a writer in the new incarnation; one crash."""
    held = holding(n=1, event_ids="z")
    ps = [
        Process("A", appends(rules, held, "a", key="k"), crash=True),
        Process("D", deletes(rules), crash=True),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n", key="k"), after=("C",)),
    ]
    store = one_event(rules, shared_documents=True)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def S2b(rules):
    """Two deleters, a re-creator, a writer in the new incarnation; one lost reply, one crash."""
    ps = [
        Process("D", deletes(rules), lost_reply=True),
        Process("E", deletes(rules), crash=True),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = fresh_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def S2c(rules):
    """A re-created session without events: delete, its object appends, create; in sequence."""
    ps = [
        Process("D", deletes(rules), crash=True),
        Process("A", appends(rules, holding(incarnation="a1", n=2), "a"), after=("D",)),
        Process("C", creates(rules, "a2"), after=("A",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], recreated_session(rules), crashes=1)


def S2d(rules):
    """Delete of a session that does not exist, and create."""
    ps = [Process("D", deletes(rules)), Process("C", creates(rules, "a0"))]
    return Scenario([*ps, reader_at_rest(rules, *ps)], stored(rules, {"1": (None,)}))


def S3(rules):
    """Two sessions of one user write one key; a repairing reader; two crashes."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("B", appends(rules, holding("2", "b0"), "b", key="k"), crash=True),
        Process("Q", gets(rules, "1"), crash=True),
    ]
    store = fresh_session(rules, "1", "2", shared_documents=True)
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, crashes=2)


def S3b(rules):
    """Two sessions write one key; one lost reply, one crash."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), lost_reply=True, crash=True),
        Process("B", appends(rules, holding("2", "b0"), "b", key="k"), lost_reply=True),
    ]
    store = fresh_session(rules, "1", "2")
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, crashes=1, lost_replies=1)


def _two_clocks(rules, first, second):
    """Writer B reads its session before it writes, and after A's write has returned."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), clock=first),
        Process("Q", gets(rules, "1")),
        Process("B", gets_and_appends(rules, "b", key="k", sid="2"), after=("A",), clock=second),
    ]
    store = fresh_session(rules, "1", "2")
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store)


def S3k(rules):
    """Two sessions; the second writer's clock is slow, but it reads first."""
    return _two_clocks(rules, 10, 5)


def S3e(rules):
    """Two sessions; both clocks show the same time, the second writer reads first."""
    return _two_clocks(rules, 5, 5)


def S4(rules):
    """An appender, another that reads and appends, a repairing reader; two crashes."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("B", gets_and_appends(rules, "b", key="k"), crash=True),
        Process("Q", gets(rules, "1")),
    ]
    store = fresh_session(rules, shared_documents=True)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=2)


def S4b(rules):
    """A crashes before its user delta is merged; B continues and projects past it."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("B", gets_and_appends(rules, "b"), crash=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=1)


def S4c(rules):
    """A crashed appender, a crashed delete, a re-creator: its user delta is kept."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("D", deletes(rules), crash=True),
        Process("Q", gets(rules, "1")),
        Process("C", creates(rules, "a1"), after=("D",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=2)


def S4d(rules):
    """Appender and deleter crash; only readers remain."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("D", deletes(rules), crash=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=2)


def _one_session_two_clocks(rules, first, second):
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True, clock=first),
        Process("B", gets_and_appends(rules, "b", key="k"), crash=True, clock=second),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=1)


def S4k(rules):
    """One session; the second writer's clock is slow."""
    return _one_session_two_clocks(rules, 10, 5)


def S4e(rules):
    """One session; both clocks show the same time."""
    return _one_session_two_clocks(rules, 5, 5)


def S5(rules):
    """The caller appends the same event again; another session writes the key in between."""
    ps = [
        Process("A", appends_again(rules, holding(), "a", key="k"), crash=True),
        Process("B", appends(rules, holding("2", "b0"), "b", key="k")),
    ]
    store = fresh_session(rules, "1", "2")
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, crashes=1)


def S5b(rules):
    """Appender, deleter and creator; any two of their writes lose the reply."""
    ps = [
        Process("A", appends(rules, holding(), "a"), lost_reply=True),
        Process("D", deletes(rules), lost_reply=True),
        Process("C", creates(rules, "a1"), lost_reply=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), lost_replies=2)


def S5c(rules):
    """After a crash the caller reloads the session and appends the same event again."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("B", gets_and_appends(rules, "a", key="k"), after=("A",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=1)


def S8(rules):
    """Two creators of a fresh id with initial user state; a lost reply, a crash."""
    ps = [
        Process("C", creates(rules, "c0", key="k"), lost_reply=True, crash=True),
        Process("E", creates(rules, "e0", key="k"), lost_reply=True, crash=True),
    ]
    store = stored(rules, {"1": (None,)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def S8b(rules):
    """Two creators over a deleted session and a writer; two lost replies."""
    ps = [
        Process("C", creates(rules, "c1"), lost_reply=True),
        Process("E", creates(rules, "e1"), lost_reply=True),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], deleted_session(rules), lost_replies=2)


def S8c(rules):
    """A creator, two deleters of the same id, another creator; two lost replies, a crash."""
    ps = [
        Process("C", creates(rules, "c0"), lost_reply=True),
        Process("D", deletes(rules), lost_reply=True),
        Process("E", deletes(rules), crash=True),
        Process("F", creates(rules, "f0"), after=("D",)),
    ]
    store = stored(rules, {"1": (None,)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=2)


def S9(rules):
    """Rebase: two writers, a lost reply, a crash."""
    ps = [
        Process(
            name,
            appends(rules, holding(), name.lower(), key="k", rebase=True),
            lost_reply=True,
            crash=True,
        )
        for name in "AB"
    ]
    store = fresh_session(rules, shared_documents=True)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def S9b(rules):
    """Rebase: an object of the old incarnation against delete, re-creation and new events."""
    steps = deletes(rules), creates(rules, "a1"), gets_and_appends(rules, "n")
    ps = [
        Process("A", appends(rules, holding(), "a", key="k", rebase=True), lost_reply=True),
        Process("D", one_after_the_other(*steps)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), lost_replies=1)


def S9c(rules):
    """Rebase with stale reads and a lost reply."""
    ps = [
        Process("A", appends(rules, holding(), "a", rebase=True), lost_reply=True, stale=True),
        Process("B", appends(rules, holding(), "b", rebase=True)),
    ]
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)],
        fresh_session(rules),
        lost_replies=1,
        token_on_error=False,
    )


def S9d(rules):
    """Rebase: the caller appends the same event again from its first session object."""
    ps = [
        Process("A", appends_again(rules, holding(), "a", rebase=True)),
        Process("B", appends(rules, holding(), "b", rebase=True)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], fresh_session(rules))


def S10(rules):
    """An old object, rebasing writer, deleter, re-creator; a crash and a lost reply."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b", key="k", rebase=True)),
        Process("D", deletes(rules), crash=True, lost_reply=True),
        Process("C", creates(rules, "a1"), lost_reply=True),
    ]
    store = fresh_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def S11(rules):
    """Three writers over two sessions, one shared key; a lost reply, two crashes."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b", key="k", repair=True), crash=True),
        Process("G", appends(rules, holding("2", "b0"), "g", key="k"), crash=True, lost_reply=True),
    ]
    store = fresh_session(rules, "1", "2")
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, crashes=2, lost_replies=1)
